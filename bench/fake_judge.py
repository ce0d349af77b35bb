"""A judge without a model: a real HTTP server on loopback that answers by script.

Tests and benchmarks share it. It speaks OpenAI's chat completions and embeddings, and also what
no server should: it hangs, drips, breaks off, redirects and floods.

    with FakeJudge(['{"result": 0.5}']) as judge:
        ...  # judge.base_url, judge.requests, judge.most_in_flight
"""

import argparse
import asyncio
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

Mishap: TypeAlias = Literal["hang", "close", "half", "drip"]


@dataclass(frozen=True)
class Reply:
    """One answer of the script.

    `content` is the message of a chat completion; `body` replaces the whole body. `mishap`:
    `hang` never answers, `close` closes at once, `half` breaks off in the middle of the body,
    `drip` sends a byte of the body every 20 ms.
    """

    content: str | None = None
    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    mishap: Mishap | None = None
    message: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str = "stop"


@dataclass(frozen=True)
class Seen:
    """One request that arrived; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    at: float

    @property
    def body(self) -> dict[str, Any]:
        """The JSON that was sent."""
        parsed: dict[str, Any] = json.loads(self.raw)
        return parsed


Step: TypeAlias = str | Reply
Script: TypeAlias = Sequence[Step] | Callable[[Seen], Step]

ERROR_BODY = b'{"error": {"message": "scripted failure", "type": "server_error"}}'
USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 3},
}


class FakeJudge:
    """The server, in a thread of its own; replies come in order, the last one for ever."""

    def __init__(self, script: Script, *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Seen] = []
        self.in_flight = self.most_in_flight = self.connections = self.open_connections = 0
        self._script, self._port, self._tls = script, port, tls
        self._loop = asyncio.new_event_loop()
        self._started, self._stop = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._port

    @property
    def root(self) -> str:
        """The server's address, without a path."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """What a judge's configuration names."""
        return f"{self.root}/v1"

    def start(self) -> Self:
        """Listen on a free port; returns when connections are accepted."""
        self._thread.start()
        if not self._started.wait(10):
            raise RuntimeError("The fake judge did not start.")
        return self

    def close(self) -> None:
        """Stop listening and drop every connection."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        connections: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._connection(reader, writer))
            connections.add(task)
            task.add_done_callback(connections.discard)

        server = await asyncio.start_server(
            accept, "127.0.0.1", self._port, backlog=1024, ssl=self._tls
        )
        self._port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        try:
            while (seen := await _read(reader)) is not None:
                self.requests.append(seen)
                self.in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self.in_flight)
                try:
                    going_on = await _send(reader, writer, seen, self._reply(seen))
                finally:
                    self.in_flight -= 1
                if not going_on:
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # The client left, as some tests want it to.
        finally:
            self.open_connections -= 1
            writer.close()

    def _reply(self, seen: Seen) -> Reply:
        if callable(self._script):
            step = self._script(seen)
        else:
            step = self._script[min(len(self.requests), len(self._script)) - 1]
        return Reply(step) if isinstance(step, str) else step


async def _read(reader: asyncio.StreamReader) -> Seen | None:
    head = await reader.readline()
    if not head:
        return None
    headers: dict[str, str] = {}
    while line := (await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(head.decode("latin-1").split(" ")[1], headers, raw, time.monotonic())


async def _send(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Seen, reply: Reply
) -> bool:
    """Answer one request; False when the connection ends with it."""
    if reply.delay_s:
        await asyncio.sleep(reply.delay_s)
    if reply.mishap == "hang":
        await reader.read(1)  # until the client leaves
        return False
    if reply.mishap == "close":
        return False
    body = _body(seen, reply)
    given = {"Content-Type": "application/json", "Content-Length": str(len(body)), **reply.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    head = f"HTTP/1.1 {reply.status} Scripted\r\n{lines}\r\n".encode()
    if reply.mishap == "half":
        writer.write(head + body[: len(body) // 2])
        await writer.drain()
        return False
    if reply.mishap == "drip":
        writer.write(head)
        for at in range(len(body)):
            writer.write(body[at : at + 1])
            await writer.drain()
            await asyncio.sleep(0.02)
        return True
    writer.write(head + body)
    await writer.drain()
    return True


def _body(seen: Seen, reply: Reply) -> bytes:
    if reply.body is not None:
        return reply.body
    if reply.status != 200:
        return ERROR_BODY
    if seen.path.endswith("/embeddings"):
        return json.dumps(_embeddings(seen.body)).encode()
    message = {"role": "assistant", "content": reply.content, **reply.message}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    answer = {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "model": seen.body.get("model"),
        "choices": [choice],
        "usage": USAGE,
    }
    return json.dumps(answer).encode()


def _embeddings(request: Mapping[str, Any]) -> dict[str, Any]:
    """Letter counts: texts that share letters point the same way."""
    data = []
    for index, text in enumerate(request["input"]):
        vector = [float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]
        data.append({"object": "embedding", "index": index, "embedding": vector})
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    # Out of order on purpose: a client has to go by the index.
    return {"object": "list", "data": data[::-1], "model": request["model"], "usage": usage}


def main() -> None:
    """Serve one reply until interrupted: `python -m bench.fake_judge --latency 0.2`."""
    parser = argparse.ArgumentParser(prog="python -m bench.fake_judge", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds until each answer")
    parser.add_argument("--content", default='{"steps": [], "result": 1.0}')
    arguments = parser.parse_args()
    reply = Reply(arguments.content, delay_s=arguments.latency)
    with FakeJudge([reply], port=arguments.port) as judge:
        # The caller reads the address from the first line.
        print(judge.base_url, flush=True)  # noqa: T201
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
