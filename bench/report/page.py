"""`docs/benchmarks.md`: what was measured, section after section, and nothing that was not."""

import json
from pathlib import Path
from typing import Any

from bench.report import learning, rl, tables

HEAD = """\
# Benchmarks

Written by `make bench-report` from the JSON under `bench/results/`; each table says on which
machine and commit it was measured. A figure stands beside its floor: what the same machine does
without us, or in the least code that could do the job.
"""

LEARNING = """\
`make bench-learning` trains the same weights on the same tasks with this trainer and with
`GRPOTrainer` of TRL 1.16: three tasks of
[reasoning-gym](https://github.com/open-thought/reasoning-gym) and the [demo's](demo.md). Both sides
begin with the weights of the same short supervised phase, train all of SmolLM2-135M, see the same 8
prompts at each step with 8 completions each, and use the same grader, learning rate with its rise
and fall, temperature, loss (`grpo`, no KL) and number of updates. Each samples and computes in its
own way: TRL with transformers, in bfloat16 autocast over float32 weights, its defaults; ours with
vLLM.

The weights after every few steps are scored on 128 held-out rows by the same code for both: two
completions of each row, sampled as in training, and a greedy one besides. Scores are means over
seeds; intervals are 95 % bootstrap intervals over seeds and rows. Seconds of a step run from its
first sample to weights that sample again; loading, scoring and writing weights are left out on both
sides.
"""

RL = """\
`make bench-rl` runs reinforcement steps of this trainer, of TRL and of a plain loop with the same
vLLM sampler on the same rows.
"""

DEMO = "`python -m bench.demo` runs the [demo](demo.md) with several seeds: 192 held-out messages."

GRADERS = "`make bench-graders`; what the graders are is said in [graders](graders.md)."

API = "`make bench-api`; what the paths do is said in [the API](api.md)."


def write(results: Path, page: Path) -> None:
    """Write the page and, in a folder of its name beside it, its plots."""
    plots = page.with_suffix("")
    plots.mkdir(exist_ok=True)
    for old in plots.glob("*.svg"):
        old.unlink()
    sections = [
        HEAD,
        f"## Learning\n\n{LEARNING}",
        learning.section(results / "learning", plots, plots.name),
        *_titled("Reinforcement steps", RL, rl.section(results)),
        *_titled("Graders", GRADERS, [tables.figures(_read(results / "graders.json")["figures"])]),
        *_titled("API", API, [tables.figures(_read(results / "api.json")["figures"])]),
        f"## Demo\n\n{DEMO}",
        tables.demo(_read(results / "demo.json")),
    ]
    page.write_text("\n\n".join(part.strip() for part in sections) + "\n", encoding="utf-8")


def _titled(title: str, text: str, parts: list[str]) -> list[str]:
    """A section, where there is something to say."""
    return [f"## {title}\n\n{text}", *parts] if parts else []


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
