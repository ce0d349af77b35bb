"""An engine with a judge that answers after a while; what the judge benchmarks share."""

import json
from typing import Any

from bench.fake_judge import Reply
from graders.engine import Engine
from graders.services import ServicesConfig

CONCURRENCY = 64
ANSWER = Reply(json.dumps({"steps": [], "result": 1.0}))

SPEC = {
    "type": "score_model",
    "name": "judge",
    "model": "fake",
    "input": [{"role": "user", "content": "Rate this: {{sample.output_text}} {{item.mood}}"}],
}


def judged(spec: dict[str, Any], base_url: str) -> Engine:
    """An engine that may ask the judge at this address, so many questions at a time."""
    judge = {"model": "fake", "base_url": base_url, "max_concurrency": CONCURRENCY}
    host = base_url.split("/")[2]
    config = {"judges": [judge], "http": {"allow_hosts": [host]}}
    return Engine(spec, ServicesConfig.model_validate(config))
