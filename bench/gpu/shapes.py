"""Models with random weights in the shapes of real ones, and rows that they can be trained on."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from bench.rl.workload import NEARNESS_GRADER, Workload

CHAT_TEMPLATE = (
    "{% for m in messages %}<turn> {{ m['content'] }} <end> {% endfor %}"
    "{% if add_generation_prompt %}<turn>{% endif %}"
)
SPECIAL = ("<turn>", "<end>")


@dataclass(frozen=True)
class Shape:
    """A Qwen3 of a size, and the step that it is measured with; lengths in tokens."""

    hidden: int
    feed_forward: int
    layers: int
    heads: int
    key_value_heads: int
    head: int
    vocabulary: int
    prompts: int
    group_size: int
    prompt_tokens: int
    max_tokens: int


SHAPES = {
    "0.6B": Shape(1024, 3072, 28, 16, 8, 128, 151_936, 16, 8, 256, 512),
    "4B": Shape(2560, 9728, 36, 32, 8, 128, 151_936, 16, 8, 256, 512),
    # Small enough for any machine: it shows that the measuring works.
    "tiny": Shape(64, 128, 2, 4, 2, 16, 512, 2, 2, 16, 8),
}


def make_model(shape: Shape, directory: Path) -> None:
    """Write random weights in bfloat16 and a tokenizer with a word for each id."""
    config = Qwen3Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        head_dim=shape.head,
        max_position_embeddings=4096,
        eos_token_id=1,
        pad_token_id=1,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config.dtype = torch.bfloat16
    with torch.device(device):
        model = Qwen3ForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(directory)
    del model
    # The runs that follow are other processes, and need the device's memory.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    _tokenizer(shape.vocabulary).save_pretrained(directory)


def make_workload(
    name: str, shape: Shape, model: Path, *, lora_rank: int, engine: str, steps: int
) -> Workload:
    """Random words to random words: every completion runs to the cap, and no two score the same."""
    draw = random.Random(0)
    # The template adds three words.
    rows = [
        {
            "messages": [{"role": "user", "content": _words(draw, shape, shape.prompt_tokens - 3)}],
            "ticket": _words(draw, shape, shape.max_tokens),
        }
        for _ in range(steps * shape.prompts)
    ]
    sizes: dict[str, Any] = {
        "prompts": shape.prompts,
        "group_size": shape.group_size,
        "max_tokens": shape.max_tokens,
    }
    return Workload(
        name=name,
        start=str(model),
        base=str(model),
        grader=NEARNESS_GRADER,
        rows=rows,
        steps=steps,
        lora_rank=lora_rank,
        engine=engine,
        learning_rate=1e-6,
        **sizes,
    )


def _words(draw: random.Random, shape: Shape, count: int) -> str:
    return " ".join(f"w{draw.randrange(len(SPECIAL), shape.vocabulary)}" for _ in range(count))


def _tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    names = [*SPECIAL, *(f"w{index}" for index in range(len(SPECIAL), vocabulary))]
    words = {name: index for index, name in enumerate(names)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=SPECIAL[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=SPECIAL[1],
        pad_token=SPECIAL[1],
        additional_special_tokens=[SPECIAL[0]],
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast
