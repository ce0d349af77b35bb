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

#: Random test cases for each operation, beside those that cover its fields one by one.
EXAMPLES = 1
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


def things(ids: dict[str, str], *, file_id: str, named: str, project_id: str) -> dict[str, object]:
    """What is there, by the names of its places; `named` is the file that bodies name.

    `project_id` is the project to manage: with the caller's own archived, all else fails.
    """
    places = {name.strip("{}").removesuffix(":path"): value for name, value in ids.items()}
    managed = {"file_id": file_id, "project_id": project_id, "project_ids": [project_id]}
    body = {"training_file": named, "validation_file": None, "model": "base-1", "method": METHOD}
    return {**places, **managed, **body}


@pytest.fixture
def run(
    api: Api,
    client: openai.OpenAI,
    sessions: sessionmaker[Session],
    store: MemoryStore,
    tmp_path: Path,
) -> Callable[..., None]:
    """Let schemathesis test the API with these options."""
    weights = tmp_path / "weights"
    weights.mkdir()
    named, file_id = upload(client).id, upload(client).id
    with sessions.begin() as session:
        project_id = session.query(ApiKey.project_id).limit(1).scalar()
        assert project_id
        key, secret = create_key(session, project_id, "tester", scopes=("all", "admin"))
        own = [project_id, key.id]
        ids = own_one_of_each(session, project_id, "ft:base-1-2024:org-rft::a1B2c3D4")
        other_id = create_project(session, "managed").id
    (weights / "adapter_model.safetensors").write_bytes(b"weights")
    commit(store, f"jobs/{ids['{fine_tuning_job_id}']}/checkpoints/8", weights)
    there = things(ids, file_id=file_id, named=named, project_id=other_id)

    def st(*options: str) -> None:
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
def test_nothing_breaks(run: Callable[..., None]) -> None:
    """No 5xx, and no answer that the document does not describe; the hook checks them too."""
    run("--mode=all", "--phases=examples,coverage,fuzzing", f"--max-examples={EXAMPLES}")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("area", AREAS)
def test_sequences_go_on_from_earlier_answers(
    run: Callable[..., None], area: str, tmp_path: Path
) -> None:
    report = tmp_path / "report.ndjson"
    run(
        *("--mode=positive", "--phases=stateful", f"--max-examples={SEQUENCES}"),
        *(f"--include-path-regex=^/v1/{area}", f"--report-ndjson-path={report}"),
    )
    missed = set(AREAS[area].split()) - reached(report)
    assert not missed, f"another {SEQUENCES} sequences may reach them"


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
