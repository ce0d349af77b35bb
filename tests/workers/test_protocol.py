"""Reading a trainer's reports."""

import json

import pytest

from workers.supervisor.protocol import Metrics, ProtocolError, parse
from workers.supervisor.reports import metrics_message


def test_report_is_read_by_its_type() -> None:
    line = {"type": "metrics", "phase": "rl", "step": 1, "total_steps": 2, "data": {"a": 1}}
    assert parse(json.dumps(line).encode()) == Metrics(**line)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"[]",
        b'{"type": "unheard_of"}',
        b'{"type": "warning"}',
        b'{"type": "warning", "message": "x", "extra": 1}',
        b'{"type": "metrics", "phase": "rl", "step": 1, "total_steps": 2, "data": {"a": NaN}}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_report_is_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse(line)


def step(**data: float | None) -> Metrics:
    return Metrics(type="metrics", phase="rl", step=10, total_steps=20, data=data)


def test_message_of_a_step_with_validation_is_openais() -> None:
    report = step(
        train_mean_reward=0.421, full_valid_mean_reward=0.68, full_valid_mean_parse_error=0.0
    )
    assert metrics_message(report) == (
        "Step 10/20 , train mean reward=0.42, full validation mean reward=0.68, "
        "full validation mean parse error=0.00"
    )


def test_message_of_a_step_without_validation_leaves_it_out() -> None:
    report = step(train_mean_reward=0.5, full_valid_mean_reward=None)
    assert metrics_message(report) == "Step 10/20 , train mean reward=0.50"


def test_message_of_a_warm_start_step_is_that_of_supervised_training() -> None:
    report = Metrics(
        type="metrics", phase="warm_start", step=1, total_steps=4, data={"train_loss": 1.234}
    )
    assert metrics_message(report) == "Step 1/4: training loss=1.23"
