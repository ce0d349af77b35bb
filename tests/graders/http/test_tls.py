"""https: the certificate must be of the host that was named, wherever its name led."""

import asyncio
import ssl
from pathlib import Path

import httpx
import pytest

from bench.fake_judge import FakeJudge, Reply
from graders.http import Answer, Outbound, Policy, Retry, Target, Unavailable
from tests.graders.http.certificate import write_certificate


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The key and certificate of judge.test."""
    return write_certificate("judge.test", tmp_path_factory.mktemp("tls") / "judge.pem")


def post(host: str, pem: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Answer, FakeJudge]:
    """Send a request to a host whose name leads to this machine."""

    async def here(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr("graders.http.connections.resolve", here)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with FakeJudge([Reply(body=b"{}")], tls=context) as server:

        async def run() -> Answer:
            outbound = Outbound(Policy([host]))
            target = Target(httpx.URL(f"https://{host}:{server.port}/"), timeout_s=20)
            try:
                await outbound.post(target, b"{}", retry=Retry(attempts=1))
                return await outbound.post(target, b"{}", retry=Retry(attempts=1))
            finally:
                await outbound.close()

        return asyncio.run(run()), server


def test_certificate_of_the_named_host(pem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    answer, server = post("judge.test", pem, monkeypatch)
    assert answer.status == 200
    assert (len(server.requests), server.connections) == (2, 1)


def test_certificate_of_another_host(pem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    with pytest.raises(Unavailable, match="Hostname mismatch"):
        post("other.test", pem, monkeypatch)


def test_certificate_that_nobody_vouches_for(pem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
        post("judge.test", pem, monkeypatch)
