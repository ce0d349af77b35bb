"""schemathesis reads our document and sends what it allows and what it forbids, for every path."""

import json
import os
import subprocess
import sys
from pathlib import Path

import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.manifest import commit
from core.models import ApiKey
from tests.api.examples import METHOD, upload
from tests.api.running import Api
from tests.api.things import own_one_of_each
from tests.fakes.memory_store import MemoryStore

HERE = Path(__file__).parent

#: Test cases for each operation and phase, and sequences of requests that use each other's answers.
EXAMPLES = 3

#: The hook's part. The schema of a stream is that of each event's data, as in OpenAI's document;
#: schemathesis would hold it against the whole event.
SCHEMAS = "response_schema_conformance"

#: These answer for as long as a job runs; `tests/api/test_event_stream.py` is about them.
ENDLESS = ("stream_job_events", "stream_dry_run_events")


def things(
    client: openai.OpenAI, sessions: sessionmaker[Session], store: MemoryStore, folder: Path
) -> dict[str, object]:
    """Make one of everything for the client's project; return ids by the names of their places."""
    file_id = upload(client).id
    with sessions.begin() as session:
        project_id = session.query(ApiKey.project_id).limit(1).scalar()
        assert project_id
        ids = own_one_of_each(session, project_id, "ft:base-1-2024:org-rft::a1B2c3D4")
    (folder / "adapter_model.safetensors").write_bytes(b"weights")
    commit(store, f"jobs/{ids['{fine_tuning_job_id}']}/checkpoints/8", folder)
    named = {name.strip("{}").removesuffix(":path"): value for name, value in ids.items()}
    body = {"training_file": file_id, "validation_file": None, "model": "base-1", "method": METHOD}
    return {**named, "file_id": file_id, **body}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_breaks(
    api: Api,
    client: openai.OpenAI,
    sessions: sessionmaker[Session],
    store: MemoryStore,
    tmp_path: Path,
) -> None:
    """No 5xx, and no answer that the document does not describe; the hook checks them too."""
    weights = tmp_path / "weights"
    weights.mkdir()
    command = [
        *(Path(sys.executable).with_name("st"), f"--config-file={HERE / 'schemathesis.toml'}"),
        *("run", f"{api.url}/openapi.json", "--checks=all", "--mode=all"),
        f"--exclude-checks={SCHEMAS}",
        *("--seed=1", "--generation-deterministic", f"--max-examples={EXAMPLES}"),
        *("--no-shrink", "--no-color", "--warnings=off", "--request-timeout=30"),
        *(f"--exclude-operation-id={name}" for name in ENDLESS),
        f"--header=Authorization: Bearer {api.key}",
    ]
    told = {
        "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
        "PYTHONPATH": str(HERE),
        "RFT_CONTRACT_IDS": json.dumps(things(client, sessions, store, weights)),
    }
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-30_000:] + result.stderr
