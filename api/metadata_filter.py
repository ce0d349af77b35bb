"""The `metadata` filter of the job list, as OpenAI's clients write it into the URL."""

import re

from starlette.datastructures import QueryParams

from core.errors import InvalidRequest

_PAIR = re.compile(r"metadata\[(.+)\]", re.DOTALL)


def metadata_filter(query: QueryParams) -> dict[str, str] | None:
    """Read `metadata[key]=value` pairs; `metadata=null`, for jobs without any, gives `{}`.

    Returns None when the URL has no filter.
    """
    plain = query.get("metadata")
    if plain not in (None, "null"):
        raise InvalidRequest(
            f"Invalid value for 'metadata': {plain!r}; write metadata[key]=value, or metadata=null"
            " for jobs without metadata.",
            param="metadata",
        )
    matches = ((_PAIR.fullmatch(name), value) for name, value in query.multi_items())
    pairs = {match[1]: value for match, value in matches if match}
    if plain is not None and pairs:
        raise InvalidRequest(
            "metadata=null and metadata[key]=value exclude each other.", param="metadata"
        )
    return pairs if pairs or plain is not None else None
