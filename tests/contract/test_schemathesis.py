"""schemathesis reads our document and sends what it allows and what it forbids, for every path."""

import json
import os
import subprocess
import sys
from pathlib import Path

import openai
import pytest
from sqlalchemy.orm import Session, sessionmaker

from core.models import ApiKey
from tests.api.examples import METHOD, upload
from tests.api.running import Api
from tests.api.things import own_one_of_each

HERE = Path(__file__).parent

#: Test cases for each operation and phase, and sequences of requests that use each other's answers.
EXAMPLES = 2

#: Their bytes were never stored, so that reading them ends in 503.
WITHOUT_BYTES = {"file_id", "checkpoint_id"}


def things(client: openai.OpenAI, sessions: sessionmaker[Session]) -> dict[str, object]:
    """Make one of everything for the client's project; return ids by the names of their places."""
    file_id = upload(client).id
    with sessions.begin() as session:
        project_id = session.query(ApiKey.project_id).limit(1).scalar()
        assert project_id
        ids = own_one_of_each(session, project_id, "ft:base-1-2024:org-rft::a1B2c3D4")
    named = {name.strip("{}").removesuffix(":path"): value for name, value in ids.items()}
    found = {name: value for name, value in named.items() if name not in WITHOUT_BYTES}
    return {**found, "file_id": file_id, "training_file": file_id, "model": "base-1"} | {
        "method": METHOD,
        "validation_file": None,
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_breaks(
    api: Api, client: openai.OpenAI, sessions: sessionmaker[Session], tmp_path: Path
) -> None:
    """No 5xx, and no answer that the document does not describe; the hook checks them too."""
    command = [
        *(Path(sys.executable).with_name("st"), f"--config-file={HERE / 'schemathesis.toml'}"),
        *("run", f"{api.url}/openapi.json", "--checks=all", "--mode=all"),
        *("--seed=1", "--generation-deterministic", f"--max-examples={EXAMPLES}"),
        *("--no-shrink", "--no-color", "--warnings=off"),
        f"--header=Authorization: Bearer {api.key}",
    ]
    told = {
        "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
        "PYTHONPATH": str(HERE),
        "RFT_CONTRACT_IDS": json.dumps(things(client, sessions)),
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
