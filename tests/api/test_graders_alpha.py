"""Trying graders out: OpenAI's alpha endpoints, driven by its own SDK in strict mode."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from api.schemas.graders import GraderErrors
from api.services.graders import answer_of
from core.models import Job
from graders.client import Reply
from graders.outcome import KINDS, Abstain, Failure, Note, Score
from graders.spec import parse_grader
from graders.trace import Trace, Usage
from tests.api.examples import GRADER, error_of, job_body, jsonl, reinforcement
from tests.api.graders import DETAILS, RUN, VALIDATE, raised, run
from tests.api.running import Api, ClientFor

READS_JSON = {**GRADER, "input": "{{sample.output_json.a}}", "reference": "1"}
MULTI: dict[str, Any] = {
    "type": "multi",
    "name": "reward",
    "graders": {"exact": GRADER, "form": {**READS_JSON, "name": "form"}},
    "calculate_output": "0.5 * exact + 0.5 * form",
}


def test_validate_echoes_the_normalised_grader(client: openai.OpenAI) -> None:
    answer = client.fine_tuning.alpha.graders.validate(grader={**GRADER, "operation": "neq"})
    assert answer.grader is not None
    assert answer.grader.to_dict() == {**GRADER, "operation": "ne"}


def test_validate_brings_every_form_of_multi_to_the_map(
    http: httpx.Client, api: Api, client_for: ClientFor
) -> None:
    lists = [{**child, "name": key} for key, child in MULTI["graders"].items()]
    for children in (MULTI["graders"], lists):
        body = {"grader": {**MULTI, "graders": children}}
        shown = http.post(VALIDATE, json=body).json()["grader"]
        assert list(shown["graders"]) == ["exact", "form"]
        again = client_for(api.key, strict=False).fine_tuning.alpha.graders.validate(grader=shown)
        assert again.to_dict()["grader"] == shown


def test_validate_warns_of_what_is_allowed_but_likely_a_mistake(http: httpx.Client) -> None:
    assert http.post(VALIDATE, json={"grader": GRADER}).json()["warnings"] == []
    divides = {**MULTI, "calculate_output": "exact / form"}
    warnings = http.post(VALIDATE, json={"grader": divides}).json()["warnings"]
    assert any("division by zero" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("place", "path", "more"),
    [
        ("api.schemas.graders", VALIDATE, {}),
        ("api.routes.graders", VALIDATE, {}),
        ("api.routes.graders", RUN, {"model_sample": "a"}),
    ],
)
def test_a_grader_that_takes_long_to_check_holds_up_nobody_else(
    http: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    path: str,
    more: dict[str, Any],
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(raw: dict[str, Any]) -> Any:
        begun.set()
        assert go_on.wait(30)
        return parse_grader(raw)

    monkeypatch.setattr(f"{place}.parse_grader", slow)
    with ThreadPoolExecutor(1) as pool:
        checked = pool.submit(http.post, path, json={"grader": GRADER, **more}, timeout=40)
        try:
            assert begun.wait(10)
            assert http.get("/v1/files", timeout=5).status_code == 200
        finally:
            go_on.set()
        assert checked.result().status_code == 200


@pytest.mark.parametrize(
    ("grader", "param", "code"),
    [
        ({**GRADER, "operation": "equals"}, "grader.operation", "invalid_grader"),
        ({**GRADER, "input": "{{sample.output_txt}}"}, "grader.input", "template_parse_error"),
        ({**GRADER, "refrence": "a"}, "grader.refrence", "invalid_grader"),
        ({"type": "nonsense", "name": "a"}, "grader.type", "invalid_grader"),
        (
            {**MULTI, "calculate_output": "exact +"},
            "grader.calculate_output",
            "formula_parse_error",
        ),
        (
            {**MULTI, "graders": {"exact": {**GRADER, "operation": "is"}}},
            "grader.graders.exact.operation",
            "invalid_grader",
        ),
    ],
)
def test_a_bad_grader_is_refused_with_its_place(
    http: httpx.Client, grader: dict[str, Any], param: str, code: str
) -> None:
    for path, more in ((VALIDATE, {}), (RUN, {"model_sample": "a"})):
        error = error_of(http.post(path, json={"grader": grader, **more}), 400)
        assert (error["param"], error["code"]) == (param, code), error


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (VALIDATE, {"grader": GRADER, "model_sample": "a"}, "model_sample"),
        (VALIDATE, {}, "grader"),
        (VALIDATE, {"grader": [GRADER]}, "grader"),
        (RUN, {"grader": GRADER, "model_sample": "a", "itme": {}}, "itme"),
        (RUN, {"grader": GRADER}, "model_sample"),
        (RUN, {"grader": GRADER, "model_sample": 3}, "model_sample"),
        (RUN, {"grader": GRADER, "model_sample": "a", "item": "b"}, "item"),
    ],
)
def test_a_bad_body_names_the_field(
    http: httpx.Client, path: str, body: dict[str, Any], param: str
) -> None:
    assert error_of(http.post(path, json=body), 400)["param"] == param


def test_a_run_scores(client: openai.OpenAI) -> None:
    graders = client.fine_tuning.alpha.graders
    for sample, reward in (("7", 1.0), ("8", 0.0)):
        answer = graders.run(grader=GRADER, model_sample=sample, item={"answer": "7"})
        assert answer.reward == reward
        assert answer.metadata.scores == {"exact": reward}
        assert (answer.metadata.name, answer.metadata.type) == ("exact", "string_check")
        assert 0 < answer.metadata.execution_time < 5
        assert answer.metadata.token_usage is None
        assert answer.sub_rewards == {}
        assert not any(answer.metadata.errors.to_dict().values())


def test_a_failure_is_an_answer_with_a_flag(client: openai.OpenAI, http: httpx.Client) -> None:
    answer = client.fine_tuning.alpha.graders.run(grader=GRADER, model_sample="7")
    assert answer.reward == 0.0
    assert answer.metadata.errors.invalid_variable_error
    assert answer.metadata.scores == {}
    plain = run(http, GRADER, "7", item={"anwser": "7"})
    assert raised(plain) == {"invalid_variable_error"}
    assert plain["outcome"]["outcome"] == "failure"
    assert "did you mean item.anwser?" in plain["outcome"]["detail"]


def test_the_samples_json_is_read_when_it_is_json(http: httpx.Client) -> None:
    assert run(http, READS_JSON, '{"a": 1}')["reward"] == 1.0
    assert run(http, READS_JSON, '{"a": 2}')["outcome"]["outcome"] == "score"
    assert raised(run(http, READS_JSON, "not json")) == {"sample_parse_error"}
    assert raised(run(http, READS_JSON, '{"b": 1}')) == {"invalid_variable_error"}


def test_the_conversation_is_no_part_of_the_item_as_in_a_job(http: httpx.Client) -> None:
    grader = {**GRADER, "reference": "{{item.messages}}"}
    answer = run(http, grader, "a", item={"messages": [{"role": "user", "content": "a"}]})
    assert raised(answer) == {"invalid_variable_error"}


def test_a_multi_tells_its_parts(http: httpx.Client) -> None:
    answer = run(http, MULTI, '{"a": 1}', item={"answer": "x"})
    assert answer["reward"] == 0.5
    assert answer["sub_rewards"] == {"exact": 0.0, "form": 1.0}
    assert answer["metadata"]["scores"] == {"exact": 0.0, "form": 1.0, "reward": 0.5}
    assert [trace["grader"] for trace in answer["traces"]] == ["reward", "exact", "form"]
    failed = run(http, MULTI, "x", item={"answer": "x"})
    assert raised(failed) == {"sample_parse_error"}
    assert failed["sub_rewards"] == {"exact": 1.0}
    assert failed["outcome"]["grader"] == "form"


def test_a_score_in_place_of_a_failure_still_shows_the_flag(http: httpx.Client) -> None:
    answer = run(http, {**READS_JSON, "invalid_grade": -1.0}, "not json")
    assert answer["reward"] == -1.0
    assert raised(answer) == {"sample_parse_error"}


def judged(outcome: Any) -> dict[str, Any]:
    traces = (
        Trace("judge", "score_model", model="small", usage=Usage(10, 2, 4)),
        Trace("second", "score_model", model="small", usage=Usage(5, 1)),
    )
    reply = Reply(0, outcome, 0.5, traces)
    return answer_of({"name": "judge", "type": "score_model"}, reply).model_dump()


def test_judges_tokens_are_added_up() -> None:
    answer = judged(Score(0.5))
    assert answer["metadata"]["token_usage"] == 18
    assert answer["metadata"]["sampled_model_name"] == "small"
    assert answer["model_grader_token_usage_per_model"] == {
        "small": {
            "prompt_tokens": 15,
            "completion_tokens": 3,
            "cached_tokens": 4,
            "total_tokens": 18,
        }
    }


@pytest.mark.parametrize(
    ("kind", "flag", "detail"),
    [
        ("python_grader_runtime_error", None, "python_grader_runtime_error_details"),
        ("python_grader_server_error", None, "python_grader_server_error_type"),
        ("model_grader_server_error", None, "model_grader_server_error_details"),
        ("model_grader_parse_error", None, None),
        ("unresponsive_reward_error", None, None),
        ("formula_runtime", "formula_parse_error", None),
        ("non_finite_reward", "other_error", None),
        ("sample_variable_error", "invalid_variable_error", None),
    ],
)
def test_every_kind_has_its_flag_and_its_sentence(
    kind: str, flag: str | None, detail: str | None
) -> None:
    for outcome in (Failure(kind, "Because."), Score(0.0, {}, (Note("a", kind, "Because."),))):
        answer = judged(outcome)
        assert raised(answer) == {flag or kind}
        said = {name: answer["metadata"]["errors"][name] for name in DETAILS}
        assert said == {name: "Because." if name == detail else None for name in DETAILS}


def test_no_kind_has_a_flag_that_the_answer_lacks() -> None:
    assert {kind.flag for kind in KINDS.values()} <= set(GraderErrors.model_fields)


def test_an_abstention_is_no_score_and_no_failure() -> None:
    answer = judged(Abstain("Nothing to judge."))
    assert (answer["reward"], raised(answer)) == (0.0, set())
    assert answer["metadata"]["scores"] == {}
    assert answer["outcome"] == {"outcome": "abstain", "reason": "Nothing to judge."}


ENDPOINT = {
    "type": "endpoint",
    "name": "mine",
    "url": "https://grader.example.com/score",
    "headers": {"Authorization": "Bearer hush"},
}


def test_secrets_of_headers_are_not_shown_nor_taken_back(http: httpx.Client, api: Api) -> None:
    multi = {**MULTI, "graders": {"e": ENDPOINT}, "calculate_output": "e"}
    file = http.post(
        "/v1/files", files={"file": ("a.jsonl", jsonl())}, data={"purpose": "fine-tune"}
    ).json()["id"]
    for grader in (ENDPOINT, multi):
        answer = http.post(VALIDATE, json={"grader": grader})
        assert answer.status_code == 200, answer.text
        body = job_body(file, method=reinforcement(grader=grader))
        job = http.post("/v1/fine_tuning/jobs", json=body)
        listed = http.get("/v1/fine_tuning/jobs")
        for shown in (answer, job, listed):
            assert "Authorization" in shown.text and "hush" not in shown.text
        again = http.post(VALIDATE, json={"grader": answer.json()["grader"]})
        assert error_of(again, 400)["param"].endswith("headers.Authorization")
        with api.app.state.parts.sessions() as session:
            kept = session.get_one(Job, job.json()["id"]).method
        assert "Bearer hush" in json.dumps(kept)
