"""Evals in tests: their bodies, and a worker that goes through what is queued."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from core.evals import read_criterion
from core.models import Eval, EvalItem, EvalRun
from core.registry import Registry
from core.settings import Settings
from core.store import ObjectStore
from workers.context import Context
from workers.evals.run import Manner, run_next

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"question": {"type": "string"}, "answer": {"type": "string"}},
    "required": ["question", "answer"],
}
CUSTOM: dict[str, Any] = {"type": "custom", "item_schema": SCHEMA, "include_sample_schema": True}
EXACT: dict[str, Any] = {
    "type": "string_check",
    "name": "exact",
    "operation": "eq",
    "input": "{{sample.output_text}}",
    "reference": "{{item.answer}}",
}
ITEMS = [{"item": {"question": f"{n}?", "answer": "Hello"}} for n in range(3)]


def completions(source: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A data source that samples from the base model."""
    template = [{"role": "user", "content": "Say: {{item.question}}"}]
    return {
        "type": "completions",
        "source": source,
        "model": "base-1",
        "input_messages": {"type": "template", "template": template},
        **changes,
    }


def inline(content: list[dict[str, Any]]) -> dict[str, Any]:
    """A source whose items stand in the body."""
    return {"type": "file_content", "content": content}


@dataclass
class Worker:
    """A worker that takes runs from the API's database, here and now."""

    settings: Settings
    sessions: sessionmaker[Session]
    store: ObjectStore
    transport: httpx.AsyncBaseTransport | None = None
    waits_s: tuple[float, ...] = (0.01, 0.01)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def context(self) -> Context:
        """What a worker process has open."""
        registry = Registry.load(self.settings.models_file)
        return Context(self.settings, self.sessions, self.store, registry)

    def work(self) -> list[str]:
        """Go through every queued run; returns their ids."""
        done = []
        while (run_id := self.next()) is not None:
            done.append(run_id)
        return done

    def next(self) -> str | None:
        """Work on one run."""
        manner = Manner(self.waits_s, self.transport)
        return run_next(self.context, owner="test", stopping=self.stopping, manner=manner)

    def meanwhile(self, action: Callable[[], None]) -> None:
        """Work on one run in a thread while `action` happens here."""
        thread = threading.Thread(target=self.next, daemon=True)
        thread.start()
        action()
        thread.join(30)
        assert not thread.is_alive(), "the worker does not end"

    def run(self, run_id: str) -> EvalRun:
        """The row of a run."""
        with self.sessions() as session:
            return session.get_one(EvalRun, run_id)

    def positions(self, run_id: str) -> list[int]:
        """The positions of a run's stored items, in order."""
        return [item.position for item in self.items(run_id)]

    def items(self, run_id: str) -> list[EvalItem]:
        """The stored items of a run, in order."""
        query = select(EvalItem).where(EvalItem.run_id == run_id).order_by(EvalItem.position)
        with self.sessions() as session:
            return list(session.scalars(query))


class ModelScript:
    """The serving service as an httpx transport; `answer` may be replaced, and `requests` grow."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, Any]] = []
        #: What a request gets; called with its number, from 1.
        self.answer: Callable[[int], httpx.Response | Exception] = lambda _: said("Hello")
        #: Requests wait until it is set.
        self.open = threading.Event()
        self.open.set()

    @property
    def transport(self) -> httpx.MockTransport:
        """What the worker's client gets."""
        return httpx.MockTransport(self._handle)

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(json.loads(request.content))
        self.headers.append(json.loads(request.headers["x-rft-model"]))
        number = len(self.requests)
        while not self.open.is_set():
            await asyncio.sleep(0.005)
        answer = self.answer(number)
        if isinstance(answer, Exception):
            raise answer
        return answer


def said(text: str) -> httpx.Response:
    """An answer of the model server."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return httpx.Response(200, json={"choices": [choice], "usage": usage})


def refused(status: int, message: str, code: str | None = None) -> httpx.Response:
    """An error of the model server."""
    return httpx.Response(status, json={"error": {"message": message, "code": code}})


@dataclass
class Lab:
    """One project, a worker and the model that it asks."""

    worker: Worker
    model: ModelScript
    project_id: str

    def queued_run(
        self,
        *criteria: dict[str, Any],
        content: list[dict[str, Any]] = ITEMS,
        data_source: dict[str, Any] | None = None,
        **columns: Any,
    ) -> str:
        """A queued run, as the API leaves it; its id."""
        config = {"type": "custom", "schema": {"type": "object", "properties": {"item": SCHEMA}}}
        with self.worker.sessions.begin() as session:
            owner = Eval(
                project_id=self.project_id,
                name="e",
                data_source_config=config,
                testing_criteria=[read_criterion(each) for each in criteria or (EXACT,)],
            )
            session.add(owner)
            session.flush()
            run = EvalRun(
                project_id=self.project_id,
                eval_id=owner.id,
                name="r",
                data_source=data_source or completions(inline(content)),
                **{"model": "base-1", **columns},
            )
            session.add(run)
            session.flush()
            return run.id

    def finished(self, run_id: str) -> EvalRun:
        """Work until nothing is queued, and return the run."""
        self.worker.work()
        return self.worker.run(run_id)


def numbered(count: int) -> list[dict[str, Any]]:
    """Items whose answer is what the model says."""
    return [{"item": {"question": f"{n}?", "answer": "Hello"}} for n in range(count)]


def wait_for(condition: Callable[[], Any]) -> None:
    """Wait until something holds; the test fails when it never does."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)
