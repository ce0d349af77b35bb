"""What a job samples and measures can be searched while it runs, and as if nothing had happened."""

from sqlalchemy import select

from core.models import MetricPoint, MetricSeries, Rollout, Sample
from core.series import STEPS as STEPS_SERIES
from tests.workers.lab import STEPS, Lab, expected_curve


def rewards(lab: Lab, job_id: str) -> list[tuple[int, float | None]]:
    with lab.context.sessions() as session:
        query = select(Sample.step, Sample.reward).where(Sample.job_id == job_id)
        return [(step, reward) for step, reward in session.execute(query.order_by(Sample.step))]


def points(lab: Lab, job_id: str, name: str) -> list[tuple[int, float | None]]:
    query = (
        select(MetricPoint.step, MetricPoint.value)
        .join(MetricSeries, MetricSeries.id == MetricPoint.series_id)
        .where(MetricSeries.job_id == job_id, MetricSeries.phase == "rl")
        .where(MetricSeries.name == name)
    )
    with lab.context.sessions() as session:
        return [(s, v) for s, v in session.execute(query.order_by(MetricPoint.step))]


def test_every_step_has_its_rows_also_after_a_crash(lab: Lab) -> None:
    job_id = lab.queued_job()
    lab.mishap("after_step:5", "kill")
    lab.run_all()
    lab.assert_as_if_undisturbed(job_id)
    curve = [(step, figure) for phase, step, figure in expected_curve() if phase == "rl"]
    assert rewards(lab, job_id) == curve
    assert points(lab, job_id, "train_mean_reward") == curve
    assert points(lab, job_id, STEPS_SERIES) == [(n, float(n)) for n in range(1, STEPS + 1)]
    with lab.context.sessions() as session:
        rollouts = session.scalars(select(Rollout)).all()
    assert {row.index_state for row in rollouts} == {"indexed"}
    assert all(row.bytes for row in rollouts)
    assert all(checkpoint.bytes for checkpoint in lab.checkpoints(job_id))
