"""Rules about the content of a message: a text, or a list of parts."""

from collections.abc import Iterator
from typing import Any

from rft.dataset.images import check_image
from rft.dataset.report import Finding
from rft.dataset.strictjson import shown

#: Part types of other interfaces, and what they are called here.
_NAMES_ELSEWHERE = {
    "input_text": "text",
    "output_text": "text",
    "input_image": "image_url",
    "image": "image_url",
}


def check_content(message: dict[str, Any], role: str, path: str) -> Iterator[Finding]:
    """Check the content of a message of this role; `path` is the message's."""
    content = message.get("content")
    if isinstance(content, list):
        if not content:
            yield Finding("invalid_content", f"{path}/content", "The list of parts is empty.")
        for index, part in enumerate(content):
            yield from _check_part(part, role, f"{path}/content/{index}")
    elif content is None:
        calls = role == "assistant" and (message.get("tool_calls") or message.get("refusal"))
        if not calls:
            text = f"The message of role {role} has no content."
            yield Finding("content_required", f"{path}/content", text)
    elif not isinstance(content, str):
        text = "The content is neither a text nor a list of parts."
        yield Finding("invalid_content", f"{path}/content", text)


def text_of(content: Any) -> str:
    """The text of a message's content; texts of parts are joined, anything else is left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def is_blank(content: Any) -> bool:
    """Whether a content is there and holds nothing but white space."""
    if isinstance(content, str):
        return not content.strip()
    if not isinstance(content, list) or not content:
        return False
    texts = [p.get("text") for p in content if isinstance(p, dict) and p.get("type") == "text"]
    return len(texts) == len(content) and not any(
        not isinstance(t, str) or t.strip() for t in texts
    )


def is_image(part: Any) -> bool:
    """Whether a part of a message's content is an image."""
    return isinstance(part, dict) and part.get("type") == "image_url"


def _check_part(part: Any, role: str, path: str) -> Iterator[Finding]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        if not isinstance(part.get("text"), str):
            yield Finding("invalid_content", f"{path}/text", "A text part needs a text.")
    elif kind == "image_url":
        yield from check_image(part.get("image_url"), f"{path}/image_url")
        if role != "user":
            text = f"A message of role {role} cannot hold an image."
            yield Finding("image_not_in_user", path, text)
    elif kind == "refusal" and role == "assistant":
        if not isinstance(part.get("refusal"), str):
            yield Finding("invalid_content", f"{path}/refusal", "A refusal part needs a text.")
    else:
        near = _NAMES_ELSEWHERE.get(kind) if isinstance(kind, str) else None
        said = f", not {shown(repr(kind))}" if kind is not None else ""
        hint = f"; did you mean {near}?" if near else "."
        text = f"A part must be an object of type text or image_url{said}{hint}"
        yield Finding("invalid_content", f"{path}/type", text)
