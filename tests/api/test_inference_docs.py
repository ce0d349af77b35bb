"""docs/inference.md: its examples run, and it names every field."""

import json
import re
from pathlib import Path
from typing import Any

import openai
import pytest

from api.schemas.chat import ChatRequest
from api.schemas.completions import CompletionRequest
from tests.fakes.model_server import ModelServer

PAGE = (Path(__file__).parents[2] / "docs" / "inference.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TICKET = json.dumps({"team": "shipping", "urgent": False})


@pytest.mark.parametrize(
    ("model", "chapter"), [(ChatRequest, "## Chat"), (CompletionRequest, "## Completions")]
)
def test_every_field_is_named(model: Any, chapter: str) -> None:
    text = PAGE[PAGE.index(chapter) :]
    for name in model.model_fields.keys() - {"model"}:
        assert re.search(rf"`{name}\b", text), name


def test_the_examples_run(
    client: openai.OpenAI, model_server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": TICKET}}
    model_server.message = {"role": "assistant", "content": TICKET, "tool_calls": [call]}
    names: dict[str, Any] = {}
    assert len(EXAMPLES) == 6
    for example in EXAMPLES:
        exec(example, names)
        # The first example makes a client of its own for another address.
        names |= {"client": client, "model": "base-1"}
    sent = [json.loads(request.content) for request in model_server.requests]
    assert sent[0]["n"] == 4
    assert [message["role"] for message in sent[3]["messages"]] == ["user", "assistant", "tool"]
    shown = capsys.readouterr().out
    assert "shipping" in shown and "Hello\n5 tokens" in shown
