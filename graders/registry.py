"""The graders that give a score by themselves; `multi` combines these."""

from graders.base import Spec
from graders.json_schema import JsonSchema
from graders.string_check import StringCheck

SINGLE_GRADERS: dict[str, type[Spec]] = {
    "string_check": StringCheck,
    "json_schema": JsonSchema,
}
