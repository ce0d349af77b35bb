"""A judge that is gone: the job is set aside with examples, and goes on when it is back."""

from urllib.parse import urlsplit

import pytest

from bench.fake_judge import FakeJudge, Reply, Seen
from core.models import Job
from core.states import transition
from tests.workers.lab import Lab

pytestmark = pytest.mark.slow

JUDGE = {
    "type": "score_model",
    "name": "judge",
    "model": "gone",
    "input": [{"role": "user", "content": "Rate {{sample.output_text}}"}],
}


class Mortal(FakeJudge):
    """A judge that answers so many questions, and then none."""

    def __init__(self, answers: int) -> None:
        self.left = answers
        super().__init__(self._answer)

    def _answer(self, seen: Seen) -> Reply:
        self.left -= 1
        if self.left < 0:
            return Reply(status=503)
        return Reply(f'{{"result": {(len(seen.raw) % 5) / 4}}}')


def _job(lab: Lab, judge: FakeJudge, *, warm_start: bool) -> str:
    settings = lab.context.settings
    settings.judges_file = settings.data_dir / "judges.toml"
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    settings.judges_file.write_text(
        f'[[judges]]\nmodel = "gone"\nbase_url = "{judge.base_url}"\nattempts = 1\n'
    )
    vars(lab.context).pop("judges", None)  # read when the context was made
    settings.outbound_hosts = urlsplit(judge.base_url).netloc
    job_id = lab.queued_job()
    with lab.context.sessions.begin() as session:
        job = session.get_one(Job, job_id)
        block = job.method["reinforcement"]
        values = block["hyperparameters"] | {
            "max_steps": 2,
            "max_completion_tokens": 8,
            "group_size": 2,
            "lora_rank": 0,
            "eval_interval": 1,
            "eval_samples": 2,
        }
        given = {"grader": JUDGE, "hyperparameters": values}
        if not warm_start:
            given["warm_start"] = None
        job.method = {**job.method, "reinforcement": block | given}
    return job_id


@pytest.mark.parametrize("warm_start", [False, True])
def test_a_job_whose_judge_is_gone_is_paused_with_examples(
    real_lab: Lab, *, warm_start: bool
) -> None:
    """Without a warm start the first step notices, with one the evaluation that chooses."""
    with Mortal(answers=0) as judge:
        job_id = _job(real_lab, judge, warm_start=warm_start)
        real_lab.run()
    assert real_lab.job(job_id).status == "paused", real_lab.messages(job_id)
    [event] = [e for e in real_lab.events(job_id) if (e.data or {}).get("examples")]
    assert "could not be graded" in event.message
    assert event.level == "error"
    outcome = event.data["examples"][0]["outcome"]
    assert (outcome["kind"], outcome["grader"]) == ("model_grader_server_error", "judge")


def test_a_job_whose_judge_came_back_goes_on(real_lab: Lab) -> None:
    with Mortal(answers=0) as judge:
        job_id = _job(real_lab, judge, warm_start=False)
        real_lab.run()
        assert real_lab.job(job_id).status == "paused"
        judge.left = 10_000
        with real_lab.context.sessions.begin() as session:
            transition(session, job_id, "queued")
        real_lab.run()
    assert real_lab.job(job_id).status == "succeeded", real_lab.messages(job_id)
