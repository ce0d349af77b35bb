"""schemathesis reads our document and sends what it allows and what it forbids, for every path."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.keys import create_key, create_project
from core.manifest import commit
from core.models import ApiKey
from tests.api.examples import METHOD, upload
from tests.api.running import Api
from tests.api.things import own_one_of_each
from tests.fakes.memory_store import MemoryStore

HERE = Path(__file__).parent

#: These answer for as long as a job runs; `tests/api/test_event_stream.py` is about them.
ENDLESS = ("stream_job_events", "stream_dry_run_events")

#: Test cases for each operation and phase.
EXAMPLES = 2
#: Sequences of requests that use each other's answers, for each of the areas below.
SEQUENCES = 20

#: Beginning of paths → operations that a sequence must reach, with an id from an earlier answer.
AREAS = {
    "files": "retrieve_file download_file validate_file delete_file",
    "uploads": "add_part complete_upload cancel_upload",
    "fine_tuning/jobs": "retrieve_job list_events cancel_job list_checkpoints list_samples"
    " read_metrics clone_job",
    "fine_tuning/dry_runs": "retrieve_dry_run list_dry_run_events cancel_dry_run",
    "fine_tuning/checkpoints": "delete_permission",
    "evals": "retrieve_eval update_eval list_runs create_run delete_eval",
    "evals/.*/runs": "retrieve_run list_output_items cancel_run delete_run",
    "webhook_endpoints": "retrieve_endpoint update_endpoint rotate_secret list_deliveries"
    " delete_endpoint",
    "organization/api_keys": "retrieve_key delete_key",
    "organization/projects": "retrieve_project update_project retrieve_limits update_limits"
    " create_project_key list_project_keys archive_project",
    "organization/projects/.*/api_keys": "retrieve_project_key update_project_key"
    " delete_project_key",
}


def things(
    client: openai.OpenAI, sessions: sessionmaker[Session], store: MemoryStore, folder: Path
) -> dict[str, object]:
    """Make one of everything for the client's project; return ids by the names of their places.

    The project to manage is another one: with this one archived, every other request fails.
    """
    named_in_bodies, file_id = upload(client).id, upload(client).id
    with sessions.begin() as session:
        project_id = session.query(ApiKey.project_id).limit(1).scalar()
        assert project_id
        ids = own_one_of_each(session, project_id, "ft:base-1-2024:org-rft::a1B2c3D4")
        other_id = create_project(session, "managed").id
    (folder / "adapter_model.safetensors").write_bytes(b"weights")
    commit(store, f"jobs/{ids['{fine_tuning_job_id}']}/checkpoints/8", folder)
    named = {name.strip("{}").removesuffix(":path"): value for name, value in ids.items()}
    body = {"training_file": named_in_bodies, "validation_file": None, "model": "base-1"}
    places = {"file_id": file_id, "project_id": other_id, "project_ids": [other_id]}
    return {**named, **places, **body, "method": METHOD}


@pytest.fixture
def run(
    api: Api,
    client: openai.OpenAI,
    sessions: sessionmaker[Session],
    store: MemoryStore,
    tmp_path: Path,
) -> Callable[..., Path]:
    """Let schemathesis test the API; returns the file with all that it sent and got."""
    weights, report = tmp_path / "weights", tmp_path / "report.ndjson"
    weights.mkdir()
    there = things(client, sessions, store, weights)
    with sessions.begin() as session:
        project_id = session.query(ApiKey.project_id).limit(1).scalar()
        assert project_id
        key, secret = create_key(session, project_id, "tester", scopes=("all", "admin"))
        own = [project_id, key.id]

    def st(*options: str) -> Path:
        command = [
            *(Path(sys.executable).with_name("st"), f"--config-file={HERE / 'schemathesis.toml'}"),
            *("run", f"{api.url}/openapi.json", "--no-shrink"),
            *("--generation-deterministic", "--no-color", "--warnings=off"),
            *(f"--exclude-operation-id={name}" for name in ENDLESS),
            *("--request-timeout=30", f"--header=Authorization: Bearer {secret}"),
            *options,
        ]
        told = {
            "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
            "PYTHONPATH": str(HERE),
            "RFT_CONTRACT_IDS": json.dumps(there),
            "RFT_CONTRACT_OWN": json.dumps(own),
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

    return st


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_breaks(run: Callable[..., Path]) -> None:
    """No 5xx, and no answer that the document does not describe; the hook checks them too."""
    run("--mode=all", "--phases=examples,coverage,fuzzing", f"--max-examples={EXAMPLES}")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("area", AREAS)
def test_sequences_go_on_from_earlier_answers(run: Callable[..., Path], area: str) -> None:
    report = run(
        *("--mode=positive", "--phases=stateful", f"--max-examples={SEQUENCES}"),
        f"--include-path-regex=^/v1/{area}",
    )
    missed = set(AREAS[area].split()) - reached(report)
    assert not missed


def reached(report: Path) -> set[str]:
    """The operations that answered well to a request made from an earlier answer."""
    found = set()
    for line in report.read_text().splitlines():
        recorder = json.loads(line).get("ScenarioFinished", {}).get("recorder", {})
        for case_id, case in recorder.get("cases", {}).items():
            answer = recorder["interactions"].get(case_id, {}).get("response") or {}
            link = re.search(r"\] (\w+) -> ", (case.get("transition") or {}).get("id", ""))
            if link and 200 <= answer.get("status_code", 0) < 300:
                found.add(link[1])
    return found
