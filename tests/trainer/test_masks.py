"""What counts as a completion and what is learnt depends on lengths and roles, never on ids."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainer.demonstrations import demonstrations_in
from trainer.packing import Group
from trainer.policy import Policy
from trainer.proof import plain_logprobs
from trainer.rollout.base import Sampling
from trainer.rollout.transformers_engine import TransformersEngine

#: Begin, end (which is the padding too) and start of a turn, and some letters.
BOS, END, START = 256, 257, 258
SPECIAL = [0, BOS, END, START]
LETTERS = [65, 66, 67]

few = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ids = st.lists(st.sampled_from(SPECIAL + LETTERS), min_size=1, max_size=7)
groups = st.lists(
    st.builds(Group, ids, st.lists(ids, min_size=1, max_size=3)), min_size=1, max_size=3
)


@few
@given(groups=groups)
def test_ids_that_pad_or_end_elsewhere_change_nothing(
    tiny_policy: Policy, groups: list[Group]
) -> None:
    """Completions with ends in their middle, none at their end, or of padding alone."""
    rows = [{"prompt": g.prompt, "completion": c} for g in groups for c in g.completions]
    with torch.no_grad():
        logp_N, _ = tiny_policy.logprobs(groups, temperature=1.0)
        expected_N = plain_logprobs(tiny_policy.model, rows)
    torch.testing.assert_close(logp_N, expected_N, atol=2e-5, rtol=1e-5)


@few
@given(
    ends=st.sets(st.integers(0, 259), min_size=1, max_size=120),
    longest=st.integers(1, 8),
    prompts=st.lists(ids, min_size=1, max_size=4),
    temperature=st.sampled_from([0.7, 1.0]),
    seed=st.integers(0, 2**20),
)
def test_a_completion_ends_with_its_first_end_or_is_truncated(
    tiny_policy: Policy,
    ends: set[int],
    longest: int,
    prompts: list[list[int]],
    temperature: float,
    seed: int,
) -> None:
    """Whatever ids end a turn; and its log-probabilities are the trainer's."""
    tiny_policy.model.generation_config.eos_token_id = sorted(ends)
    ends = tiny_policy.end_ids
    engine = TransformersEngine(tiny_policy)
    found = dict(engine.generate(prompts, Sampling(temperature, longest, seed)))
    assert sorted(found) == list(range(len(prompts)))
    for completion in found.values():
        *before, last = completion.token_ids
        assert not ends & set(before)
        assert completion.truncated == (last not in ends)
        assert len(before) + 1 == longest or not completion.truncated
        assert len(completion.logprobs) == len(completion.token_ids)
    sampled = [Group(p, [found[i].token_ids]) for i, p in enumerate(prompts)]
    with torch.no_grad():
        logp_N, _ = tiny_policy.logprobs(sampled, temperature=temperature)
    said_N = torch.tensor([x for i in range(len(prompts)) for x in found[i].logprobs])
    torch.testing.assert_close(logp_N, said_N, atol=1e-4, rtol=1e-4)


# --- what of a conversation is learnt -----------------------------------------------------------

TEMPLATE = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOL = {"type": "function", "function": {"name": "FIND", "parameters": {"type": "object"}}}

lower = st.text("abcde", min_size=1, max_size=5)
upper = st.text("ABCDE", min_size=1, max_size=5)


def _call(argument: str) -> dict[str, Any]:
    function = {"name": "find", "arguments": f'{{"q": "{argument}"}}'}
    return {"id": "c", "type": "function", "function": function}


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Turns in which users and tools speak in capitals, and the assistant in small letters."""
    messages: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()) or not messages:
            messages.append({"role": "user", "content": draw(upper)})
        weight = {"weight": draw(st.sampled_from([0, 1]))} if draw(st.booleans()) else {}
        if draw(st.booleans()):
            call = {"role": "assistant", "content": None, "tool_calls": [_call(draw(lower))]}
            result = {"role": "tool", "tool_call_id": "c", "content": draw(upper)}
            messages += [call | weight, result]
        else:
            messages.append({"role": "assistant", "content": draw(lower)} | weight)
    return messages


def _written(message: dict[str, Any]) -> str:
    calls = "".join(
        '<call>{"name": "find", "arguments": ' + call["function"]["arguments"] + "}</call>"
        for call in message.get("tool_calls", [])
    )
    return f"{message['content'] or ''}{calls}<|im_end|>"


def _spans(policy: Policy, learnt: list[bool], ids: list[int]) -> Iterator[str]:
    """The stretches that are learnt, cut after each end of a turn."""
    span: list[int] = []
    for token, counts in zip(ids, learnt, strict=True):
        if counts:
            span.append(token)
        if span and (token == END or not counts):
            yield policy.tokenizer.decode(span)
            span = []
    assert not span


@pytest.fixture
def tool_policy(tiny_policy: Policy) -> Policy:
    """A model whose template writes tools and calls."""
    tiny_policy.tokenizer.chat_template = TEMPLATE
    return tiny_policy


@few
@given(messages=conversations(), tools=st.sampled_from([None, [TOOL]]))
def test_assistants_messages_of_weight_one_are_learnt_and_nothing_else(
    tool_policy: Policy, messages: list[dict[str, Any]], tools: Any
) -> None:
    found = demonstrations_in({"messages": messages, "tools": tools}, tool_policy, "Row 1")
    spans = [s for d in found for s in _spans(tool_policy, d.learnt, d.target_ids)]
    spoken = [m for m in messages if m["role"] == "assistant" and m.get("weight") != 0]
    assert spans == [_written(message) for message in spoken]
    shown = tool_policy.tokenizer.apply_chat_template(
        [{**m, "content": m["content"] or ""} for m in _as_objects(messages)],
        tools=tools,
        tokenize=False,
    )
    for demonstration in found:
        whole = demonstration.prompt_ids + demonstration.target_ids
        assert shown.startswith(tool_policy.tokenizer.decode(whole))


def _as_objects(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Messages with the arguments of calls as templates expect them."""
    for message in messages:
        calls = [_as_object(call) for call in message.get("tool_calls", [])]
        yield {**message, "tool_calls": calls} if calls else message


def _as_object(call: dict[str, Any]) -> dict[str, Any]:
    argument = call["function"]["arguments"].split('"')[3]
    return {**call, "function": {"name": "find", "arguments": {"q": argument}}}
