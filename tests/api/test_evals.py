"""Evals through the official client: bodies taken and refused, lists, changes, deletion."""

import json
import re
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from api.schemas.eval_runs import CreateRun
from api.services.eval_runs import create_run
from api.services.evals import EvalNotFound
from api.tenancy import Tenant
from core.models import Eval
from tests.api.examples import error_of, job_body, upload
from tests.api.running import Api
from tests.evals.bench import CUSTOM, EXACT, ITEMS, SCHEMA, completions, inline

SIMILAR: dict[str, Any] = {
    "type": "text_similarity",
    "name": "similar",
    "evaluation_metric": "fuzzy_match",
    "input": "{{sample.output_text}}",
    "reference": "{{item.answer}}",
    "pass_threshold": 0.8,
}
LABEL: dict[str, Any] = {
    "type": "label_model",
    "name": "tone",
    "model": "base-1",
    "labels": ["kind", "rude"],
    "passing_labels": ["kind"],
    "input": [{"role": "user", "content": "Tone of {{sample.output_text}}?"}],
}
SCORE: dict[str, Any] = {
    "type": "score_model",
    "name": "rating",
    "model": "base-1",
    "range": [0, 10],
    "input": [{"role": "user", "content": "Rate {{sample.output_text}}."}],
}
PYTHON: dict[str, Any] = {
    "type": "python",
    "name": "code",
    "source": "def grade(sample, item):\n    return 0.7",
}


def create(client: openai.OpenAI, *criteria: dict[str, Any], **changes: Any) -> Any:
    """Create an eval."""
    body = {"data_source_config": CUSTOM, "testing_criteria": list(criteria or (EXACT,))}
    return client.evals.create(**{**body, **changes})


def test_an_eval_comes_back_with_its_schema_and_ids_of_criteria(client: openai.OpenAI) -> None:
    made = create(client, EXACT, SIMILAR, LABEL, SCORE, PYTHON, name="QA", metadata={"a": "b"})
    assert made.id.startswith("eval_")
    assert (made.name, made.metadata, made.object) == ("QA", {"a": "b"}, "eval")
    assert made.data_source_config.type == "custom"
    properties = made.data_source_config.schema_["properties"]
    assert isinstance(properties, dict)
    assert properties["item"] == SCHEMA
    assert "output_text" in properties["sample"]["properties"]
    kinds = [each.type for each in made.testing_criteria]
    assert kinds == ["string_check", "text_similarity", "label_model", "score_model", "python"]
    for criterion in made.testing_criteria:
        uuid = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
        assert re.fullmatch(rf"{criterion.name}-{uuid}", criterion.id)  # type: ignore[union-attr]
    assert client.evals.retrieve(made.id).to_dict() == made.to_dict()


def test_thresholds_that_are_left_out_are_shown(client: openai.OpenAI) -> None:
    made = create(client, SCORE, PYTHON)
    assert [each.pass_threshold for each in made.testing_criteria] == [5.0, 0.5]


def test_an_exported_eval_can_be_sent_again(client: openai.OpenAI, http: httpx.Client) -> None:
    shown = http.get(f"/v1/evals/{create(client, EXACT, LABEL).id}").json()
    names = ("name", "metadata", "data_source_config", "testing_criteria")
    again = http.post("/v1/evals", json={name: shown[name] for name in names}).json()
    assert again["data_source_config"] == shown["data_source_config"]
    assert again["testing_criteria"][0]["id"] != shown["testing_criteria"][0]["id"]
    assert again["id"] != shown["id"]


def test_evals_of_stored_completions_and_logs_are_taken(client: openai.OpenAI) -> None:
    for kind in ("stored_completions", "logs"):
        made = create(client, data_source_config={"type": kind, "metadata": {"use": "chat"}})
        assert made.data_source_config.type == kind
        assert made.data_source_config.metadata == {"use": "chat"}
        run = client.evals.runs.create(
            made.id, data_source={"type": "jsonl", "source": inline(ITEMS)}
        )
        assert run.status == "queued"


def test_every_criterion_of_ours_is_taken(http: httpx.Client) -> None:
    ours = [
        {"type": "number", "name": "n", "reference": "{{item.answer}}"},
        {"type": "regex", "name": "r", "pattern": "H.*"},
        {"type": "json_schema", "name": "j", "schema": {"type": "object"}},
        {"type": "endpoint", "name": "e", "url": "https://example.com/", "headers": {"K": "v"}},
        {"type": "multi", "name": "m", "graders": {"x": EXACT}, "calculate_output": "x"},
    ]
    body = {"data_source_config": CUSTOM, "testing_criteria": ours}
    made = http.post("/v1/evals", json=body)
    assert made.status_code == 201, made.text
    assert made.json()["testing_criteria"][3]["headers"] == {"K": "**********"}


#: What is sent, the `param` of the answer, and words in it.
EVALS_REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"testing_criteria": []}, "testing_criteria", "1 to 50 criteria"),
    (
        {"testing_criteria": [{k: v for k, v in SIMILAR.items() if k != "pass_threshold"}]},
        "testing_criteria[0].pass_threshold",
        "needs a pass_threshold",
    ),
    ({"testing_criteria": [{**LABEL, "model": "gpt-9"}]}, "testing_criteria[0].model", "gpt-9"),
    ({"testing_criteria": [{**EXACT, "opperation": "eq"}]}, "testing_criteria[0]", "operation"),
    ({"data_source_config": {"type": "custom"}}, "data_source_config", "needs an item_schema"),
    (
        {"data_source_config": {"type": "custom", "item_schema": {"type": "objekt"}}},
        "data_source_config",
        "objekt",
    ),
    (
        {"data_source_config": {"type": "custom", "schema": {"properties": []}}},
        "data_source_config",
        "needs an item_schema",
    ),
    ({"data_source_config": {**CUSTOM, "schema": {}}}, "data_source_config", "one of them"),
    ({"data_source_config": {"type": "table"}}, "data_source_config.type", "custom"),
    ({"testing_criterias": []}, "testing_criterias", "testing_criteria"),
]


def test_what_cannot_be_tested_is_refused(http: httpx.Client) -> None:
    for change, param, words in EVALS_REFUSED:
        body = {"data_source_config": CUSTOM, "testing_criteria": [EXACT], **change}
        error = error_of(http.post("/v1/evals", json=body), 400)
        assert error["param"].startswith(param)
        assert words in error["message"]


def test_lists_follow_order_and_order_by(client: openai.OpenAI) -> None:
    made = [create(client, name=f"e{n}") for n in range(5)]
    ids = [each.id for each in made]
    assert [each.id for each in client.evals.list(limit=2)] == ids
    assert [each.id for each in client.evals.list(order="desc", limit=3)] == ids[::-1]
    page = client.evals.list(limit=2)
    assert (page.first_id, page.last_id, page.has_more) == (ids[0], ids[1], True)  # type: ignore[attr-defined]
    changed = client.evals.update(ids[0], name="new", metadata={"k": "v"})
    assert (changed.name, changed.metadata) == ("new", {"k": "v"})
    by_update = [each.id for each in client.evals.list(order_by="updated_at", order="desc")]
    assert set(by_update) == set(ids)
    assert client.evals.list(after="eval_unknown").data == []


def test_an_empty_list_has_ends_that_are_texts(http: httpx.Client) -> None:
    page = http.get("/v1/evals").json()
    assert page == {
        "object": "list", "data": [], "has_more": False, "first_id": "", "last_id": "",
    }  # fmt: skip


def test_a_deleted_eval_is_gone_with_its_runs(client: openai.OpenAI) -> None:
    made = create(client)
    run = client.evals.runs.create(made.id, data_source=completions(inline(ITEMS)))  # type: ignore[arg-type]
    gone = client.evals.delete(made.id)
    assert (gone.deleted, gone.eval_id, gone.object) == (True, made.id, "eval.deleted")
    for call in (client.evals.retrieve, client.evals.delete):
        with pytest.raises(openai.NotFoundError, match="No such eval"):
            call(made.id)
    with pytest.raises(openai.NotFoundError):
        client.evals.runs.retrieve(run.id, eval_id=made.id)


def test_a_job_has_an_eval_of_its_own(client: openai.OpenAI) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    eval_id = json.loads(job.to_json())["eval_id"]
    made = client.evals.retrieve(eval_id)
    assert made.job_id == job.id  # type: ignore[attr-defined]
    assert [each.name for each in made.testing_criteria] == ["exact"]
    assert client.evals.runs.list(eval_id).data == []


def test_an_eval_that_is_deleted_meanwhile_gets_no_run(
    client: openai.OpenAI, api: Api, sessions: sessionmaker[Session]
) -> None:
    made = create(client)
    with sessions() as session:
        row = session.get_one(Eval, made.id)
        tenant = Tenant(session=session, project_id=row.project_id)
        client.evals.delete(made.id)
        source = {"type": "jsonl", "source": inline(ITEMS)}
        body = CreateRun.model_validate({"data_source": source})
        with pytest.raises(EvalNotFound):
            create_run(tenant, api.app.state.parts, row, body)
