"""What is learnt of a conversation, as the ids that a sampler would see and write."""

from typing import Any

import pytest
import torch

from trainer.data import prompt_ids
from trainer.demonstrations import Demonstration, demonstrations_in
from trainer.errors import InvalidData
from trainer.policy import Policy
from trainer.preference.learn import sums
from trainer.supervised.loss import learnt_tokens

END = "<|im_end|>"
CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"q": "x"}'}}
TOOLS_TEMPLATE = (
    "{% for t in tools or [] %}[{{ t['function']['name'] }}]{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}"
    "{% for c in m['tool_calls'] or [] %}<call>{{ c['function']['name'] }}"
    "({{ c['function']['arguments']['q'] }}){% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: Leaves out all that the assistant said before the last message.
FORGETFUL_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['role'] != 'assistant' or loop.last %}{{ m['content'] }}{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: Opens an answer with a thought, which it leaves out where it repeats one.
THINKING_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str | None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def found(policy: Policy, *messages: dict[str, Any], tools: Any = None) -> list[Demonstration]:
    row = {"messages": list(messages), **({"tools": tools} if tools else {})}
    return demonstrations_in(row, policy, "Row 1 of train.jsonl")


def learnt(policy: Policy, demonstration: Demonstration) -> str:
    text: str = policy.tokenizer.decode(demonstration.learnt_ids)
    return text


def test_every_answer_is_learnt_in_one_row(tiny_policy: Policy) -> None:
    (row,) = found(tiny_policy, user("a"), assistant("b"), user("c"), assistant("d"))
    assert learnt(tiny_policy, row) == f"b{END}d{END}"
    assert row.prompt_ids == prompt_ids(tiny_policy.tokenizer, [user("a")])
    whole = [*row.prompt_ids, *row.target_ids]
    later = prompt_ids(tiny_policy.tokenizer, [user("a"), assistant("b"), user("c")])
    assert whole[: len(later)] == later
    assert tiny_policy.tokenizer.decode(whole[len(later) :]) == f"d{END}"


def test_a_row_of_several_answers_is_what_each_alone_would_be(tiny_policy: Policy) -> None:
    """Bit for bit the same ids, and the same log-probabilities."""
    messages = [user("a"), assistant("b"), user("cc"), assistant("ddd"), assistant("e")]
    (row,) = found(tiny_policy, *messages)
    alone = []
    for index in (1, 3, 4):
        unlearnt = [{**m, "weight": 0} if m["role"] == "assistant" else m for m in messages]
        (one,) = found(tiny_policy, *unlearnt[:index], messages[index])
        alone.append(one)
    with torch.no_grad():
        together, _ = learnt_tokens(tiny_policy, [row])
        apart, _ = learnt_tokens(tiny_policy, alone)
    torch.testing.assert_close(together, apart, atol=2e-5, rtol=0)


@pytest.mark.parametrize(
    ("weights", "said"),
    [((0, 1), f"d{END}"), ((1, 0), f"b{END}"), ((None, 1), f"b{END}d{END}")],
)
def test_a_weight_of_0_leaves_a_message_out(
    tiny_policy: Policy, weights: tuple[Any, Any], said: str
) -> None:
    first, second = (assistant(t, weight=w) for t, w in zip("bd", weights, strict=True))
    (row,) = found(tiny_policy, user("a"), first, user("c"), second)
    assert learnt(tiny_policy, row) == said


def test_answers_in_a_row_are_each_learnt(tiny_policy: Policy) -> None:
    (row,) = found(tiny_policy, user("a"), assistant("b"), assistant("c"))
    assert learnt(tiny_policy, row) == f"b{END}c{END}"


def test_a_template_that_rewrites_what_was_said_makes_a_row_for_each(tiny_policy: Policy) -> None:
    tiny_policy.tokenizer.chat_template = FORGETFUL_TEMPLATE
    first, second = found(tiny_policy, user("a"), assistant("b"), user("c"), assistant("d"))
    assert [learnt(tiny_policy, row) for row in (first, second)] == [f"b{END}", f"d{END}"]
    seen = tiny_policy.tokenizer.decode(second.prompt_ids)
    assert seen.endswith(f"assistant\n{END}\n<|im_start|>user\nc{END}\n<|im_start|>assistant\n")


def test_tool_calls_are_learnt_as_the_template_writes_them(tiny_policy: Policy) -> None:
    tiny_policy.tokenizer.chat_template = TOOLS_TEMPLATE
    tools = [{"type": "function", "function": {"name": "find", "parameters": {}}}]
    result = {"role": "tool", "tool_call_id": "c", "content": "r"}
    messages = [user("a"), assistant(None, tool_calls=[CALL]), result, assistant("b")]
    (row,) = found(tiny_policy, *messages, tools=tools)
    assert tiny_policy.tokenizer.decode(row.prompt_ids).startswith("[find]")
    assert learnt(tiny_policy, row) == f"<call>find(x){END}b{END}"


@pytest.mark.parametrize("template", [None, THINKING_TEMPLATE])
def test_calls_that_the_template_leaves_out_are_refused(
    tiny_policy: Policy, template: str | None
) -> None:
    if template is not None:
        tiny_policy.tokenizer.chat_template = template
    with pytest.raises(InvalidData, match=r"Row 1 of train.jsonl calls tools.*weight to 0"):
        found(tiny_policy, user("a"), assistant(None, tool_calls=[CALL]))


def test_a_template_that_opens_answers_in_its_own_way_is_followed_by_the_text(
    tiny_policy: Policy,
) -> None:
    tiny_policy.tokenizer.chat_template = THINKING_TEMPLATE
    (row,) = found(tiny_policy, user("a"), assistant("b"))
    assert tiny_policy.tokenizer.decode(row.prompt_ids).endswith("assistant\n<think>\n")
    assert learnt(tiny_policy, row) == f"b{END}"


@pytest.mark.parametrize("template", [None, THINKING_TEMPLATE])
@pytest.mark.parametrize(
    "said", [{"refusal": "No."}, {"content": [{"type": "refusal", "refusal": "No."}]}]
)
def test_a_refusal_is_learnt_like_an_answer(
    tiny_policy: Policy, template: str | None, said: dict[str, Any]
) -> None:
    if template is not None:
        tiny_policy.tokenizer.chat_template = template
    (row,) = found(tiny_policy, user("a"), {"role": "assistant", "content": None, **said})
    assert learnt(tiny_policy, row) == f"No.{END}"


def test_learnt_tokens_are_told_by_their_place_not_by_what_they_are(tiny_policy: Policy) -> None:
    """The padding token of this model is the one that ends turns; it is learnt all the same."""
    tokenizer = tiny_policy.tokenizer
    (row,) = found(tiny_policy, user("a"), assistant(f"b{END}b"))
    assert learnt(tiny_policy, row) == f"b{END}b{END}"
    assert row.learnt == [True] * len(row.target_ids)
    assert tokenizer.encode(END, add_special_tokens=False) == [tokenizer.eos_token_id]


def test_other_tokens_than_those_learnt_do_not_enter_the_loss(tiny_policy: Policy) -> None:
    (row,) = found(tiny_policy, user("a"), assistant("b"), user("c"), assistant("d"))
    with torch.no_grad():
        logp_N, hit_N = learnt_tokens(tiny_policy, [row])
    ((everything,),) = sums({"policy": tiny_policy}, [row.group])
    assert len(logp_N) == len(hit_N) == row.tokens == 4 < len(row.target_ids)
    assert float(logp_N.sum()) > everything
