"""score_model: a judge that is out of order is tried again, and is never a score."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.fake_judge import Reply
from graders import Failure, Score
from graders.http.retry import Retry
from tests.graders.judging import judged, outcome, score_model

CASES: dict[str, Any] = {
    case["id"]: case["input"]
    for case in map(json.loads, (Path(__file__).parents[1] / "cases.jsonl").open())
}
GOOD = '{"result": 1}'


def raw(**body: Any) -> Reply:
    """A whole answer that is not the usual one."""
    return Reply(body=json.dumps(body).encode())


@pytest.mark.parametrize("recovers", [True, False])
def test_case_outage(recovers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["judge-outage"]
    waits: list[int] = []
    monkeypatch.setattr(Retry, "wait_s", lambda _retry, failed: waits.append(failed) or 0.001)
    script = [
        Reply(mishap="hang") if code == "timeout" else Reply(case["final"], status=code)
        for code in case["judge_http"]
    ]
    graded, server = judged(score_model(), script[: 4 if recovers else 3], timeout_s=0.5)
    assert waits == ([1, 2, 3] if recovers else [1, 2, 3, 4, 5, 6])
    assert graded.traces[0].attempts == len(server.requests)
    if recovers:
        assert graded.outcome == Score(1.0)
    else:
        assert isinstance(graded.outcome, Failure)
        assert (graded.outcome.kind, graded.outcome.blame) == (
            "model_grader_server_error",
            "infrastructure",
        )
        assert graded.traces[0].attempts == 6


@pytest.mark.parametrize(
    "trouble",
    [
        Reply(status=429, headers={"Retry-After": "0"}),
        Reply(status=500),
        Reply(mishap="close"),
        Reply(GOOD, mishap="half"),
        raw(error={"message": "overloaded", "code": 502}),
        Reply(body=b"<html>502 Bad Gateway</html>"),
        Reply(body=b""),
        Reply(body=b"[]"),
        Reply(body=b"\xff\xfe"),
    ],
)
def test_failures_of_infrastructure_are_tried_again(trouble: Reply) -> None:
    graded, server = judged(score_model(), [trouble, GOOD])
    assert graded.outcome == Score(1.0)
    assert (graded.traces[0].attempts, len(server.requests)) == (2, 2)
    failed = outcome(score_model(), [trouble], attempts=2)
    assert isinstance(failed, Failure)
    assert failed.kind == "model_grader_server_error"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(status=401), "status 401: scripted failure"),
        (Reply(status=404, body=b"not here"), "status 404: not here"),
        (Reply(status=302, headers={"Location": "http://127.0.0.1:1/"}), "redirects are not"),
        (Reply(body=b"x" * 5_000_000), "4,000,000 bytes"),
    ],
)
def test_final_failures_are_not_tried_again(reply: Reply, reason: str) -> None:
    graded, server = judged(score_model(), [reply, GOOD])
    assert isinstance(graded.outcome, Failure)
    assert graded.outcome.kind == "model_grader_server_error"
    assert reason in graded.outcome.detail
    assert len(server.requests) == 1


@pytest.mark.parametrize("mishap", ["hang", "drip"])
def test_slow_judge(mishap: Any) -> None:
    slow = Reply(json.dumps({"result": 1, "pad": "x" * 5_000}), mishap=mishap)
    failed = outcome(score_model(), [slow], timeout_s=0.2, attempts=2)
    assert isinstance(failed, Failure)
    assert failed.kind == "model_grader_server_error"
    assert "no answer within 0.2 s" in failed.detail
