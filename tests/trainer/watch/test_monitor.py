"""The monitor grades what it is shown, counts what it cannot grade, and complains."""

from typing import Any, cast

from graders.client import GraderClient
from graders.engine import Graded
from graders.outcome import Abstain, Failure, Outcome, Score
from tests.trainer.rollouts import rollout
from trainer.watch.finding import Finding
from trainer.watch.monitor import Monitor


class Client:
    """Answers with outcomes made by hand."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = outcomes
        self.asked: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def grade_all(self, pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[Graded]:
        self.asked = pairs
        return [Graded(outcome, 0.0) for outcome in self.outcomes]


def test_scores_come_in_order_and_the_rest_is_counted() -> None:
    failure = Failure("model_grader_server_error", "It is away.", grader="judge")
    client = Client(Score(0.25), failure, Abstain("no opinion"), Score(0.75))
    said: list[Finding] = []
    monitor = Monitor(cast(GraderClient, client), said.append)
    shown = [rollout(1.0, text=f"text {i}", item={"row": i}) for i in range(4)]
    assert monitor.scores(shown) == [0.25, None, None, 0.75]
    assert [sample["output_text"] for sample, _ in client.asked] == [f"text {i}" for i in range(4)]
    assert [item for _, item in client.asked] == [{"row": i} for i in range(4)]
    assert monitor.metrics() == {"valid_reward_mean": 0.5, "failures": 1, "abstentions": 1}
    assert [f.data["failures"] for f in said] == [1]
    assert "could not grade 1 of 4 completions" in said[0].message
    assert "It is away." in said[0].message


def test_without_any_score_there_is_no_mean_and_a_warning() -> None:
    said: list[Finding] = []
    monitor = Monitor(cast(GraderClient, Client(Abstain("no opinion"))), said.append)
    assert monitor.scores([rollout(1.0)]) == [None]
    assert monitor.metrics()["valid_reward_mean"] is None
    assert [(f.code, f.data["abstentions"]) for f in said] == [("monitor_fails", 1)]
