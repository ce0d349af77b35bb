"""The token ids that end a completion: a model may have several."""

from typing import Any

from jinja2 import TemplateError

#: A word that templates pass through unchanged.
_WORD = "rft"


def end_ids(model: Any, tokenizer: Any) -> set[int]:
    """Every id that ends a turn, by the model, its tokenizer, or its chat template.

    The three differ in practice: a tokenizer's end is often that of a document, and a model's list
    sometimes lacks the token with which its template ends what the assistant says. A completion
    that ends with any of them is complete.
    """
    configured = model.generation_config.eos_token_id
    ids = set(configured) if isinstance(configured, list | tuple) else {configured}
    return (ids | {tokenizer.eos_token_id, template_end(tokenizer)}) - {None}


def template_end(tokenizer: Any) -> int | None:
    """The special token that the chat template writes after what the assistant said, if any."""
    turns = [{"role": "user", "content": _WORD}, {"role": "assistant", "content": _WORD}]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False)
    except TemplateError:
        return None  # a template with demands of its own; rows say whether they meet them
    _, word, rest = text.rpartition(_WORD)
    after = tokenizer.encode(rest if word else "", add_special_tokens=False)
    special = set(tokenizer.all_special_ids) | {
        id for id, token in tokenizer.added_tokens_decoder.items() if token.special
    }
    return next((id for id in after if id in special), None)
