"""Where the items of a run come from: bodies and files, read, checked and passed over."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from core import eval_runs
from core.errors import StoreUnreachable
from core.eval_items import Entry, ItemSchema
from core.models import File
from graders import schema_keywords
from tests.evals.bench import EXACT, Lab, completions, inline, numbered, wait_for
from workers.evals import source


def test_an_item_without_a_field_of_the_template_is_an_error(lab: Lab) -> None:
    template = [{"role": "user", "content": "{{item.questoin}}"}]
    messages = {"type": "template", "template": template}
    content = numbered(2)
    content[1]["item"]["questoin"] = "Hi"
    run_id = lab.queued_run(data_source=completions(inline(content), input_messages=messages))
    assert lab.finished(run_id).result_counts["errored"] == 1
    item = lab.worker.items(run_id)[0]
    assert item.sample is not None
    assert "did you mean item.question?" in item.sample["error"]["message"]
    assert len(lab.model.requests) == 1


@pytest.mark.parametrize(
    "messages",
    [
        {"type": "template", "template": [{"role": "user", "content": "{{item.questoin}}"}]},
        {"type": "item_reference", "item_reference": "item.questoin"},
    ],
)
def test_input_that_reads_what_no_item_has_fails_the_run(
    lab: Lab, messages: dict[str, Any]
) -> None:
    data_source = completions(inline(numbered(2)), input_messages=messages)
    run = lab.finished(lab.queued_run(data_source=data_source))
    assert run.error is not None
    assert run.error["code"] == "invalid_data_source"
    assert run.error["message"].startswith("The input reads item.questoin, which no item has;")


def test_stored_items_are_passed_over_beside_the_heartbeat(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = lab.queued_run(content=numbered(100))

    def stop() -> None:
        wait_for(lambda: lab.worker.positions(run_id))
        lab.model.open.clear()
        lab.worker.stopping.set()

    lab.worker.meanwhile(stop)
    stored = len(lab.worker.positions(run_id))
    lab.worker.stopping.clear()
    lab.model.open.set()
    readers: list[int] = []
    read = source.read_entry

    def reading(raw: Any) -> Entry:
        readers.append(threading.get_ident())
        return read(raw)

    monkeypatch.setattr(source, "read_entry", reading)
    assert lab.finished(run_id).result_counts["passed"] == 100
    # All are read once to be checked, and those that are stored a second time.
    assert len(readers) == 200
    assert threading.get_ident() not in readers[: 100 + stored]


def test_a_run_that_is_canceled_while_its_items_are_checked_ends_soon(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = lab.queued_run(content=numbered(1_000))
    checked: list[int] = []

    def slow(_schema: ItemSchema, _item: dict[str, Any]) -> None:
        checked.append(1)
        time.sleep(0.01)

    def cancel() -> None:
        wait_for(lambda: checked)
        with lab.worker.sessions.begin() as session:
            eval_runs.cancel(session, run_id)

    monkeypatch.setattr(ItemSchema, "check", slow)
    lab.worker.meanwhile(cancel)
    assert lab.worker.run(run_id).status == "canceled"
    assert len(checked) < 1_000


def stored_file(lab: Lab, content: bytes) -> str:
    """Store a file of the lab's project; its id."""
    lab.worker.store.put_bytes("k", content)
    with lab.worker.sessions.begin() as session:
        file = File(
            project_id=lab.project_id,
            filename="f",
            purpose="evals",
            bytes=len(content),
            sha256="",
            object_key="k",
        )
        session.add(file)
        session.flush()
        return file.id


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ('{"item": {"question": 2, "answer": "b"}}', "Item 2 cannot be used: It does not fit"),
        ('{"item": [], "sample": {}}', "Item 2 cannot be used: Its 'item' must be an object."),
        ('{"item": {}, "smaple": {}}', "'smaple' beside 'item'"),
        ("nothing", "Line 2"),
    ],
)
def test_a_bad_line_fails_the_run_before_anything_is_sampled(
    lab: Lab, second: str, words: str
) -> None:
    first = json.dumps(numbered(1)[0])
    file_id = stored_file(lab, f"{first}\n{second}\n".encode())
    run_id = lab.queued_run(data_source=completions({"type": "file_id", "id": file_id}))
    run = lab.finished(run_id)
    assert run.error is not None
    assert (run.status, run.error["code"]) == ("failed", "invalid_data_source")
    assert words in run.error["message"]
    assert lab.model.requests == []


def test_a_field_that_no_line_has_fails_the_run(lab: Lab) -> None:
    criterion = {**EXACT, "reference": "{{item.answr}}"}
    file_id = stored_file(lab, json.dumps(numbered(1)[0]).encode())
    data_source = completions({"type": "file_id", "id": file_id})
    run = lab.finished(lab.queued_run(criterion, data_source=data_source))
    assert run.error is not None
    assert run.error["message"].endswith("no item has; did you mean item.answer?")
    assert lab.model.requests == []


def test_a_deleted_file_fails_the_run(lab: Lab) -> None:
    run = lab.finished(lab.queued_run(data_source=completions({"type": "file_id", "id": "file-x"})))
    assert run.error is not None
    assert run.error["code"] == "file_not_found"


def test_a_store_that_is_away_for_a_while_is_waited_for(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_id = stored_file(lab, json.dumps(numbered(1)[0]).encode())
    data_source = completions({"type": "file_id", "id": file_id})
    calls: list[str] = []
    get_file = lab.worker.store.get_file

    def away(key: str, path: Path) -> None:
        calls.append(key)
        if len(calls) == 1:
            raise StoreUnreachable("http://store", "refused")
        get_file(key, path)

    monkeypatch.setattr(lab.worker.store, "get_file", away)
    assert lab.finished(lab.queued_run(data_source=data_source)).status == "completed"

    def gone(_key: str, _path: Path) -> None:
        raise StoreUnreachable("http://store", "refused")

    monkeypatch.setattr(lab.worker.store, "get_file", gone)
    run = lab.finished(lab.queued_run(data_source=data_source))
    assert run.error is not None
    assert run.error["code"] == "storage_unavailable"
    assert "http://store" not in run.error["message"]


def test_a_pause_while_an_item_is_checked_is_not_held_against_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schema_keywords, "MAX_SECONDS", 0.05)
    schema = ItemSchema({"properties": {"q": {"type": "string"}}, "required": ["q"]})
    refill = schema_keywords.Budget.refill

    def paused(budget: schema_keywords.Budget, chars: int) -> None:
        refill(budget, chars)
        time.sleep(0.1)

    monkeypatch.setattr(schema_keywords.Budget, "refill", paused)
    schema.check({"q": "a"})
