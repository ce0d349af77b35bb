"""Bodies for vLLM, and how a model's chat template decides about them."""

from pathlib import Path
from typing import Any

import pytest

from core.errors import InvalidRequest
from core.registry import BaseModel
from workers.serving.dialect import HERMES, Dialect, dialect_of
from workers.serving.engine import EngineSpec, server_command
from workers.serving.requests import chat_body, text_body

FULL = Dialect(parser=HERMES, knows_tools=True, knows_developer=True)
BARE = Dialect(parser=HERMES, knows_tools=False, knows_developer=False)
STRANGE = Dialect(parser=None, knows_tools=True, knows_developer=True)
USER = {"role": "user", "content": "Hi"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1e0}'}}


def tool(name: str, **fields: Any) -> dict[str, Any]:
    """A tool of this name."""
    return {"type": "function", "function": {"name": name, **fields}}


def base(folder: Path, template: str, **fields: Any) -> BaseModel:
    """A base model with this chat template."""
    (folder / "chat_template.jinja").write_text(template)
    return BaseModel(id="b", path=folder, context_tokens=8, owned_by="x", created=1, **fields)


@pytest.mark.parametrize(
    ("template", "parser", "knows_tools"),
    [
        ("{{ messages }}", HERMES, False),
        ("{{ tools }} <tool_call>", HERMES, True),
        ("{{ tools }} <tool_call><function=", None, True),
        ("{{ tools }} <tool_call><arg_key>", None, True),
        ("{{ tools }} [TOOL_CALLS]", "mistral", True),
        ("{{ tools }} <|python_tag|>", "llama3_json", True),
        ("{{ tools }} ???", None, True),
    ],
)
def test_the_template_tells_how_calls_are_written(
    tmp_path: Path, template: str, parser: str | None, knows_tools: bool
) -> None:
    dialect = dialect_of(base(tmp_path, template))
    assert (dialect.parser, dialect.knows_tools) == (parser, knows_tools)


def test_the_operator_knows_better(tmp_path: Path) -> None:
    named = base(tmp_path, "{{ tools }} [TOOL_CALLS]", tool_parser="qwen3_xml")
    assert dialect_of(named).parser == "qwen3_xml"


def test_a_template_may_lie_in_the_tokenizers_configuration(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "{{ tools }} developer"}')
    model = BaseModel(id="b", path=tmp_path, context_tokens=8, owned_by="x", created=1)
    dialect = dialect_of(model)
    assert (dialect.knows_tools, dialect.knows_developer) == (True, True)


def test_an_operators_template_stands_in_for_the_models_own(tmp_path: Path) -> None:
    other = tmp_path / "other.jinja"
    other.write_text("{{ tools }} developer")
    named = base(tmp_path, "{{ messages }}", chat_template=other)
    assert dialect_of(named).knows_tools
    spec = EngineSpec(tmp_path, 8, chat_template=other)
    command = server_command(spec, tmp_path / "socket")
    assert command[command.index("--chat-template") + 1] == str(other)
    assert "--chat-template" not in server_command(EngineSpec(tmp_path, 8), tmp_path / "socket")


def test_a_template_that_knows_everything_is_left_alone() -> None:
    body = {"messages": [{"role": "developer", "content": "d"}, USER], "tools": [tool("f")]}
    assert chat_body(body, FULL) == body


def test_a_developer_is_the_system_to_older_templates() -> None:
    body = {"messages": [{"role": "developer", "content": "d"}, USER]}
    assert chat_body(body, BARE)["messages"] == [{"role": "system", "content": "d"}, USER]


def test_tools_are_described_where_the_template_drops_them() -> None:
    body = {"messages": [{"role": "system", "content": "Be brief."}, USER], "tools": [tool("f")]}
    system, user = chat_body(body, BARE)["messages"]
    assert system["content"].startswith("Be brief.\n\nYou may call")
    assert '{"type": "function", "function": {"name": "f"}}' in system["content"]
    assert '{"name": <function-name>, "arguments": <args-json-object>}' in system["content"]
    assert user == USER
    alone = chat_body({"messages": [USER], "tools": [tool("f")]}, BARE)["messages"]
    assert [message["role"] for message in alone] == ["system", "user"]
    none = {"messages": [USER], "tools": [tool("f")], "tool_choice": "none"}
    assert chat_body(none, BARE)["messages"] == [USER]


def test_calls_and_results_become_text_where_the_template_knows_none() -> None:
    messages = [
        {"role": "assistant", "content": "So:", "tool_calls": [CALL, CALL]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "r"}]},
    ]
    call = '<tool_call>\n{"name": "f", "arguments": {"a": 1e0}}\n</tool_call>'
    assert chat_body({"messages": messages}, BARE)["messages"] == [
        {"role": "assistant", "content": f"So:\n{call}\n{call}"},
        {"role": "user", "content": "<tool_response>\nr\n</tool_response>"},
    ]


def test_calls_in_an_unknown_form_are_refused_unless_they_are_forced() -> None:
    body = {"messages": [USER], "tools": [tool("f")]}
    with pytest.raises(InvalidRequest, match="tool_parser") as caught:
        chat_body(body, STRANGE)
    assert caught.value.code == "tools_not_supported"
    assert chat_body({**body, "tool_choice": "required"}, STRANGE)["tool_choice"] == "required"
    assert chat_body({**body, "tool_choice": "none"}, STRANGE)["tools"] == [tool("f")]


def test_forced_calls_keep_to_their_schema() -> None:
    tools = [tool("f"), tool("g", strict=False)]
    body = {"messages": [USER], "tools": tools, "tool_choice": "required"}
    assert chat_body(body, FULL)["tools"] == [tool("f", strict=True), tool("g", strict=False)]
    assert chat_body({**body, "tool_choice": "auto"}, FULL)["tools"] == tools


def test_allowed_tools_are_the_only_ones() -> None:
    allowed = {"mode": "auto", "tools": [tool("g")]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    body = {"messages": [USER], "tools": [tool("f"), tool("g")], "tool_choice": choice}
    sent = chat_body(body, FULL)
    assert (sent["tools"], sent["tool_choice"]) == ([tool("g")], "auto")


def test_a_format_without_a_schema_is_any_object() -> None:
    given = {"type": "json_schema", "json_schema": {"name": "x"}}
    body = {"messages": [USER], "response_format": given}
    assert chat_body(body, FULL)["response_format"] == {"type": "json_object"}


def test_the_best_are_chosen_by_their_log_probabilities() -> None:
    body = {"prompt": "a", "n": 2, "best_of": 5}
    assert text_body(body) == {"prompt": "a", "n": 5, "logprobs": 0}
    assert text_body({**body, "logprobs": 3})["logprobs"] == 3
    assert text_body({**body, "best_of": 2}) == {"prompt": "a", "n": 2}


@pytest.mark.parametrize("prepared", [lambda body: chat_body(body, FULL), text_body])
def test_values_mean_to_vllm_what_they_mean_to_openai(prepared: Any) -> None:
    body = {"messages": [USER], "top_p": 0, "seed": -1}
    sent = prepared(body)
    assert 0 < sent["top_p"] < 1e-6
    assert sent["seed"] == 2**62 - 1
    assert body["seed"] == -1
    assert prepared({"messages": [USER], "top_p": 0.5, "seed": 7})["seed"] == 7


def test_several_answers_may_be_the_likeliest_ones() -> None:
    greedy = {"temperature": 1, "top_k": 1}
    for body in (text_body, lambda each: chat_body(each, FULL)):
        assert greedy.items() <= body({"n": 2, "temperature": 0}).items()
        assert "top_k" not in body({"n": 2, "temperature": 0.5})
        assert "top_k" not in body({"n": 2})
        assert body({"n": 1, "temperature": 0})["temperature"] == 0
    assert greedy.items() <= text_body({"best_of": 2, "temperature": 0}).items()
