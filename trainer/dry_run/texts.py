"""Texts in a report: short enough to read, and to keep in a database row."""

from typing import Any

from trainer.sampling import Rollout

#: Longest text of a completion, reference or detail that a report shows, in characters.
MAX_CHARS = 1_000
#: Longest text of a prompt.
MAX_PROMPT_CHARS = 200
#: Examples of one thing.
EXAMPLES = 3


def cut(text: str, limit: int = MAX_CHARS) -> str:
    """The text, or its beginning with a mark where it was cut."""
    # A database refuses U+0000, which some tokenizers can produce.
    clean = text.replace("\0", "�")
    return clean if len(clean) <= limit else f"{clean[:limit]}…"


def example(rollout: Rollout, detail: str) -> dict[str, Any]:
    """One completion as an example of something."""
    return {"row": rollout.row.index, "text": cut(rollout.text), "detail": cut(detail)}


def prompt_of(rollout: Rollout) -> str:
    """The beginning of the last message before the completion."""
    content = rollout.row.messages[-1].get("content") if rollout.row.messages else None
    if isinstance(content, list):
        content = " ".join(part.get("text", "") for part in content)
    return cut(content or "", MAX_PROMPT_CHARS)
