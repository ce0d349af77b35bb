"""A field that nobody reads is refused by name, never ignored."""

import re
from typing import Any

import httpx
import openai
import pytest

from api.schemas.chat import ChatRequest
from api.unknown_fields import MAX_LISTED
from tests.api.examples import GRADER, METHOD, error_of, job_body, reinforcement, upload
from tests.fakes.model_server import ModelServer

JOBS = "/v1/fine_tuning/jobs"
CHAT = "/v1/chat/completions"


def test_several_are_listed_with_the_nearest_known_names(http: httpx.Client) -> None:
    body = {
        "model": "m",
        "training_file": "file-1",
        "test_file": "file-2",
        "method": reinforcement(grader=GRADER, hyperparameters={"etest_samples": 4}),
    }
    error = error_of(http.post(JOBS, json=body), 400)
    assert "'test_file' (did you mean 'validation_file'?)" in error["message"]
    path = "method.reinforcement.hyperparameters.etest_samples"
    assert f"'{path}' (did you mean 'eval_samples'?)" in error["message"]
    assert (error["param"], error["code"]) == ("test_file", "unknown_parameter")


def test_a_known_name_in_the_wrong_place_is_shown_its_place(http: httpx.Client) -> None:
    error = error_of(http.post(JOBS, json=job_body("file-1", group_size=4)), 400)
    assert (
        "'group_size' (did you mean 'method.reinforcement.hyperparameters.group_size'?)"
        in error["message"]
    )


def test_the_place_is_one_of_the_chosen_method(http: httpx.Client) -> None:
    for kind in ("supervised", "dpo"):
        error = error_of(
            http.post(JOBS, json=job_body("f", lora_rank=4, method={"type": kind})), 400
        )
        assert f"(did you mean 'method.{kind}.hyperparameters.lora_rank'?)" in error["message"]


def test_what_the_method_leaves_aside_may_hold_anything(http: httpx.Client) -> None:
    method = {"type": "supervised", "reinforcement": {"nonsense": 1}, "dpo": {"x": 2}}
    error = error_of(http.post(JOBS, json=job_body("file-none", method=method)), 400)
    assert error["param"] == "training_file"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("top_p", "drawn from the whole distribution"),
        ("top_k", "drawn from the whole distribution"),
        ("epsilon_high", "set clip_high, a distance above 1, or cispo_weight_cap"),
    ],
)
def test_what_is_left_out_on_purpose_is_refused_with_the_reason(
    http: httpx.Client, name: str, said: str
) -> None:
    method = reinforcement(hyperparameters={name: 0.9})
    error = error_of(http.post(JOBS, json=job_body("file-1", method=method)), 400)
    assert said in error["message"]
    assert error["param"] == f"method.reinforcement.hyperparameters.{name}"


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        ("dpo", "loss_type", "loss"),
        ("reinforcement", "loss_type", "algorithm"),
        ("reinforcement", "num_iterations", "rollout_epochs"),
        ("supervised", "target_modules", "lora_targets"),
    ],
)
def test_names_of_other_trainers_lead_to_ours(
    http: httpx.Client, kind: str, name: str, meant: str
) -> None:
    grader = {"grader": GRADER} if kind == "reinforcement" else {}
    method = {"type": kind, kind: {"hyperparameters": {name: 1}, **grader}}
    error = error_of(http.post(JOBS, json=job_body("file-1", method=method)), 400)
    assert f"(did you mean '{meant}'?)" in error["message"]


def test_a_name_like_no_other_comes_with_the_known_ones(http: httpx.Client) -> None:
    method = reinforcement(zzz=1)
    error = error_of(http.post(JOBS, json=job_body("file-1", yyy=1, method=method)), 400)
    assert error["message"] == (
        "Unknown parameters: 'method.reinforcement.zzz', 'yyy'."
        " 'method.reinforcement' takes grader, response_format, hyperparameters, warm_start,"
        " dry_run, limits, monitor_grader, allow_no_spread."
        " The body takes model, training_file, validation_file, method, hyperparameters, suffix,"
        " seed, metadata, integrations."
    )


def test_a_long_list_of_known_names_is_cut(http: httpx.Client) -> None:
    body = {"model": "base-1", "messages": MESSAGES, "zzz": 1}
    message = error_of(http.post(CHAT, json=body), 400)["message"]
    taken = re.fullmatch(
        r"Unknown parameter: 'zzz'\. The body takes (.*) and (\d+) more, which docs/api.md lists\.",
        message,
    )
    assert taken, message
    assert taken[1].startswith("model, ")
    shown = len(taken[1].split(", "))
    refused = sum(field.annotation is type(None) for field in ChatRequest.model_fields.values())
    assert shown == MAX_LISTED
    assert shown + int(taken[2]) == len(ChatRequest.model_fields) - refused


def test_where_nothing_is_known_it_is_said(http: httpx.Client) -> None:
    error = error_of(http.post(f"{JOBS}/ftjob-1/cancel", json={"zzz": 1}), 400)
    assert error["message"] == "Unknown parameter: 'zzz'. The body takes no fields."


JOB = job_body("file-1")
MESSAGES = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (JOBS, {**JOB, "x": 1}, "x"),
        (JOBS, {**JOB, "hyperparameters": {"beta": 1}}, "hyperparameters.beta"),
        (JOBS, {**JOB, "method": {**METHOD, "x": 1}}, "method.x"),
        (JOBS, {**JOB, "method": reinforcement(x=1)}, "method.reinforcement.x"),
        (
            JOBS,
            {**JOB, "method": reinforcement(warm_start={"file": "f", "x": 1})},
            "method.reinforcement.warm_start.x",
        ),
        (
            JOBS,
            {**JOB, "method": reinforcement(grader={**GRADER, "x": 1})},
            "method.reinforcement.grader.x",
        ),
        (f"{JOBS}/ftjob-1/cancel", {"x": 1}, "x"),
        (f"{JOBS}/ftjob-1/pause", {"x": 1}, "x"),
        (f"{JOBS}/ftjob-1/resume", {"x": 1}, "x"),
        (CHAT, {"model": "base-1", "messages": MESSAGES, "x": 1}, "x"),
        (CHAT, {"model": "base-1", "messages": [{**MESSAGES[0], "x": 1}]}, "messages[0].x"),
        (
            CHAT,
            {"model": "base-1", "messages": MESSAGES, "stream_options": {"x": 1}},
            "stream_options.x",
        ),
        ("/v1/organization/api_keys", {"name": "k", "x": 1}, "x"),
    ],
)
def test_in_every_body(
    http: httpx.Client, model_server: ModelServer, path: str, body: dict[str, Any], param: str
) -> None:
    error = error_of(http.post(path, json=body), 400)
    assert error["param"] == param
    assert param.rpartition(".")[2] in error["message"]
    assert not model_server.requests


def test_in_the_upload_form(http: httpx.Client) -> None:
    fields = {"purpose": "fine-tune", "purpos": "x", "expires_after[second]": "3600"}
    response = http.post("/v1/files", files={"file": b"{}"}, data=fields)
    error = error_of(response, 400)
    assert "'purpos' (did you mean 'purpose'?)" in error["message"]
    assert "'expires_after.second' (did you mean 'seconds'?)" in error["message"]


def test_the_sdks_extra_body_is_not_ignored(client: openai.OpenAI) -> None:
    body = job_body(upload(client).id)
    with pytest.raises(openai.BadRequestError, match="'n_epoch'") as refused:
        client.fine_tuning.jobs.create(**body, extra_body={"n_epoch": 3})
    assert refused.value.param == "n_epoch"


@pytest.mark.parametrize(
    ("path", "sent", "meant"),
    [
        ("/v1/files", "purpos", "purpose"),
        ("/v1/fine_tuning/jobs", "metadat", "metadata"),
        ("/v1/fine_tuning/jobs", "metadata[a]&limits", "limit"),
        ("/v1/fine_tuning/dry_runs", "afte", "after"),
        ("/v1/evals", "order_bye", "order_by"),
        ("/v1/organization/api_keys", "limits", "limit"),
        ("/v1/organization/audit_logs", "event_type", "event_types"),
    ],
)
def test_a_mistyped_filter_does_not_find_everything(
    http: httpx.Client, path: str, sent: str, meant: str
) -> None:
    error = error_of(http.get(f"{path}?{sent}"), 400)
    assert (error["param"], error["code"]) == (sent.rpartition("&")[2], "unknown_parameter")
    assert f"Did you mean '{meant}'?" in error["message"]


def test_what_reads_no_parameters_minds_none(http: httpx.Client) -> None:
    for path in ("/health", "/v1/models"):
        assert http.get(f"{path}?client_version=1").status_code in (200, 503)
