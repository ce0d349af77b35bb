"""Every method of both official SDKs that makes sense here, on one running stack.

What a job trained earlier in the stack's folder is what they read and chat with; their own jobs are
made, paused, resumed and cancelled, but not trained: that worker sleeps meanwhile.
"""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from rich.console import Console
from sqlalchemy import select

from core.db import make_engine, session_factory
from core.keys import create_project
from core.models import Checkpoint
from core.stack import Stack
from examples.support import demo
from tests.contract.proxy import checked
from tests.e2e import life_cycle
from tests.e2e.calls import PATIENCE_S
from tests.e2e.life_cycle import Life
from tests.e2e.receiver import Receiver, receiving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("short_demo"),
]

NODE = Path(__file__).with_name("node")
PARTS = (
    life_cycle.files,
    life_cycle.uploads,
    life_cycle.jobs,
    life_cycle.offline_jobs,
    life_cycle.permissions,
    life_cycle.graders,
    life_cycle.chats,
    life_cycle.completions,
    life_cycle.evals,
    life_cycle.models,
)


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """Where webhooks arrive."""
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def stack(folder: Path, receiver: Receiver) -> Iterator[Stack]:
    """A running stack that has trained a model."""
    # Some tests look at how busy the model servers are: nobody else is to ask them.
    env = {"RFT_OUTBOUND_HOSTS": receiver.host, "RFT_SERVING_PROOF": "false"}
    with Stack.start(folder, env=env) as stack:
        client = client_of(stack, openai.OpenAI, strict=False)
        if not client.fine_tuning.jobs.list().data:
            demo.follow(
                client, demo.create_job(client, Console(quiet=True), seed=3), Console(quiet=True)
            )
        with (
            sleeping(stack.pids("worker-train")),
            checked(stack.api_url.removesuffix("/v1")) as url,
        ):
            stack.api_url = f"{url}/v1"
            yield stack


@contextmanager
def sleeping(pids: list[int]) -> Iterator[None]:
    """Stop processes from running until the block ends."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def client_of(stack: Stack, kind: Any, *, strict: bool = True) -> Any:
    """Make an official client."""
    return kind(
        base_url=stack.api_url,
        api_key=stack.create_key("e2e"),
        max_retries=0,
        timeout=PATIENCE_S,
        _strict_response_validation=strict,
    )


@pytest.fixture(scope="module")
def life(stack: Stack) -> Life:
    """What the life cycles share, with the synchronous clients."""
    loose = client_of(stack, openai.OpenAI, strict=False)
    job = next(job for job in loose.fine_tuning.jobs.list() if job.status == "succeeded")
    engine = make_engine(stack.settings.database_url)
    with session_factory(engine).begin() as session:
        other = create_project(session, "other").id
    engine.dispose()
    return Life(
        client=client_of(stack, openai.OpenAI),
        loose=loose,
        job_id=job.id,
        model=job.fine_tuned_model,
        base=job.model,
        spare_checkpoint="",
        other_project=other,
    )


@pytest.fixture
def spare(stack: Stack, life: Life) -> str:
    """A checkpoint that may be deleted."""
    engine = make_engine(stack.settings.database_url)
    with session_factory(engine)() as session:
        query = select(Checkpoint.name).where(
            Checkpoint.deleted_at.is_(None), Checkpoint.name != life.model
        )
        name = session.scalar(query.where(Checkpoint.is_final.is_(False)).limit(1))
    engine.dispose()
    assert name is not None
    return name


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_the_python_client(
    life: Life, request: pytest.FixtureRequest, part: Callable[[Life], Awaitable[None]]
) -> None:
    spare = request.getfixturevalue("spare") if part is life_cycle.models else ""
    asyncio.run(part(replace(life, spare_checkpoint=spare)))  # type: ignore[arg-type]


def test_the_asynchronous_python_client(stack: Stack, life: Life, spare: str) -> None:
    async def main() -> None:
        async with (
            client_of(stack, openai.AsyncOpenAI) as client,
            client_of(stack, openai.AsyncOpenAI, strict=False) as loose,
        ):
            own = replace(life, client=client, loose=loose, spare_checkpoint=spare)
            for part in PARTS:
                await part(own)

    asyncio.run(main())


def test_the_node_client(stack: Stack, life: Life, spare: str, tmp_path: Path) -> None:
    if not (NODE / "node_modules" / "openai").is_dir():
        subprocess.run(["npm", "ci", "--loglevel=error"], cwd=NODE, check=True)
    (tmp_path / "rows.jsonl").write_bytes(life_cycle.ROWS)
    given = {
        "baseURL": stack.api_url,
        "apiKey": stack.create_key("node"),
        "rows": str(tmp_path / "rows.jsonl"),
        "job": life.job_id,
        "model": life.model,
        "base": life.base,
        "spare": spare,
        "project": life.other_project,
    }
    ended = subprocess.run(
        ["node", "--test", "--test-reporter=tap", "life_cycle.mjs"],
        cwd=NODE,
        env={**os.environ, "LIFE": json.dumps(given)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]


def test_webhooks_are_what_the_clients_unwrap(life: Life, receiver: Receiver) -> None:
    made = life.client.post(
        "/webhook_endpoints",
        cast_to=object,
        body={
            "name": "e2e",
            "url": receiver.url,
            "event_types": ["fine_tuning.job.cancelled"],
        },
    )
    file = life.client.files.create(file=("rows.jsonl", life_cycle.ROWS), purpose="fine-tune")
    job = life.client.fine_tuning.jobs.create(
        model=life.base, training_file=file.id, method=life_cycle.METHOD
    )
    life.client.fine_tuning.jobs.cancel(job.id)
    body, headers = receiver.wait(PATIENCE_S)
    event = life.client.webhooks.unwrap(body, headers, secret=made["signing_secret"])
    assert (event.type, event.data.id) == ("fine_tuning.job.cancelled", job.id)
    with pytest.raises(openai.InvalidWebhookSignatureError):
        life.client.webhooks.unwrap(body + " ", headers, secret=made["signing_secret"])
    script = (
        "import OpenAI from 'openai'; const { body, headers, secret } = JSON.parse("
        "process.env.GIVEN); const client = new OpenAI({ apiKey: 'x' });"
        "const event = await client.webhooks.unwrap(body, headers, secret);"
        "console.log(event.data.id);"
    )
    told = json.dumps({"body": body, "headers": headers, "secret": made["signing_secret"]})
    said = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        cwd=NODE,
        env={**os.environ, "GIVEN": told},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == job.id


def test_a_client_that_leaves_ends_the_generation(stack: Stack, life: Life) -> None:
    with pytest.raises(openai.APITimeoutError):
        life.client.with_options(timeout=2).chat.completions.create(
            model=life.model,
            messages=[{"role": "user", "content": "Count."}],
            logit_bias={"2": -100},  # the token that ends an answer
            max_completion_tokens=4000,
            n=16,
        )
    # Left alone, the model would write for minutes.
    deadline = time.monotonic() + 30
    while busy_cores(stack.pids("serving")) > 0.3:
        assert time.monotonic() < deadline


def busy_cores(pids: list[int]) -> float:
    """Return how many cores processes keep busy, watching them for a second."""
    before = cpu_seconds(pids)
    time.sleep(1)
    return sum(seconds - before[pid] for pid, seconds in cpu_seconds(list(before)).items())


def cpu_seconds(pids: list[int]) -> dict[int, float]:
    """Return the CPU time that processes have taken; some end while they are looked at."""
    taken = {}
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            stat = Path(f"/proc/{pid}/stat").read_text()
            # The name in the second field may hold spaces, but ends with the last parenthesis.
            fields = stat.rpartition(")")[2].split()
            taken[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return taken
