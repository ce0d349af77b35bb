"""Secrets of the embedded servers: made once per folder, readable by its owner only."""

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Credentials:
    """Passwords that the stack's own parts use among themselves."""

    broker_password: str
    s3_access_key_id: str
    s3_secret_access_key: str
    serving_token: str


def load(folder: Path) -> Credentials:
    """Return the folder's credentials, making them on the first call."""
    path = folder / "secrets" / "credentials.json"
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = Credentials(
            broker_password=secrets.token_urlsafe(24),
            s3_access_key_id=secrets.token_hex(10),
            s3_secret_access_key=secrets.token_urlsafe(30),
            serving_token=secrets.token_urlsafe(30),
        )
        write_private(path, json.dumps(asdict(fresh)))
    return Credentials(**json.loads(path.read_text()))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read (mode 0600), complete or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    partial.replace(path)
