"""A client for server-sent events, as small as can be."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class Sent:
    """One event; `name` is "message" where none was sent."""

    id: str | None
    name: str
    data: Any


def parse(lines: Iterator[str]) -> Iterator[Sent]:
    """Read events; comments and the retry time are left out."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                data = json.loads(fields["data"])
                yield Sent(fields.get("id"), fields.get("event", "message"), data)
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


@contextmanager
def stream(
    http: httpx.Client, path: str, *, last_event_id: str | None = None, timeout_s: float = 20
) -> Iterator[Iterator[Sent]]:
    """Open a stream and yield its events; one that is silent for too long fails the test."""
    headers = {"last-event-id": last_event_id} if last_event_id else {}
    with http.stream("GET", path, headers=headers, timeout=timeout_s) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield parse(response.iter_lines())
