"""A place to run jobs with the fake trainer on real storage, and to look at what came of them."""

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from core.keys import create_project
from core.methods import Method
from core.models import Checkpoint, Event, File, Job, Metric, Rollout
from core.resolve import resolve
from core.states import transition
from core.store import ObjectStore
from workers.context import Context
from workers.supervisor.attempt import Conduct
from workers.supervisor.supervise import run_next

FAKE_TRAINER = Path(__file__).parents[1] / "fakes" / "fake_trainer.py"
SEED = 7
STEPS = 6
WARM_STEPS = 2
GRADER = {
    "type": "string_check",
    "name": "same",
    "input": "{{sample.output_text}}",
    "reference": "{{item.answer}}",
    "operation": "eq",
}
METHOD = {
    "type": "reinforcement",
    "reinforcement": {
        "grader": GRADER,
        "hyperparameters": {"max_steps": STEPS, "batch_size": 2, "lora_rank": 4},
        "warm_start": {"reference_field": "answer"},
    },
}


def rows(count: int, first: int = 0) -> bytes:
    """Training rows as JSONL."""
    numbers = range(first, first + count)
    lines = [
        json.dumps({"messages": [{"role": "user", "content": f"Say {n}."}], "answer": str(n)})
        for n in numbers
    ]
    return "\n".join(lines).encode()


def wait_for(condition: Callable[[], Any], *, timeout_s: float = 60.0) -> Any:
    """What ``condition`` returns once that is true; the test fails when it never is."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return value


def expected_curve() -> list[tuple[str, int, float]]:
    """(phase, step, figure) of every step of an undisturbed run of the default script."""
    state = hashlib.sha256(str(SEED).encode()).hexdigest()
    curve = []
    for index in range(WARM_STEPS + STEPS):
        state = hashlib.sha256(state.encode()).hexdigest()
        figure = int(state[:8], 16) / 16**8
        if index < WARM_STEPS:
            curve.append(("warm_start", index + 1, 1.0 + figure))
        else:
            curve.append(("rl", index - WARM_STEPS + 1, figure))
    return sorted(curve)


@dataclass
class Running:
    """A supervisor at work in a thread."""

    thread: threading.Thread
    stopping: threading.Event

    def join(self) -> None:
        self.thread.join(60)
        assert not self.thread.is_alive(), "the supervisor does not end"


@dataclass
class Lab:
    """One project, a script for the fake trainer, and the worker's own parts."""

    context: Context
    memory: Path
    project_id: str

    @classmethod
    def open(cls, context: Context, memory: Path) -> "Lab":
        memory.mkdir()
        with context.sessions.begin() as session:
            project_id = create_project(session, "lab").id
        lab = cls(context, memory, project_id)
        lab.script()
        return lab

    # --- set-up -------------------------------------------------------------------------------

    def script(self, **plan: Any) -> None:
        """What the fake trainer does; ``mishaps`` maps a point to what happens there."""
        (self.memory / "script.json").write_text(
            json.dumps({"steps": STEPS, "warm_steps": WARM_STEPS, **plan})
        )

    def mishap(self, point: str, what: str, *, times: int = 1, **plan: Any) -> None:
        """Script one mishap."""
        self.script(mishaps={point: {"do": what, "times": times}}, **plan)

    def file(self, content: bytes, filename: str = "rows.jsonl") -> str:
        """Upload a file."""
        key = f"files/{hashlib.sha256(content + os.urandom(4)).hexdigest()}"
        sha256 = self.context.store.put_bytes(key, content)
        with self.context.sessions.begin() as session:
            file = File(
                project_id=self.project_id,
                filename=filename,
                purpose="fine-tune",
                bytes=len(content),
                sha256=sha256,
                object_key=key,
            )
            session.add(file)
            session.flush()
            return file.id

    def new_job(self, method: dict[str, Any] = METHOD, **columns: Any) -> str:
        """A job as the API leaves it: its files still to be validated."""
        values = {
            "project_id": self.project_id,
            "model": "base",
            "method": Method.model_validate(method).model_dump(exclude_none=True),
            "training_file": self.file(rows(12)),
            "validation_file": self.file(rows(12, first=100)),
            "seed": SEED,
            "suffix": "lab",
            "result_files": [],
        }
        with self.context.sessions.begin() as session:
            job = Job(**{**values, **columns})
            session.add(job)
            session.flush()
            return job.id

    def queued_job(self) -> str:
        """A validated job."""
        base = self.context.registry.get("base")
        assert base is not None
        method = resolve(
            Method.model_validate(METHOD),
            train_rows=12,
            validation_rows=12,
            warm_rows=12,
            model=base,
        )
        job_id = self.new_job()
        with self.context.sessions.begin() as session:
            transition(session, job_id, "queued", method=method)
        return job_id

    # --- running ------------------------------------------------------------------------------

    @property
    def conduct(self) -> Conduct:
        return Conduct(
            command=(sys.executable, str(FAKE_TRAINER), str(self.memory / "script.json")),
            store_retry_s=(0.01, 0.01),
            poll_s=0.05,
            exit_grace_s=10,
            upload_grace_s=0.5,
        )

    def run(self, *, store: ObjectStore | None = None) -> str | None:
        """One worker takes one job, here and now."""
        return self._run(threading.Event(), store)

    def run_all(self) -> None:
        """Workers take jobs until none is queued."""
        while self.run() is not None:
            pass

    def start(self, *, store: ObjectStore | None = None) -> Running:
        """One worker takes one job in a thread."""
        stopping = threading.Event()
        thread = threading.Thread(target=self._run, args=(stopping, store), daemon=True)
        thread.start()
        return Running(thread, stopping)

    def _run(self, stopping: threading.Event, store: ObjectStore | None) -> str | None:
        context = self.context
        if store is not None:
            context = Context(context.settings, context.sessions, store, context.registry)
        return run_next(context, owner="lab", stopping=stopping, conduct=self.conduct)

    def let_go(self) -> None:
        """Let a trainer that waits at a scripted point go on."""
        (self.memory / "go").touch()

    def move(self, job_id: str, to: str) -> None:
        """Change a job's status as the API does."""
        with self.context.sessions.begin() as session:
            transition(session, job_id, to)

    def reached(self, point: str) -> bool:
        """Whether a trainer has come to a scripted point."""
        return (self.memory / f"mishap-{point.replace(':', '_')}").exists()

    # --- looking ------------------------------------------------------------------------------

    def job(self, job_id: str) -> Job:
        with self.context.sessions() as session:
            return session.get_one(Job, job_id)

    def events(self, job_id: str) -> list[Event]:
        with self.context.sessions() as session:
            query = select(Event).where(Event.job_id == job_id).order_by(Event.seq)
            return list(session.scalars(query))

    def messages(self, job_id: str, **columns: Any) -> list[str]:
        wanted = columns.items()
        return [
            event.message
            for event in self.events(job_id)
            if all(getattr(event, name) == value for name, value in wanted)
        ]

    def curve(self, job_id: str) -> list[tuple[str, int, float]]:
        """(phase, step, figure) of every stored step."""
        figures = {"rl": "train_mean_reward", "warm_start": "train_loss"}
        with self.context.sessions() as session:
            stored = session.scalars(select(Metric).where(Metric.job_id == job_id)).all()
        return sorted(
            (m.phase, m.step, m.data[figures[m.phase]]) for m in stored if m.phase in figures
        )

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        """Checkpoints that are kept, oldest step first, the final one last."""
        with self.context.sessions() as session:
            query = (
                select(Checkpoint)
                .where(Checkpoint.job_id == job_id, Checkpoint.deleted_at.is_(None))
                .order_by(Checkpoint.is_final, Checkpoint.step)
            )
            return list(session.scalars(query))

    def rollouts(self, job_id: str) -> list[Rollout]:
        with self.context.sessions() as session:
            query = select(Rollout).where(Rollout.job_id == job_id).order_by(Rollout.step)
            return list(session.scalars(query))

    def remembered(self, name: str) -> list[Any]:
        """JSON lines that the fake trainer left: ``runs`` or ``control``."""
        path = self.memory / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def assert_as_if_undisturbed(self, job_id: str) -> None:
        """The job succeeded, and nothing that it left tells that something went wrong."""
        assert self.job(job_id).status == "succeeded", self.messages(job_id)
        assert self.curve(job_id) == expected_curve()
        steps = [(e.phase, e.step) for e in self.events(job_id) if e.type == "metrics"]
        assert steps == [("warm_start", n + 1) for n in range(WARM_STEPS)] + [
            ("rl", n + 1) for n in range(STEPS)
        ]
        tagged = [e.message for e in self.events(job_id) if e.step is not None]
        assert len(tagged) == len(set(tagged)), tagged
        assert [r.step for r in self.rollouts(job_id)] == [n + 1 for n in range(STEPS)]


def processes_of(text: str) -> list[int]:
    """Living processes whose command line holds ``text``."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if text in command and state != "Z":
            found.append(int(entry.name))
    return found


class RealLab(Lab):
    """A lab that starts the real trainer."""

    @property
    def conduct(self) -> Conduct:
        return Conduct(command=(sys.executable, "-m", "trainer"), poll_s=0.05)
