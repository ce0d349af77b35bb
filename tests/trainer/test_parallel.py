"""Two processes compute what one does."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.trainer.parts import against_reference, likelihood, refuse, vanish, weights_of
from tests.trainer.reports import reports_of
from trainer import follower
from trainer.errors import RankLost
from trainer.job import load_policy
from trainer.packing import Group
from trainer.parallel import Team
from trainer.policy import Policy
from trainer.spec import TrainSpec


def _ragged(count: int) -> list[Group]:
    draw = random.Random(3)

    def ids(longest: int) -> list[int]:
        return [draw.randrange(256) for _ in range(draw.randint(1, longest))]

    return [Group(ids(9), [ids(12) for _ in range(draw.randint(1, 3))]) for _ in range(count)]


def _updates(team: Team, policy: Policy, groups: list[Group]) -> list[Any]:
    """Results, gradients and gradient norms of three updates."""
    policy.start_optimizer()
    seen: list[Any] = []
    for _ in range(3):
        seen.append(team.accumulate(likelihood, {"policy": policy}, groups))
        seen.append({n: m.grad.clone() for n, m in policy.masters.items() if m.grad is not None})
        seen.append(policy.update(1e-3))
    return seen


def _same(team: Team, together: Policy, alone: Policy) -> None:
    """Three updates by the team and by one process agree, and so do the weights of its ranks."""
    groups = _ragged(7)
    expected = _updates(Team(), alone, groups)
    found = _updates(team, together, groups)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(together.masters, alone.masters, atol=1e-6, rtol=1e-6)
    (leader, ours), (other, theirs) = team.map(weights_of, {"policy": together}, [0, 1])
    assert leader == os.getpid() != other
    assert ours.keys() == theirs.keys() == together.trainable.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_two_processes_compute_what_one_does(make_job: Callable[..., Path]) -> None:
    """And raise here what goes wrong there; only the end of one of them ends the team."""
    job_dir = make_job("two", processes=2)
    spec = TrainSpec.load(job_dir)
    policy = load_policy(spec, job_dir)
    with Team.start(spec, job_dir) as team:
        assert team.size == 2
        models = {"policy": policy, "reference": policy.reference()}
        _same(team, policy, load_policy(spec, job_dir))
        apart = team.map(against_reference, models, _ragged(4))
        assert apart == pytest.approx(Team().map(against_reference, models, _ragged(4)), abs=1e-6)
        assert min(apart) > 1e-4
        with pytest.raises(MemoryError, match="item 1") as caught:
            team.accumulate(refuse, {"policy": policy}, [0, 1])
        assert "in refuse" in caught.value.__notes__[0]  # where it was raised, over there
        assert team.map(refuse, models, [0, 2, 4]) == [0, 2, 4]
        with pytest.raises(RankLost, match="process 1 ended with code 7"):
            team.map(vanish, {"policy": policy}, [os.getpid()] * 2)


@pytest.mark.slow
def test_two_processes_train_an_adapter_as_one_does(make_job: Callable[..., Path]) -> None:
    job_dir = make_job("two", processes=2, adapter={"rank": 4})
    spec = TrainSpec.load(job_dir)
    with Team.start(spec, job_dir) as team:
        _same(team, load_policy(spec, job_dir), load_policy(spec, job_dir))


@pytest.mark.slow
def test_a_process_that_cannot_start_is_named(make_job: Callable[..., Path]) -> None:
    job_dir = make_job("gone", processes=2)
    spec = TrainSpec.load(job_dir)
    (job_dir / "spec.json").unlink()
    with (
        pytest.raises(RankLost, match="process 1 ended with code 1"),
        Team.start(spec, job_dir),
    ):
        pass


def test_a_process_whose_leader_is_gone_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    kernel = SimpleNamespace(prctl=lambda option, _: asked.append(option))
    monkeypatch.setattr("trainer.follower.ctypes.CDLL", lambda _: kernel)
    not_its_parent = str(os.getpid())
    monkeypatch.setattr("sys.argv", ["follower", "no job", "1", "no store", not_its_parent])
    follower.main()
    assert asked == [1]


def test_alone_nothing_is_started(make_job: Callable[..., Path]) -> None:
    job_dir = make_job("alone")
    with Team.start(TrainSpec.load(job_dir), job_dir) as team:
        assert team.size == 1
        assert not list(job_dir.glob("team-*"))


@pytest.mark.slow
def test_a_job_with_critic_and_reference_learns_alike(make_job: Callable[..., Path]) -> None:
    changes: dict[str, Any] = {
        "algorithm": "ppo",
        "kl_coefficient": 0.05,
        "rollout_epochs": 2,
        "minibatches": 2,
        "mask_truncated": False,
        "max_steps": 3,
    }

    def figures(processes: int) -> list[Any]:
        job_dir = make_job(f"job-{processes}", processes=processes, hyperparameters=changes)
        metrics = [r for r in reports_of(job_dir) if r["type"] == "metrics"]
        assert [r["phase"] for r in metrics][-3:] == ["rl"] * 3
        names = ("loss", "train_loss", "grad_norm", "value_loss", "kl_to_reference", "entropy")
        return [{name: value for name in names if (value := r["data"].get(name))} for r in metrics]

    alone = figures(1)
    assert alone[-1].keys() >= {"loss", "grad_norm", "value_loss", "kl_to_reference"}
    for one, two in zip(alone, figures(2), strict=True):
        assert two == pytest.approx(one, rel=1e-3, abs=1e-5)


@pytest.mark.slow
def test_a_job_whose_process_dies_ends_with_a_reason(make_job: Callable[..., Path]) -> None:
    job_dir = make_job(processes=2, hyperparameters={"max_steps": 1000, "mask_truncated": False})
    trainer = subprocess.Popen(
        [sys.executable, "-m", "trainer", str(job_dir)], stdout=subprocess.PIPE, text=True
    )
    assert trainer.stdout is not None
    said: list[dict[str, Any]] = []
    for line in trainer.stdout:
        said.append(json.loads(line))
        if said[-1]["type"] == "metrics" and said[-1]["phase"] == "rl":
            [rank] = _children_of(trainer.pid)
            os.kill(rank, signal.SIGKILL)
            break
    said += [json.loads(line) for line in trainer.stdout]
    assert trainer.wait() == RankLost.exit_code
    assert said[-1]["reason"] == "rank_lost"
    assert "process 1 ended with code -9" in said[-1]["message"]


def _children_of(pid: int) -> list[int]:
    """Followers that a process has started."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"trainer.follower" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found
