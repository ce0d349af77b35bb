"""Running the examples of docs/graders.md, those with a judge or an endpoint against a fake."""

import json
from typing import Any

from bench.fake_judge import FakeJudge, Reply, Script, Seen, Step
from graders import Outcome
from tests.graders.examples import grade
from tests.graders.judging import judged, judged_group


def outcomes(spec: dict[str, Any], example: dict[str, Any]) -> list[Outcome]:
    """The outcome of each completion of an example."""
    if "completions" in example:
        script = _naming_texts(example["judge"])
        texts, item = example["completions"], example["item"]
        return [g.outcome for g in judged_group(spec, script, texts, item)[0]]
    if "reply" in example:
        script: Script = [Reply(body=example["reply"].encode())]
        with FakeJudge(script) as server:
            spec = {**spec, "url": f"{server.root}/score"}
            return [judged(spec, [], example["output_text"], example["item"])[0].outcome]
    if "judge" in example:
        script = _naming_texts(example["judge"])
        return [judged(spec, script, example["output_text"], example["item"])[0].outcome]
    return [grade(spec, example["output_text"], example["item"])]


def _naming_texts(replies: list[str]) -> Script:
    """A judge whose replies name the candidates' texts where a real one's name their ids."""
    given = iter(replies)
    last = ""

    def script(seen: Seen) -> Step:
        nonlocal last
        last = next(given, last)
        reply = last
        for text, name in _shown(seen).items():
            reply = reply.replace(json.dumps(text), json.dumps(name))
        return reply

    return script


def _shown(seen: Seen) -> dict[str, str]:
    content = seen.body["messages"][0]["content"]
    start, end = content.find("\n[\n"), content.rfind("\n]\n")
    if start < 0 or end < 0:
        return {}
    return {shown["text"]: shown["id"] for shown in json.loads(content[start : end + 2])}
