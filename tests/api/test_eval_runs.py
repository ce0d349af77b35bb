"""Runs of evals through the official client, worked on by a real worker and grader process."""

import json
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from api import pagination
from api.services import eval_runs
from core.models import Outbox
from core.settings import Settings
from core.store import ObjectStore
from tests.api.examples import error_of
from tests.api.test_evals import EXACT, SIMILAR, create
from tests.evals.bench import ITEMS, Worker, completions, inline
from tests.fakes.model_server import ModelServer
from workers.cleaning import clean_once


@pytest.fixture
def worker(
    settings: Settings,
    sessions: sessionmaker[Session],
    store: ObjectStore,
    model_server: ModelServer,
) -> Worker:
    """A worker on the API's own database, store and model server."""
    return Worker(settings, sessions, store, model_server.transport)


def start(client: openai.OpenAI, eval_id: str, data_source: dict[str, Any], **more: Any) -> Any:
    """Start a run."""
    return client.evals.runs.create(eval_id, data_source=data_source, **more)  # type: ignore[arg-type]


def test_a_run_samples_grades_and_counts(
    client: openai.OpenAI, http: httpx.Client, worker: Worker, model_server: ModelServer
) -> None:
    made = create(client, EXACT, SIMILAR)
    content = [*ITEMS, {"item": {"question": "other", "answer": "Bye"}}]
    sampling = {"temperature": 0.5, "seed": 7, "max_completion_tokens": 20}
    data_source = completions(inline(content), sampling_params=sampling)
    run = start(client, made.id, data_source, name="first", metadata={"a": "b"})
    assert (run.status, run.name, run.model, run.metadata) == (
        "queued", "first", "base-1", {"a": "b"},
    )  # fmt: skip
    assert worker.work() == [run.id]

    done = client.evals.runs.retrieve(run.id, eval_id=made.id)
    assert done.status == "completed"
    counts = done.result_counts
    assert (counts.total, counts.passed, counts.failed, counts.errored) == (4, 3, 1, 0)
    assert [(each.passed, each.failed) for each in done.per_testing_criteria_results] == [
        (3, 1)
    ] * 2
    ids = [each.id for each in made.testing_criteria]  # type: ignore[union-attr]
    assert [each.testing_criteria for each in done.per_testing_criteria_results] == ids
    (usage,) = done.per_model_usage
    assert (usage.run_model_name, usage.invocation_count, usage.total_tokens) == ("base-1", 4, 20)
    assert (done.error.code, done.error.message) == ("", "")
    assert http.get(done.report_url).json()["data"][0]["run_id"] == run.id

    asked = {json.loads(each.content)["messages"][0]["content"] for each in model_server.requests}
    assert asked == {"Say: 0?", "Say: 1?", "Say: 2?", "Say: other"}
    assert model_server.body["temperature"] == 0.5
    assert (model_server.body["seed"], model_server.body["max_completion_tokens"]) == (7, 20)
    assert model_server.body["top_p"] == 1.0
    assert model_server.model_header == {"base": "base-1-2024", "artifact": None, "kind": None}


def test_output_items_show_sample_and_results(client: openai.OpenAI, worker: Worker) -> None:
    made = create(client, EXACT, SIMILAR)
    content = [*ITEMS, {"item": {"question": "other", "answer": "Bye"}}]
    run = start(client, made.id, completions(inline(content)))
    worker.work()
    listed = list(client.evals.runs.output_items.list(run.id, eval_id=made.id, limit=2))
    assert [each.datasource_item_id for each in listed] == [0, 1, 2, 3]
    first, last = listed[0], listed[-1]
    assert first.id.startswith("outputitem_")
    assert (first.status, last.status) == ("pass", "fail")
    assert first.datasource_item == {"question": "0?", "answer": "Hello"}
    exact = last.results[0]
    assert (exact.name, exact.score, exact.passed) == ("exact", 0, False)
    assert first.sample.input[0].content == "Say: 0?"
    assert first.sample.output[0].content == "Hello"
    assert (first.sample.finish_reason, first.sample.model) == ("stop", "base-1")
    assert (first.sample.seed, first.sample.temperature, first.sample.top_p) == (42, 1, 1)
    assert first.sample.max_completion_tokens == 2048
    failed = client.evals.runs.output_items.list(run.id, eval_id=made.id, status="fail").data
    assert [each.id for each in failed] == [last.id]
    backwards = client.evals.runs.output_items.list(run.id, eval_id=made.id, order="desc").data
    assert [each.id for each in backwards] == [each.id for each in listed][::-1]
    again = client.evals.runs.output_items.retrieve(last.id, eval_id=made.id, run_id=run.id)
    assert again.to_dict() == last.to_dict()
    with pytest.raises(openai.NotFoundError, match="No such output item"):
        client.evals.runs.output_items.retrieve("outputitem_x", eval_id=made.id, run_id=run.id)


def test_samples_that_are_there_are_graded_as_they_are(
    client: openai.OpenAI, http: httpx.Client, worker: Worker, model_server: ModelServer
) -> None:
    made = create(client)
    rows = [
        {"item": {"question": "a", "answer": "x"}, "sample": {"output_text": "x"}},
        {"item": {"question": "b", "answer": "x"}, "sample": {"output_text": "y"}},
        {"item": {"question": "c", "answer": "x"}},
    ]
    lines = "\n".join(json.dumps(row) for row in rows).encode()
    # Not with the official client: its own types lack the purpose `evals` in answers.
    upload = {"files": {"file": ("rows.jsonl", lines)}, "data": {"purpose": "evals"}}
    source = {"type": "file_id", "id": http.post("/v1/files", **upload).json()["id"]}
    run = start(client, made.id, {"type": "jsonl", "source": source})
    worker.work()
    done = client.evals.runs.retrieve(run.id, eval_id=made.id)
    counts = done.result_counts
    assert (counts.total, counts.passed, counts.failed, counts.errored) == (3, 1, 1, 1)
    assert model_server.requests == []
    assert done.per_model_usage == []
    items = client.evals.runs.output_items.list(run.id, eval_id=made.id).data
    assert [each.status for each in items] == ["pass", "fail", "error"]
    assert items[0].sample.output[0].content == "x"
    # No score stands for a grading that failed.
    assert items[2].results == []
    (error,) = items[2].errors  # type: ignore[attr-defined]
    assert error["code"] == "sample_variable_error"


def test_messages_can_stand_in_the_item(
    client: openai.OpenAI, worker: Worker, model_server: ModelServer
) -> None:
    config = {"type": "custom", "item_schema": {"type": "object"}}
    made = create(client, data_source_config=config)
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    lines = json.dumps({"messages": messages, "answer": "Hello"}).encode()
    file = client.files.create(file=("rows.jsonl", lines), purpose="fine-tune")
    reference = {"type": "item_reference", "item_reference": "item.messages"}
    source = {"type": "file_id", "id": file.id}
    run = start(client, made.id, completions(source, input_messages=reference))
    worker.work()
    assert model_server.body["messages"] == messages
    done = client.evals.runs.retrieve(run.id, eval_id=made.id)
    assert done.result_counts.passed == 1


def test_a_run_of_the_responses_api_asks_the_same(
    client: openai.OpenAI, worker: Worker, model_server: ModelServer
) -> None:
    made = create(client)
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    params = {
        "text": {"format": {"type": "json_schema", "name": "s", "schema": schema, "strict": True}},
        "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": True}],
    }
    template = [{"role": "user", "content": {"type": "input_text", "text": "{{item.question}}"}}]
    data_source = completions(
        inline(ITEMS),
        type="responses",
        sampling_params=params,
        input_messages={"type": "template", "template": template},
    )
    start(client, made.id, data_source)
    worker.work()
    assert model_server.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "s", "schema": schema, "strict": True},
    }
    assert model_server.body["tools"][0]["function"]["name"] == "f"
    assert model_server.body["messages"][0]["content"] in {"0?", "1?", "2?"}


AUDIO = {"input_audio": {"data": "AA==", "format": "mp3"}}


def template(content: Any) -> dict[str, Any]:
    """Input messages with one message."""
    return {"type": "template", "template": [{"role": "user", "content": content}]}


#: What is sent, the `param` of the answer, and words in it.
RUNS_REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (completions(inline([])), "data_source.source.content", "at least one item"),
    (
        completions(inline([{"item": {"question": 1, "answer": "a"}}])),
        "data_source.source.content[0]",
        "$.question",
    ),
    (
        {"type": "jsonl", "source": inline([{"item": {"question": "a", "anwser": "b"}}])},
        "data_source.source.content[0]",
        "at $: 'answer' is required.",
    ),
    (completions({"type": "stored_completions"}), "data_source.source.type", "file_id"),
    (completions({"type": "file_id", "id": "file-x"}), "data_source.source.id", "No such file"),
    (completions(inline(ITEMS), model=None), "data_source.model", "'data_source.model'"),
    (
        completions(
            inline(ITEMS),
            input_messages={
                "type": "template",
                "template": [{"role": "user", "content": "{{sample.output_text}}"}],
            },
        ),
        "data_source.input_messages.template",
        "before there is a sample",
    ),
    (
        completions(
            inline(ITEMS),
            input_messages={
                "type": "template",
                "template": [{"role": "usr", "content": "x"}],
            },
        ),
        "data_source.input_messages.template.0.role",
        "usr",
    ),
    (
        completions(inline(ITEMS), input_messages=template({"type": "input_audio", **AUDIO})),
        "data_source.input_messages.template.0.content",
        "a text or an image",
    ),
    (
        completions(
            inline(ITEMS),
            input_messages=template([{"type": "input_image", "image_url": "https://example.com/"}]),
        ),
        "data_source.input_messages.template.0.content",
        "not fetched from elsewhere",
    ),
    (
        completions(inline(ITEMS), input_messages=template("{{item.questoin}}")),
        "data_source.source.content",
        "The input reads item.questoin, which no item has; did you mean item.question?",
    ),
    (
        completions(inline(ITEMS), sampling_params={"temprature": 1}),
        "data_source.sampling_params.temprature",
        "temperature",
    ),
    (
        completions(inline(ITEMS), sampling_params={"reasoning_effort": "high"}),
        "data_source.sampling_params.reasoning_effort",
        "no reasoning levels",
    ),
    (
        completions(
            inline(ITEMS), type="responses", sampling_params={"tools": [{"type": "web_search"}]}
        ),
        "data_source.sampling_params.tools[0]",
        "web_search",
    ),
    (
        completions(inline(ITEMS), sampling_params={"response_format": {"type": "xml"}}),
        "data_source.sampling_params.response_format.type",
        "json_schema",
    ),
    ({**completions(inline(ITEMS)), "type": "jsonl"}, "data_source", "grades what is there"),
]


def test_what_a_run_cannot_do_is_refused_at_once(client: openai.OpenAI, http: httpx.Client) -> None:
    made = create(client)
    for data_source, param, words in RUNS_REFUSED:
        response = http.post(f"/v1/evals/{made.id}/runs", json={"data_source": data_source})
        error = error_of(response, 400)
        assert error["param"] == param
        assert words in error["message"]


def test_a_field_that_no_item_has_is_said_before_anything_is_graded(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    made = create(client, data_source_config={"type": "custom", "item_schema": {}})
    items = [{"item": {"anwser": "b"}}, {"item": {}}]
    body = {"data_source": {"type": "jsonl", "source": inline(items)}}
    error = error_of(http.post(f"/v1/evals/{made.id}/runs", json=body), 400)
    assert error["param"] == "data_source.source.content"
    assert "A criterion reads item.answer, which no item has" in error["message"]


def test_a_body_that_takes_long_to_check_is_left_to_the_worker(
    client: openai.OpenAI, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(client)
    monkeypatch.setattr(eval_runs, "CHECKING_S", -1.0)
    run = start(client, made.id, {"type": "jsonl", "source": inline([{"item": {}}])})
    worker.work()
    done = client.evals.runs.retrieve(run.id, eval_id=made.id)
    assert (done.status, done.error.code) == ("failed", "invalid_data_source")
    assert "Item 1 cannot be used" in done.error.message


def test_pages_end_before_they_hold_too_much(
    client: openai.OpenAI, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(client)
    runs = [start(client, made.id, completions(inline(ITEMS))) for _ in range(3)]
    worker.next()
    monkeypatch.setattr(pagination, "MAX_PAGE_CHARS", 1)
    page = client.evals.runs.list(made.id)
    assert (len(page.data), page.has_more) == (1, True)  # type: ignore[attr-defined]
    other = create(client)
    assert len(client.evals.list().data) == 1
    assert [each.id for each in client.evals.list()] == [made.id, other.id]
    assert [each.id for each in client.evals.runs.list(made.id)] == [each.id for each in runs]
    items = client.evals.runs.output_items.list(runs[0].id, eval_id=made.id, order="desc")
    assert len(items.data) == 1
    assert [each.datasource_item_id for each in items] == [2, 1, 0]


def test_an_unknown_model_is_refused_at_once(client: openai.OpenAI) -> None:
    made = create(client)
    with pytest.raises(openai.NotFoundError, match="Did you mean 'base-1'"):
        start(client, made.id, completions(inline(ITEMS), model="base-2"))


def test_runs_are_listed_by_status_and_canceled(
    client: openai.OpenAI, http: httpx.Client, worker: Worker, sessions: sessionmaker[Session]
) -> None:
    made = create(client)
    first = start(client, made.id, completions(inline(ITEMS)))
    worker.work()
    second = start(client, made.id, completions(inline(ITEMS)))
    ids = [each.id for each in client.evals.runs.list(made.id)]
    assert ids == [first.id, second.id]
    queued = client.evals.runs.list(made.id, status="queued", order="desc").data
    assert [each.id for each in queued] == [second.id]
    canceled = client.evals.runs.cancel(second.id, eval_id=made.id)
    assert canceled.status == "canceled"
    again = http.post(f"/v1/evals/{made.id}/runs/{second.id}")
    assert "is canceled and cannot be canceled" in error_of(again, 400)["message"]
    assert worker.work() == []
    for run in (first, second):
        with pytest.raises(openai.BadRequestError, match="cannot be canceled"):
            client.evals.runs.cancel(run.id, eval_id=made.id)
    with sessions() as session:
        sent = [row.payload["event"] for row in session.query(Outbox).filter_by(kind="webhook")]
    assert [(each["type"], each["data"]["id"]) for each in sent] == [
        ("eval.run.succeeded", first.id),
        ("eval.run.canceled", second.id),
    ]


def test_a_deleted_run_is_gone_with_its_items(client: openai.OpenAI, worker: Worker) -> None:
    made = create(client)
    run = start(client, made.id, completions(inline(ITEMS)))
    worker.work()
    gone = client.evals.runs.delete(run.id, eval_id=made.id)
    assert (gone.deleted, gone.run_id, gone.object) == (True, run.id, "eval.run.deleted")
    with pytest.raises(openai.NotFoundError, match="No such run"):
        client.evals.runs.retrieve(run.id, eval_id=made.id)
    with pytest.raises(openai.NotFoundError, match="No such run"):
        client.evals.runs.output_items.list(run.id, eval_id=made.id)
    clean_once(worker.context)
    assert worker.items(run.id) == []
    assert client.evals.runs.list(made.id).data == []
