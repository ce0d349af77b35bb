"""The graders that give a score by themselves; `multi` combines these."""

from graders.base import Spec
from graders.endpoint import Endpoint
from graders.json_schema import JsonSchema
from graders.label_model import LabelModel
from graders.number import Number
from graders.python import Python
from graders.regex import Regex
from graders.relative_model import RelativeModel
from graders.score_model import ScoreModel
from graders.string_check import StringCheck
from graders.text_similarity import TextSimilarity

SINGLE_GRADERS: dict[str, type[Spec]] = {
    "string_check": StringCheck,
    "text_similarity": TextSimilarity,
    "number": Number,
    "regex": Regex,
    "json_schema": JsonSchema,
    "python": Python,
    "score_model": ScoreModel,
    "label_model": LabelModel,
    "relative_model": RelativeModel,
    "endpoint": Endpoint,
}

#: Graders that a job takes as part of a `multi` only, as OpenAI's jobs do.
ONLY_IN_MULTI = frozenset({"label_model"})
