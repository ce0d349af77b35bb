"""OpenAI's own OpenAPI document, where a copy lies: it is not part of this repository.

RFT_OPENAPI_REFERENCE names the JSON file. Without it the run says so in its list of warnings.
"""

import json
import os
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from tests.contract.differences import DIFFERENCES, Patch
from tests.contract.documents import Document

VARIABLE = "RFT_OPENAPI_REFERENCE"


@cache
def reference() -> Document:
    """Return OpenAI's document with our deliberate differences; warn once, and return one without
    any paths, where it is absent.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        message = f"{VARIABLE} is not set: answers were not checked against OpenAI's schemas"
        warnings.warn(message, stacklevel=2)
        return Document({"paths": {}})
    content: dict[str, Any] = json.loads(Path(path).read_text())
    document = Document(content)
    for difference in DIFFERENCES:
        for patch in difference.patches:
            apply(document, patch)
    return Document(content)


def apply(document: Document, patch: Patch) -> None:
    """Change the document in place; a pointer that leads nowhere raises KeyError."""
    place = document.at(patch.at)
    if isinstance(place, list):
        place.extend(patch.add)
    else:
        place.update(patch.add)
