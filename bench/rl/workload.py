"""What all contenders are given: model, rows, grader, sizes and sampling, as one JSON file."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.machine import ROOT

BASE_MODEL = ROOT / ".models" / "SmolLM2-135M-Instruct"
DATA = ROOT / "examples" / "support" / "data"
TICKET_GRADER = ROOT / "examples" / "support" / "grader.json"

#: How near the text is to the ticket, which tells apart also texts that are no JSON at all.
NEARNESS_GRADER: dict[str, Any] = {
    "type": "text_similarity",
    "name": "nearness",
    "input": "{{sample.output_text}}",
    "reference": "{{item.ticket}}",
    "evaluation_metric": "fuzzy_match",
}


@dataclass(frozen=True)
class Workload:
    """One run of one contender; lengths in tokens.

    ``rows`` stand in the order in which they are trained on, ``prompts`` of them a step. The first
    ``unmeasured_steps`` of ``steps`` warm kernels and caches up and are not counted. ``start`` are
    the weights to start from, ``base`` the model that they were made of. All weights are trained,
    or with a ``lora_rank`` an adapter. ``engine`` is our sampler.
    """

    name: str
    start: str
    base: str
    grader: dict[str, Any]
    rows: list[dict[str, Any]]
    prompts: int
    group_size: int
    max_tokens: int
    steps: int
    unmeasured_steps: int = 1
    lora_rank: int = 0
    engine: str = "vllm"
    learning_rate: float = 1e-5
    temperature: float = 1.0
    seed: int = 1

    @classmethod
    def support(cls, *, steps: int, prompts: int, **fields: Any) -> "Workload":
        """A workload on the support rows, over and over in their order where there are too few."""
        lines = (DATA / "train.jsonl").read_text().splitlines()
        wanted = steps * prompts
        chosen = (lines * (wanted // len(lines) + 1))[:wanted]
        rows = [json.loads(line) for line in chosen]
        base = str(BASE_MODEL)
        return cls(rows=rows, base=base, steps=steps, prompts=prompts, **fields)

    def write(self, path: Path) -> None:
        """Write the workload for a process that runs it."""
        path.write_text(json.dumps(dataclasses.asdict(self), ensure_ascii=False))

    @classmethod
    def read(cls, path: Path) -> "Workload":
        """Read what :meth:`write` wrote."""
        return cls(**json.loads(path.read_text()))


def chat(row: dict[str, Any]) -> list[dict[str, str]]:
    """A row's messages with the role names that chat templates know."""
    names = {"developer": "system"}
    return [
        {"role": names.get(m["role"], m["role"]), "content": m["content"]} for m in row["messages"]
    ]
