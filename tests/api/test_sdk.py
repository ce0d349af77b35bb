"""Every method of the official SDK that this server has, with strictly checked answers."""

import asyncio

import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from tests.api.examples import METHOD, add_checkpoint, job_body, jsonl, set_status, upload
from tests.api.running import Api, ClientFor
from tests.fakes.memory_store import MemoryStore

VALIDATION_ROWS = [{"messages": [{"role": "user", "content": "9+1?"}], "answer": "10"}]


def test_files(client: openai.OpenAI, store: MemoryStore) -> None:
    made = client.files.create(
        file=("../rows.jsonl", jsonl()),
        purpose="fine-tune",
        expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert made.filename == "rows.jsonl"
    assert made.bytes == len(jsonl())
    assert made.status == "processed"
    assert made.expires_at == made.created_at + 3600
    assert client.files.retrieve(made.id) == made
    assert client.files.wait_for_processing(made.id) == made
    assert [file.id for file in client.files.list(purpose="fine-tune")] == [made.id]
    assert not client.files.list(purpose="vision").data
    assert client.files.content(made.id).content == jsonl()
    assert client.files.delete(made.id).deleted
    assert not store.objects
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(made.id)
    assert not client.files.list().data


def test_a_job_is_created_shown_and_listed(client: openai.OpenAI) -> None:
    training, validation = upload(client), upload(client, VALIDATION_ROWS)
    made = client.fine_tuning.jobs.create(
        model="base-1",
        training_file=training.id,
        validation_file=validation.id,
        method=METHOD,
        seed=7,
        suffix="support",
        metadata={"team": "a"},
    )
    assert made.status == "validating_files"
    assert made.model == "base-1-2024"
    assert (made.training_file, made.validation_file) == (training.id, validation.id)
    assert made.seed == 7
    assert made.metadata == {"team": "a"}
    assert made.hyperparameters.n_epochs == "auto"
    assert made.method is not None and made.method.reinforcement is not None
    assert made.method.reinforcement.grader.to_dict()["reference"] == "{{item.answer}}"
    assert made.fine_tuned_model is made.finished_at is made.error is None
    assert client.fine_tuning.jobs.retrieve(made.id) == made
    assert client.fine_tuning.jobs.list().data == [made]


def test_a_seed_is_made_when_none_is_given(client: openai.OpenAI) -> None:
    file = upload(client)
    seeds = {client.fine_tuning.jobs.create(**job_body(file.id)).seed for _ in range(4)}
    assert len(seeds) > 1
    assert client.fine_tuning.jobs.create(**job_body(file.id, seed=0)).seed == 0


def test_events_and_checkpoints(client: openai.OpenAI, sessions: sessionmaker[Session]) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    events = client.fine_tuning.jobs.list_events(job.id).data
    assert [event.message for event in events] == [f"Created fine-tuning job: {job.id}"]
    assert (events[0].type, events[0].level, events[0].data) == ("message", "info", {})
    assert not client.fine_tuning.jobs.checkpoints.list(job.id).data
    add_checkpoint(sessions, job.id, 4, name="ft:a:ckpt-step-4")
    add_checkpoint(sessions, job.id, 8, name="ft:a")
    newest, older = client.fine_tuning.jobs.checkpoints.list(job.id).data
    assert (newest.step_number, older.step_number) == (8, 4)
    assert newest.fine_tuned_model_checkpoint == "ft:a"
    assert newest.fine_tuning_job_id == job.id
    assert newest.metrics.to_dict()["full_valid_mean_reward"] == 0.5


def test_pause_resume_and_cancel(
    api: Api, client: openai.OpenAI, client_for: ClientFor, sessions: sessionmaker[Session]
) -> None:
    # OpenAI's own type lacks the status "paused", although its service sends it.
    loose = client_for(api.key, strict=False)
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    set_status(sessions, job.id, "queued")
    assert loose.fine_tuning.jobs.pause(job.id).status == "paused"
    assert client.fine_tuning.jobs.resume(job.id).status == "queued"
    set_status(sessions, job.id, "running")
    assert loose.fine_tuning.jobs.pause(job.id).status == "pausing"
    assert loose.fine_tuning.jobs.list().data[0].status == "pausing"
    cancelled = client.fine_tuning.jobs.cancel(job.id)
    assert (cancelled.status, cancelled.finished_at) == ("cancelled", None)


def test_models(client: openai.OpenAI, sessions: sessionmaker[Session]) -> None:
    job = client.fine_tuning.jobs.create(**job_body(upload(client).id))
    name = "ft:base-1-2024:org-rft:a/b:12345678"
    add_checkpoint(sessions, job.id, 8, name=name)
    assert [model.id for model in client.models.list()] == ["base-1-2024", name]
    assert client.models.retrieve("base-1").id == "base-1-2024"
    assert client.models.retrieve(name).owned_by == "org-rft"
    set_status(sessions, job.id, "succeeded")
    assert client.models.delete(name).deleted
    assert [model.id for model in client.models.list()] == ["base-1-2024"]


def test_chat(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="base-1", messages=[{"role": "user", "content": "Hi"}], max_completion_tokens=5
    )
    assert answer.choices[0].message.content == "Hello"
    assert answer.model == "base-1-2024"


def test_streamed_chat(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="base-1",
        messages=[{"role": "user", "content": "Hi"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    *chunks, last = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == "Hello"
    assert last.choices == [] and last.usage is not None and last.usage.total_tokens == 5


def test_every_answer_carries_openais_headers(client: openai.OpenAI) -> None:
    raw = client.models.with_raw_response.list()
    assert raw.headers["x-request-id"].startswith("req_")
    assert raw.headers["openai-version"] == "2020-10-01"
    assert raw.headers["openai-organization"] == "org-rft"
    assert raw.headers["openai-project"].startswith("proj_")
    assert int(raw.headers["openai-processing-ms"]) >= 0
    assert client.models.list()._request_id != raw.headers["x-request-id"]


def test_the_async_client(api: Api) -> None:
    async def main() -> list[str]:
        async with openai.AsyncOpenAI(api_key=api.key, base_url=f"{api.url}/v1") as client:
            return [model.id async for model in client.models.list()]

    assert asyncio.run(main()) == ["base-1-2024"]
