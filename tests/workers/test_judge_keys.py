"""Who knows the keys of judges: the process of the grader, and nobody else."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.judges import JudgeBook
from graders.client import GraderProcess, start_grader_process
from graders.http import HttpConfig
from graders.judges.config import JudgeConfig
from graders.services import ServicesConfig
from tests.graders.judging import score_model
from tests.workers.lab import Lab
from tests.workers.validating import error_of, method_with
from workers.serving.target import parse_target
from workers.supervisor.jobdir import make_spec

KEY = "sk-of-the-judge"
ENDPOINT = {
    "type": "endpoint",
    "name": "mine",
    "url": "https://grader.example.com/",
    "headers": {"Authorization": "Bearer very-secret"},
}


@pytest.fixture
def judges(lab: Lab) -> JudgeBook:
    """The lab's worker knows one judge."""
    judge = JudgeConfig(model="judge", base_url="http://127.0.0.1:1/v1", api_key=KEY)
    book = JudgeBook(ServicesConfig(judges=(judge,), http=HttpConfig()))
    vars(lab.context)["judges"] = book
    return book


@pytest.mark.usefixtures("judges")
def test_grader_process_gets_the_key_and_the_trainer_does_not(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = lab.queued_job()
    with lab.context.sessions.begin() as session:
        job = session.get_one(type(lab.job(job_id)), job_id)
        method = json.loads(json.dumps(job.method))
        method["reinforcement"]["grader"] = score_model()
        job.method = method
    seen: dict[str, dict[str, str]] = {}

    def start(spec: Any, directory: Path, *, env: dict[str, str]) -> GraderProcess:
        seen["grader"] = env
        return start_grader_process(spec, directory, env=env)

    def train(_command: list[str], **given: Any) -> Any:
        seen["trainer"] = given["environment"]
        raise OSError("as far as this test goes")

    monkeypatch.setattr("workers.supervisor.graders.start_grader_process", start)
    monkeypatch.setattr("workers.supervisor.attempt.TrainerProcess", train)
    with pytest.raises(OSError, match="as far as this test goes"):
        lab.run()
    assert KEY in seen["grader"]["RFT_GRADER_SERVICES"]
    assert KEY not in json.dumps(seen["trainer"])


def test_orders_of_the_trainer_hold_no_headers(lab: Lab) -> None:
    job = lab.job(lab.queued_job())
    job.method["reinforcement"]["grader"] = dict(ENDPOINT)
    orders = make_spec(lab.context, job).model_dump_json()
    assert "very-secret" not in orders
    assert '"Authorization":"**********"' in orders


def test_base_model_as_a_judge_is_what_the_serving_service_understands(lab: Lab) -> None:
    [served] = [judge for judge in lab.context.judges.config.judges if judge.model == "base"]
    target = parse_target(served.headers["x-rft-model"])
    assert (target.base, target.artifact) == ("base", None)
    assert str(served.url("/chat/completions")).endswith("/v1/chat/completions")


@pytest.mark.usefixtures("judges")
def test_judge_that_was_taken_away_since_fails_the_job(lab: Lab) -> None:
    job_id = lab.new_job(method_with(grader=score_model(model="gone")))
    error = error_of(lab, job_id)
    assert error["param"] == "method.reinforcement.grader.model"
    assert "Unknown judge 'gone'; known: judge" in error["message"]
