"""`endpoint`: a service of the user's own, which may do anything."""

import asyncio
import json
from typing import Any

import pytest

from bench.fake_judge import FakeJudge, Reply, Script
from graders import Engine, Failure, Graded, Score, SpecError, parse_grader, warnings
from graders.http import HttpConfig, Retry
from graders.masking import MASK, masked
from graders.services import ServicesConfig
from tests.graders.examples import multi

SAMPLE = {"output_text": "an answer", "output_tools": [], "choices": []}


def endpoint(url: str = "https://example.com/score", **changes: Any) -> dict[str, Any]:
    """A grader of the user's."""
    return {"type": "endpoint", "name": "mine", "url": url} | changes


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    retry = Retry(attempts=4, budget_s=30, base_s=0.001)
    monkeypatch.setattr("graders.endpoint.RETRY", retry)


def graded(script: Script, **changes: Any) -> tuple[Graded, FakeJudge]:
    """Grade with an endpoint that the operator allows although it is local."""
    config = ServicesConfig(http=HttpConfig(allow_hosts=("127.0.0.1",)))
    with FakeJudge(script) as server:

        async def run() -> Graded:
            engine = Engine(endpoint(f"{server.root}/score?key=k", **changes), config)
            try:
                return await engine.grade(SAMPLE, {"answer": "é"})
            finally:
                await engine.close()

        return asyncio.run(run()), server


def reply(body: Any) -> Reply:
    return Reply(body=body if isinstance(body, bytes) else json.dumps(body).encode())


def test_request_is_azures() -> None:
    result, server = graded([reply({"score": 0.5})], headers={"Authorization": "Bearer s"})
    assert result.outcome == Score(0.5)
    [seen] = server.requests
    assert seen.path == "/score?key=k"
    assert seen.headers["authorization"] == "Bearer s"
    assert set(seen.body) == {"sample", "item", "trace_id"}
    assert (seen.body["sample"], seen.body["item"]) == (SAMPLE, {"answer": "é"})
    assert len(seen.body["trace_id"]) == 36
    assert result.traces[0].output == '{"score": 0.5}'


def test_trace_id_stays_over_retries_and_differs_between_grades() -> None:
    script = [Reply(status=500), reply({"score": 1})]
    result, first = graded(script)
    assert result.traces[0].attempts == 2
    _, second = graded(script)
    ids = [seen.body["trace_id"] for seen in (*first.requests, *second.requests)]
    assert ids[0] == ids[1] != ids[2] == ids[3]


@pytest.mark.parametrize("value", [0, 1, -3.5, 1e300, 7])
def test_any_finite_number_is_a_score(value: float) -> None:
    assert graded([reply({"score": value})])[0].outcome == Score(float(value))


def test_range_is_explicit() -> None:
    failed = graded([reply({"score": 7})], range=[0, 1])[0].outcome
    assert isinstance(failed, Failure)
    assert failed.kind == "endpoint_reply_error"
    clipped = graded([reply({"score": 7})], range=[0, 1], range_policy="clip")[0].outcome
    assert isinstance(clipped, Score)
    assert (clipped.value, clipped.notes[0].kind) == (1.0, "endpoint_reply_error")


@pytest.mark.parametrize(
    "body",
    [
        *({"score": True}, {"score": "0.5"}, {"score": None}, {"score": [1]}, {"result": 1}),
        *([0.5], 0.5, "0.5", None, {}, {"score": {}}),
        *(b"", b"  ", b"0.8/1", b'{"score": NaN}', b'{"score": 1e999}', b'{"score": Infinity}'),
        *(b'{"score": 1} {"score": 0}', b'{"score": 1, "score": 0}', b"\xff", b"<html></html>"),
        *(b'{"score": ' + b"9" * 400 + b"}", b"[" * 100_000),
    ],
)
def test_replies_without_a_score_fail_at_once(body: Any) -> None:
    result, server = graded([reply(body)])
    assert isinstance(result.outcome, Failure)
    assert (result.outcome.kind, result.outcome.blame) == ("endpoint_reply_error", "grader")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 400, 401, 404, 422])
def test_refusals_and_redirects_are_final(status: int) -> None:
    answer = Reply(status=status, body=b"no such thing", headers={"Location": "http://127.0.0.1:1"})
    result, server = graded([answer])
    assert isinstance(result.outcome, Failure)
    assert result.outcome.kind == "endpoint_reply_error"
    assert f"status {status}: no such thing" in result.outcome.detail
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "trouble", [Reply(status=503), Reply(mishap="close"), Reply(body=b"x" * 50, mishap="half")]
)
def test_three_retries_and_then_the_sample_is_dropped(trouble: Reply) -> None:
    result, server = graded([trouble])
    assert isinstance(result.outcome, Failure)
    assert (result.outcome.kind, result.outcome.blame) == (
        "endpoint_server_error",
        "infrastructure",
    )
    assert len(server.requests) == 4 == result.traces[0].attempts


def test_hanging_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graders.endpoint.RETRY", Retry(attempts=4, budget_s=0.3))
    result, _ = graded([Reply(mishap="hang")])
    assert isinstance(result.outcome, Failure)
    assert result.outcome.kind == "unresponsive_reward_error"


def test_reply_of_more_than_a_megabyte() -> None:
    fits = b'{"score": 1}' + b" " * (1_000_000 - 12)
    assert graded([reply(fits)])[0].outcome == Score(1.0)
    result, server = graded([reply(fits + b" ")])
    assert isinstance(result.outcome, Failure)
    assert "more than the 1,000,000 bytes" in result.outcome.detail
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://127.0.0.1/", "loopback"),
        ("https://[::ffff:10.0.0.1]/", "private"),
        ("https://169.254.169.254/latest", "link-local"),
        ("http://example.com/", "must be called by https"),
    ],
)
def test_urls_inside_are_refused_when_the_grader_is_built(url: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason) as caught:
        Engine(endpoint(url))
    assert caught.value.param == "url"


def test_name_that_points_inside_is_refused_at_run_time() -> None:
    async def run() -> Graded:
        engine = Engine(endpoint("https://localhost/"))
        try:
            return await engine.grade(SAMPLE, {})
        finally:
            await engine.close()

    failed = asyncio.run(run()).outcome
    assert isinstance(failed, Failure)
    assert "which may not be called" in failed.detail
    assert (failed.kind, failed.blame) == ("other_error", "grader"), "nobody else can mend it"


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"url": "ftp://x/"}, "url"),
        ({"url": "https://user:pw@example.com/"}, "url"),
        ({"headers": {"Host": "x"}}, "headers.Host"),
        ({"headers": {"content-LENGTH": "1"}}, "headers.content-LENGTH"),
        ({"headers": {"X Y": "1"}}, "headers.X Y"),
        ({"headers": {"X": "a\r\nHost: b"}}, "headers.X"),
        ({"headers": {"X": "é"}}, "headers.X"),
        ({"headers": {"X": MASK}}, "headers.X"),
        ({"headers": {"X": 1}}, "headers.X"),
        ({"rate_limit": 0}, "rate_limit"),
        ({"rate_limit": -1}, "rate_limit"),
        ({"body": {}}, "body"),
    ],
)
def test_spec_is_refused(changes: dict[str, Any], param: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_grader(endpoint(**changes))
    assert caught.value.param == param


def test_no_message_shows_a_header() -> None:
    for headers in ({"X": "secret\n"}, {"X Y": "secret"}, {"X": ["secret"]}, {"Host": "secret"}):
        with pytest.raises(SpecError) as caught:
            parse_grader(endpoint(headers=headers))
        assert "secret" not in str(caught.value)
    assert "secret" not in repr(parse_grader(endpoint(headers={"X": "secret"})))


def test_graders_of_one_host_share_its_rate() -> None:
    """Two graders, 20 samples each: 40 requests at 50 a second, of which 5 may come at once."""
    with FakeJudge([reply(b'{"score": 1}')]) as server:
        children = {key: endpoint(f"{server.root}/{key}") for key in ("a", "b")}
        config = ServicesConfig(http=HttpConfig(allow_hosts=("127.0.0.1",)))

        async def run() -> list[Graded]:
            engine = Engine(multi(children, "a + b"), config)
            try:
                return await asyncio.gather(*(engine.grade(SAMPLE, {}) for _ in range(20)))
            finally:
                await engine.close()

        outcomes = [graded.outcome for graded in asyncio.run(run())]
    assert {o.value for o in outcomes if isinstance(o, Score)} == {2.0}
    times = sorted(seen.at for seen in server.requests)
    assert len(times) == 40
    assert times[-1] - times[0] > 0.65


def test_rate_above_what_is_sent_is_warned_about() -> None:
    assert warnings(parse_grader(endpoint(rate_limit=50))) == []
    [warning] = warnings(parse_grader(endpoint(rate_limit=100)))
    assert "at most 50" in warning


def test_masking_reaches_children_and_leaves_the_grader_alone() -> None:
    mine = endpoint(headers={"Authorization": "Bearer s", "X": "y"})
    whole = {"type": "multi", "name": "m", "graders": {"a": mine}, "calculate_output": "a"}
    wire = parse_grader(whole).wire()
    shown = masked(wire)
    assert shown["graders"]["a"]["headers"] == {"Authorization": MASK, "X": MASK}
    assert wire["graders"]["a"]["headers"]["X"] == "y"
    assert {**shown, "graders": {}} == {**wire, "graders": {}}
