"""The processes in which the API runs graders."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.services.grader_pool import KEPT
from graders.errors import GraderProcessError
from tests.api.examples import GRADER, error_of
from tests.api.graders import RUN, raised, run
from tests.api.running import Api


def processes() -> dict[int, str]:
    """Grader processes of this test run: process id → command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and f"\nPPid:\t{os.getpid()}\n" in (entry / "status").read_text()
            ):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if "-m graders" in command:
                    found[int(entry.name)] = command
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def test_graders_run_outside_the_api_and_are_kept_for_a_while(http: httpx.Client) -> None:
    before = processes()
    for sample in ("1", "2", "3"):
        run(http, GRADER, sample, item={"answer": "1"})
    assert len(processes().keys() - before.keys()) == 1
    for number in range(KEPT + 2):
        run(http, {**GRADER, "name": f"g{number}"}, "1", item={"answer": "1"})
    deadline = time.monotonic() + 30
    while len(processes().keys() - before.keys()) > KEPT:
        assert time.monotonic() < deadline, "processes pile up"
        time.sleep(0.02)


def test_secrets_of_the_api_stay_out_of_the_graders_process(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RFT_S3_SECRET_ACCESS_KEY", "hush")
    before = processes()
    run(http, {**GRADER, "name": "fresh"}, "1", item={"answer": "1"})
    (started,) = processes().keys() - before.keys()
    assert b"hush" not in Path(f"/proc/{started}/environ").read_bytes()


def test_an_idle_process_that_died_is_replaced(http: httpx.Client) -> None:
    before = processes()
    grader = {**GRADER, "name": "mortal"}
    run(http, grader, "1", item={"answer": "1"})
    (started,) = processes().keys() - before.keys()
    os.kill(started, signal.SIGKILL)
    os.waitid(os.P_PID, started, os.WEXITED | os.WNOWAIT)
    assert run(http, grader, "1", item={"answer": "1"})["reward"] == 1.0


@pytest.fixture
def stopped(api: Api, http: httpx.Client) -> Iterator[dict[str, Any]]:
    """A grader whose process stands still."""
    api.app.state.parts.graders._run_s = 1.5
    grader = {**GRADER, "name": "still"}
    before = processes()
    run(http, grader, "1", item={"answer": "1"})
    (started,) = processes().keys() - before.keys()
    os.kill(started, signal.SIGSTOP)
    yield grader
    assert not Path(f"/proc/{started}").exists()


def test_a_grader_that_hangs_blocks_nobody_and_ends(
    http: httpx.Client, api: Api, stopped: dict[str, Any]
) -> None:
    answers: list[dict[str, Any]] = []
    thread = threading.Thread(
        target=lambda: answers.append(run(http, stopped, "1", item={"answer": "1"}))
    )
    thread.start()
    headers = {"authorization": f"Bearer {api.key}"}
    with httpx.Client(base_url=api.url, headers=headers, timeout=30) as other:
        assert run(other, GRADER, "1", item={"answer": "1"})["reward"] == 1.0
    assert not answers
    thread.join(30)
    assert raised(answers[0]) == {"unresponsive_reward_error"}
    assert "within 1.5 s" in answers[0]["outcome"]["detail"]


@pytest.mark.parametrize(
    ("log", "status", "said"),
    [
        (
            "The grader is refused: model: No judge 'x'.",
            400,
            "Invalid grader: model: No judge 'x'.",
        ),
        ("Traceback: no space left", 503, "No grader process can be started right now."),
    ],
)
def test_a_grader_that_cannot_start_is_told_from_one_that_is_refused(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch, log: str, status: int, said: str
) -> None:
    def start(*_arguments: Any, **_options: Any) -> None:
        raise GraderProcessError(f"The grader process did not start: {log}")

    monkeypatch.setattr("api.services.grader_pool.start_grader_process", start)
    body = {"grader": GRADER, "model_sample": "a"}
    error = error_of(http.post(RUN, json=body), status)
    assert error["message"].startswith(said)
    assert "Traceback" not in error["message"]


def test_a_request_that_finds_no_place_is_told_to_come_again(
    http: httpx.Client, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.services.grader_pool.WAIT_S", 0.05)
    monkeypatch.setattr(api.app.state.parts.graders, "_places", asyncio.Semaphore(0))
    body = {"grader": GRADER, "model_sample": "a"}
    assert error_of(http.post(RUN, json=body), 503)["code"] == "graders_busy"
