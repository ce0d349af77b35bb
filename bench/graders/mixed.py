"""A batch with a grade that hangs, one that throws and one that is slow: the rest must not feel it.

The grader is a `multi` of a check and a judge; the judge does to three of the completions what
the `mood` of their rows says.
"""

import asyncio
import random
import time

from bench.fake_judge import FakeJudge, Reply, Seen
from bench.figures import Figure
from bench.graders.judging import ANSWER, SPEC, judged
from bench.graders.pure import SPEC as CHECK
from graders.engine import Graded
from graders.outcome import Score

BATCH = 512
SLOW_S = 2.0
ROUNDS = 5
#: What is asked: the rest takes at most so much longer.
MOST_TIMES = 1.1

GRADER = {
    "type": "multi",
    "name": "both",
    "graders": {"check": CHECK, "judge": SPEC},
    "calculate_output": "0.5 * check + 0.5 * judge",
}
#: In the first wave, where they hold a place for as long as they can.
MOODS = {7: "hangs", 23: "throws", 41: "slow"}


def measure() -> list[Figure]:
    """Seconds until every ordinary completion is graded, with and without the three."""
    with FakeJudge(_reply) as judge:
        runs = [[_run(judge, {}), _run(judge, MOODS)] for _ in range(ROUNDS)]
    floor, measured = (min(times) for times in zip(*runs, strict=True))
    return [
        Figure(
            name=f"{BATCH - len(MOODS)} grades beside one hung, one throwing, one slow",
            measured=measured,
            floor=floor,
            unit="s",
            floor_is="the same grades without the three",
            limit=f"at most {MOST_TIMES:g} × the floor",
            holds=measured <= MOST_TIMES * floor,
        )
    ]


def _run(judge: FakeJudge, moods: dict[int, str]) -> float:
    return asyncio.run(_seconds(judge.base_url, moods))


def _reply(seen: Seen) -> Reply:
    text = seen.body["messages"][0]["content"]
    if "hangs" in text:
        return Reply(mishap="hang")
    # From 50 to 150 ms: calls of one length would come in waves, and two places fewer could cost
    # a whole wave more or nothing.
    delay_s = 0.05 + 0.1 * random.Random(text).random()
    if "throws" in text:
        return Reply(mishap="half", delay_s=delay_s)
    return Reply(ANSWER.content, delay_s=SLOW_S if "slow" in text else delay_s)


async def _seconds(base_url: str, moods: dict[int, str]) -> float:
    engine = judged(GRADER, base_url)

    def grading(number: int) -> asyncio.Task[Graded]:
        row = {"answer": "", "mood": moods.get(number, "")}
        return asyncio.create_task(engine.grade({"output_text": f"text {number}"}, row))

    started = time.perf_counter()
    odd, ordinary = [], []
    for number in range(BATCH):
        if number not in MOODS:
            ordinary.append(grading(number))
        elif moods:
            odd.append(grading(number))
    graded = await asyncio.gather(*ordinary)
    seconds = time.perf_counter() - started
    for task in odd:
        task.cancel()
    await asyncio.gather(*odd, return_exceptions=True)
    await engine.close()
    assert all(isinstance(g.outcome, Score) for g in graded), "an ordinary completion failed"
    return seconds
