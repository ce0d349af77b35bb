"""Run an ASGI application on a free loopback port, in a thread of this process."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import openai
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from tests.contract.hook import Checked, own_document, settle

#: Makes an official client for a key.
ClientFor = Callable[..., openai.OpenAI]

#: Seconds within which the server must listen.
START_S = 30


@dataclass(frozen=True)
class Api:
    """A running API and the secret of a key for it."""

    app: FastAPI
    url: str
    key: str


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """Serve `app` and yield its URL; every answer is checked against the contract."""
    with serving(Checked(app, own_document(app))) as url:
        yield url
    settle()


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """Serve `app` and yield its URL."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the API did not start")
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()
