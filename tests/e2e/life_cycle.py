"""A life cycle through the official Python client, in parts that both of its kinds can run.

Answers are checked strictly against OpenAI's types, but for those that OpenAI's own service sends
otherwise than it documents: `loose` is a client for these.
"""

import io
import json
from dataclasses import dataclass
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.e2e.calls import done, every, until

#: A little file of training data.
ROWS = b"".join(
    json.dumps({"messages": [{"role": "user", "content": f"Say {n}."}], "answer": str(n)}).encode()
    + b"\n"
    for n in range(12)
)
GRADER = {
    "type": "string_check",
    "name": "exact",
    "operation": "eq",
    "input": "{{sample.output_text}}",
    "reference": "{{item.answer}}",
}
METHOD = {
    "type": "reinforcement",
    "reinforcement": {"grader": GRADER, "hyperparameters": {"max_steps": 1}},
}


@dataclass(frozen=True)
class Life:
    """What a life cycle works with: clients, a job that has trained, and another project."""

    client: Any
    loose: Any
    job_id: str
    model: str
    base: str
    spare_checkpoint: str
    other_project: str


async def files(life: Life) -> None:
    """Make, find, read and delete a file."""
    client = life.client
    made = await done(
        client.files.create(
            file=("rows.jsonl", ROWS),
            purpose="fine-tune",
            expires_after={"anchor": "created_at", "seconds": 3600},
        )
    )
    assert made.expires_at == made.created_at + 3600
    ready = await done(client.files.wait_for_processing(made.id, poll_interval=0.2))
    assert (ready.status, ready.bytes) == ("processed", len(ROWS))
    assert (await done(client.files.retrieve(made.id))).filename == "rows.jsonl"
    assert made.id in {file.id for file in await every(client.files.list(purpose="fine-tune"))}
    assert (await done(client.files.content(made.id))).content == ROWS
    assert (await done(client.files.delete(made.id))).deleted
    with pytest.raises(openai.NotFoundError):
        await done(client.files.retrieve(made.id))


async def uploads(life: Life) -> None:
    """Upload a file in parts, and give one up."""
    client = life.client
    upload = await done(
        client.uploads.upload_file_chunked(
            file=ROWS,
            filename="parts.jsonl",
            bytes=len(ROWS),
            mime_type="application/jsonl",
            purpose="fine-tune",
            part_size=len(ROWS) // 3,
        )
    )
    assert (upload.status, upload.file.filename) == ("completed", "parts.jsonl")
    assert (await done(client.files.content(upload.file.id))).content == ROWS
    begun = await done(
        client.uploads.create(
            filename="left.jsonl", bytes=9, mime_type="application/jsonl", purpose="fine-tune"
        )
    )
    part = await done(client.uploads.parts.create(begun.id, data=io.BytesIO(b"{}\n")))
    assert part.upload_id == begun.id
    assert (await done(client.uploads.cancel(begun.id))).status == "cancelled"
    with pytest.raises(openai.BadRequestError):
        await done(client.uploads.complete(begun.id, part_ids=[part.id]))


async def jobs(life: Life) -> None:
    """Read a finished job; make, pause, resume and cancel another. No worker may train."""
    client, loose = life.client, life.loose
    # Its grader is a `multi` one, which OpenAI's types do not know as its service shows it.
    finished = await done(loose.fine_tuning.jobs.retrieve(life.job_id))
    assert (finished.status, finished.fine_tuned_model) == ("succeeded", life.model)
    events = await every(client.fine_tuning.jobs.list_events(life.job_id, limit=7))
    assert len(events) > 7
    assert events[-1].message == f"Created fine-tuning job: {life.job_id}"
    checkpoints = await every(client.fine_tuning.jobs.checkpoints.list(life.job_id, limit=1))
    assert checkpoints[0].fine_tuned_model_checkpoint == life.model
    for file_id in finished.result_files:
        assert (await done(client.files.content(file_id))).content

    file = await done(client.files.create(file=("rows.jsonl", ROWS), purpose="fine-tune"))
    job = await done(
        client.fine_tuning.jobs.create(
            model=life.base,
            training_file=file.id,
            method=METHOD,
            seed=5,
            suffix="e2e",
            metadata={"made": "here"},
        )
    )
    assert (job.status, job.seed) == ("validating_files", 5)

    def retrieve() -> Any:
        return client.fine_tuning.jobs.retrieve(job.id)

    await until(retrieve, lambda job: job.status != "validating_files", "the validation")
    assert (await done(loose.fine_tuning.jobs.pause(job.id))).status == "paused"
    assert (await done(client.fine_tuning.jobs.resume(job.id))).status == "queued"
    found = await every(client.fine_tuning.jobs.list(limit=1, metadata={"made": "here"}))
    assert job.id in {each.id for each in found}
    assert (await done(client.fine_tuning.jobs.cancel(job.id))).status == "cancelled"
    with pytest.raises(openai.BadRequestError):
        await done(client.fine_tuning.jobs.cancel(job.id))


async def offline_jobs(life: Life) -> None:
    """Make and cancel a supervised job, which no method says, and one of preferences."""
    client = life.client
    answer = {"role": "assistant", "content": "Yes."}
    talk = [{"role": "user", "content": "Is it open?"}]
    pair = {
        "input": {"messages": talk},
        "preferred_output": [answer],
        "non_preferred_output": [{**answer, "content": "No."}],
    }
    for row, method, kind in (
        ({"messages": [*talk, answer]}, openai.omit, "supervised"),
        (pair, {"type": "dpo", "dpo": {"hyperparameters": {"beta": 0.2}}}, "dpo"),
    ):
        content = json.dumps(row).encode()
        file = await done(client.files.create(file=("a.jsonl", content), purpose="fine-tune"))
        job = await done(
            client.fine_tuning.jobs.create(
                model=life.base, training_file=file.id, method=method, seed=5
            )
        )
        assert job.method.type == kind

        def retrieve(name: str = job.id) -> Any:
            return client.fine_tuning.jobs.retrieve(name)

        valid = await until(retrieve, lambda job: job.status == "queued", "the validation")
        assert valid.hyperparameters.batch_size == 1
        await done(client.fine_tuning.jobs.cancel(job.id))


async def permissions(life: Life) -> None:
    """Let another project use the model, and take that back."""
    permissions = life.client.fine_tuning.checkpoints.permissions
    [given] = await every(permissions.create(life.model, project_ids=[life.other_project]))
    assert given.project_id == life.other_project
    assert [each.id for each in await every(permissions.list(life.model))] == [given.id]
    deleted = await done(permissions.delete(given.id, fine_tuned_model_checkpoint=life.model))
    assert deleted.deleted


async def graders(life: Life) -> None:
    """Check a grader and run it on a text."""
    alpha = life.client.fine_tuning.alpha.graders
    assert (await done(alpha.validate(grader=GRADER))).grader.name == "exact"
    run = await done(alpha.run(grader=GRADER, model_sample="4", item={"answer": "4"}))
    assert run.reward == 1


async def models(life: Life) -> None:
    """List, show and delete models."""
    client = life.client
    listed = {model.id for model in await every(client.models.list())}
    assert {life.base, life.model, life.spare_checkpoint} <= listed
    assert (await done(client.models.retrieve(life.model))).object == "model"
    assert (await done(client.models.delete(life.spare_checkpoint))).deleted
    with pytest.raises(openai.NotFoundError):
        await done(chat(life, model=life.spare_checkpoint))
    with pytest.raises(openai.PermissionDeniedError):
        await done(client.models.delete(life.base))


def chat(life: Life, **fields: Any) -> Any:
    """Ask for a few tokens."""
    asked = {
        "model": life.model,
        "messages": [{"role": "user", "content": "Name a colour."}],
        "max_completion_tokens": 8,
    }
    return life.client.chat.completions.create(**{**asked, **fields})


class Colour(BaseModel):
    """The form of an answer."""

    red: int
    warm: bool


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


async def chats(life: Life) -> None:
    """Chat with the trained model, whole and streamed, free and in a given form."""
    answer = await done(chat(life, n=2, seed=3, logprobs=True, top_logprobs=2, temperature=1))
    assert (answer.model, [choice.index for choice in answer.choices]) == (life.model, [0, 1])
    assert answer.usage.completion_tokens <= 16
    assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 2
    again = await done(chat(life, n=2, seed=3, logprobs=True, top_logprobs=2, temperature=1))
    assert [each.message.content for each in again.choices] == [
        each.message.content for each in answer.choices
    ]
    chunks = await every(chat(life, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].usage.total_tokens > 0 and not chunks[-1].choices
    assert {chunk.system_fingerprint for chunk in chunks} == {answer.system_fingerprint}

    forced = {"type": "function", "function": {"name": "get_weather"}}
    called = await done(
        chat(life, tools=[WEATHER], tool_choice=forced, max_completion_tokens=32, temperature=0)
    )
    [call] = called.choices[0].message.tool_calls
    assert json.loads(call.function.arguments)["city"] in ("Paris", "Rome")
    parsed = await done(
        life.client.chat.completions.parse(
            model=life.model,
            messages=[{"role": "user", "content": "Describe red."}],
            response_format=Colour,
            max_completion_tokens=48,
            temperature=0,
        )
    )
    assert isinstance(parsed.choices[0].message.parsed, Colour)


async def completions(life: Life) -> None:
    """Go on from prompts in the older form."""
    asked = {"model": life.model, "max_tokens": 4, "temperature": 0}
    answer = await done(
        life.client.completions.create(**asked, prompt=["One two", "Red green"], logprobs=2)
    )
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert len(answer.choices[0].logprobs.tokens) == 4
    # As at OpenAI, chunks before the last have a null reason, which its types do not know.
    chunks = await every(life.loose.completions.create(**asked, prompt="One two", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == answer.choices[0].text


async def evals(life: Life) -> None:
    """Make an eval, let it sample and grade, read the results, delete everything."""
    client = life.client
    made = await done(
        client.evals.create(
            name="colours",
            data_source_config={
                "type": "custom",
                "item_schema": {
                    "type": "object",
                    "properties": {"question": {"type": "string"}, "answer": {"type": "string"}},
                    "required": ["question", "answer"],
                },
                "include_sample_schema": True,
            },
            testing_criteria=[GRADER],
        )
    )
    assert (await done(client.evals.retrieve(made.id))).name == "colours"
    assert (await done(client.evals.update(made.id, name="colors"))).name == "colors"
    # Each job has an eval too, with the job's grader: see `jobs`.
    assert made.id in {each.id for each in await every(life.loose.evals.list(limit=1))}
    items = [{"item": {"question": f"Say {n}.", "answer": str(n)}} for n in range(3)]
    source = {
        "type": "completions",
        "model": life.model,
        "source": {"type": "file_content", "content": items},
        "input_messages": {
            "type": "template",
            "template": [{"role": "user", "content": "{{item.question}}"}],
        },
        "sampling_params": {"max_completion_tokens": 8, "temperature": 0},
    }
    run = await done(client.evals.runs.create(made.id, name="first", data_source=source))

    def retrieve() -> Any:
        return client.evals.runs.retrieve(run.id, eval_id=made.id)

    ended = await until(
        retrieve, lambda run: run.status not in ("queued", "in_progress"), "the eval's run"
    )
    assert ended.status == "completed", ended.error
    counts = ended.result_counts
    assert (counts.total, counts.errored) == (3, 0)
    listed = client.evals.runs.output_items.list(run.id, eval_id=made.id, limit=2)
    found = await every(listed)
    assert len(found) == 3
    one = await done(
        client.evals.runs.output_items.retrieve(found[0].id, eval_id=made.id, run_id=run.id)
    )
    assert one.sample.output[0].content is not None
    second = await done(client.evals.runs.create(made.id, name="second", data_source=source))
    cancelled = await done(client.evals.runs.cancel(second.id, eval_id=made.id))
    assert cancelled.status in ("canceled", "completed")
    assert len(await every(client.evals.runs.list(made.id))) == 2
    assert (await done(client.evals.runs.delete(run.id, eval_id=made.id))).deleted
    assert (await done(client.evals.delete(made.id))).deleted
