"""What a trainer's end means."""

import signal

import pytest

from workers.supervisor.outcome import explain
from workers.supervisor.protocol import Ended


def ended(reason: str) -> Ended:
    return Ended(type="ended", reason=reason, message="Because.")


@pytest.mark.parametrize(
    ("report", "exit_code", "stopping", "reason"),
    [
        (ended("done"), 0, False, None),
        # The report came after everything was stored; a crash in the teardown changes nothing.
        (ended("done"), -signal.SIGSEGV, False, None),
        (ended("paused"), 3, False, "paused"),
        (ended("paused"), 3, True, "worker_stopping"),
        (ended("diverged"), 5, True, "diverged"),
        (ended("invalid_data"), 8, False, "invalid_data"),
        (None, -signal.SIGKILL, False, "killed"),
        (None, -signal.SIGSEGV, False, "killed"),
        (None, -signal.SIGKILL, True, "worker_stopping"),
        (None, 1, False, "error"),
        # Nobody has reported that the work is done.
        (None, 0, False, "error"),
    ],
)
def test_last_report_counts_and_the_exit_code_stands_in(
    report: Ended | None, exit_code: int, stopping: bool, reason: str | None
) -> None:
    ending = explain(report, exit_code, stopping=stopping)
    assert (ending and ending.reason) == reason


def test_signal_is_named() -> None:
    ending = explain(None, -signal.SIGSEGV, stopping=False)
    assert ending is not None and "SIGSEGV" in ending.message


@pytest.mark.parametrize(
    ("reason", "code", "param"),
    [
        ("invalid_data", "invalid_training_file", "training_file"),
        ("unusable_model", "model_not_trainable", "model"),
        ("rank_lost", None, None),
    ],
)
def test_an_end_names_what_of_the_job_is_to_blame(
    reason: str, code: str | None, param: str | None
) -> None:
    ending = explain(ended(reason), 1, stopping=False)
    assert ending is not None and (ending.code, ending.param) == (code, param)
