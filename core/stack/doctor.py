"""Checks of an installation: one line each, with the way out when something is wrong."""

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from core import judges
from core.db import make_engine
from core.errors import ConfigurationError, RftError
from core.registry import Registry
from core.settings import Settings, read_settings
from core.stack import environment
from core.stack.lock import read_holder
from core.stack.ports import LOCALHOST, PortBook, is_free
from core.stack.servers import broker_answers
from core.stack.stack import MIN_FREE_BYTES
from core.store import ObjectStore
from graders.sandbox import SandboxConfig, support

#: The extras that a machine running everything needs.
_EXTRAS = ("api", "worker", "embedded")


@dataclass(frozen=True)
class Check:
    """The result of one check; `text` is a sentence."""

    name: str
    ok: bool
    text: str


def examine(folder: Path) -> Iterator[Check]:
    """Check everything, for the stack in `folder` or, when RFT_DATABASE_URL is set, for that."""
    yield check_packages()
    yield check_disk(folder)
    yield check_sandbox()
    try:
        outside = read_settings()
    except ConfigurationError as error:
        yield Check("settings", ok=False, text=error.message)
        return
    yield from check_models(outside)
    if outside.judges_file is not None:
        yield check_judges(outside.judges_file)
    yield check_dashboard(outside)
    holder = read_holder(folder)
    if "database_url" in outside.model_fields_set:
        yield from check_servers(outside)
    elif holder.get("url"):
        yield Check("stack", ok=True, text=f"running at {holder['url']}")
        running = environment.embedded_environment(folder, PortBook(folder).remembered())
        yield from check_servers(environment.settings_from(running))
    else:
        yield Check("stack", ok=True, text=f"not running in {folder}; `rft-server up` starts it")
        yield from check_ports(folder)


def check_packages() -> Check:
    """Compare the installed packages with what this package asks for."""
    try:
        wanted = [Requirement(line) for line in metadata.requires("rft-service") or []]
    except metadata.PackageNotFoundError:
        return Check("packages", ok=False, text="rft-service is not installed; run `make setup`")
    wrong = [str(each.name) for each in wanted if _is_wanted(each) and not _is_satisfied(each)]
    if wrong:
        names = ", ".join(wrong)
        return Check("packages", ok=False, text=f"missing or too old: {names}; run `make setup`")
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("packages", ok=True, text=f"all there, Python {version}")


def check_models(settings: Settings) -> Iterator[Check]:
    """Check that the files of every base model exist."""
    try:
        models = Registry.load(settings.models_file).all()
    except RftError as error:
        yield Check("models", ok=False, text=error.message)
        return
    for model in models:
        there = (model.path / "config.json").is_file()
        advice = "" if there else "; run `make setup`, or correct the path in the model list"
        state = "at" if there else "missing at"
        yield Check("model", ok=there, text=f"{model.id} {state} {model.path}{advice}")


def check_judges(path: Path) -> Check:
    """Check that the judges file can be used and that its keys are there; no judge is asked."""
    try:
        listed = judges.read_file(path, os.environ)
    except ConfigurationError as error:
        return Check("judges", ok=False, text=error.message)
    return Check("judges", ok=True, text=f"{len(listed)} of the judges file {path}, not asked")


def check_dashboard(settings: Settings) -> Check:
    """Check that the web page has been built."""
    if (settings.dashboard_dir / "index.html").is_file():
        return Check("dashboard", ok=True, text=f"built in {settings.dashboard_dir}")
    where = settings.dashboard_dir
    return Check("dashboard", ok=False, text=f"not built in {where}; run `make setup`")


def check_disk(folder: Path) -> Check:
    """Check that there is room for data."""
    place = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(place).free
    room = f"{free / 2**30:.1f} GiB free at {place}"
    if free >= MIN_FREE_BYTES:
        return Check("disk", ok=True, text=room)
    return Check("disk", ok=False, text=f"only {room}; free some, or name another folder")


def check_sandbox() -> Check:
    """Check that the code of python graders can be confined here."""
    python = SandboxConfig().python
    found = support(python)
    if found.tier is None:
        return Check("sandbox", ok=False, text=f"python graders are refused: {found.detail}")
    return Check("sandbox", ok=True, text=f"tier {found.tier}: {found.detail}, on {python}")


def check_servers(settings: Settings) -> Iterator[Check]:
    """Check that database, broker and object store answer."""
    yield _check_database(settings.database_url)
    shown = make_url(settings.broker_url).render_as_string(hide_password=True)
    if broker_answers(settings.broker_url):
        yield Check("broker", ok=True, text=f"answers at {shown}")
    else:
        way_out = "start it or correct RFT_BROKER_URL"
        yield Check("broker", ok=False, text=f"no answer at {shown}; {way_out}")
    store = ObjectStore.from_settings(settings)
    try:
        store.ensure_bucket()
        yield Check("store", ok=True, text=f"bucket {settings.s3_bucket} at {store.endpoint}")
    except RftError as error:
        yield Check("store", ok=False, text=error.message)


def check_ports(folder: Path) -> Iterator[Check]:
    """Check that the ports of a stopped stack are still free; taken ones get replaced."""
    if not folder.exists():
        return
    taken = [
        f"{name} {port}"
        for name, port in PortBook(folder).remembered().items()
        if not is_free(port, host=LOCALHOST)
    ]
    if taken:
        names = ", ".join(taken)
        yield Check("ports", ok=True, text=f"taken by other programs, others get chosen: {names}")
    else:
        yield Check("ports", ok=True, text="free")


def _check_database(url: str) -> Check:
    shown = make_url(url).render_as_string(hide_password=True)
    try:
        engine = make_engine(url)
        with engine.connect() as connection:
            connection.execute(text("select 1"))
        engine.dispose()
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).splitlines()[0]
        way_out = "start it or correct RFT_DATABASE_URL"
        return Check("database", ok=False, text=f"no answer at {shown} ({reason}); {way_out}")
    return Check("database", ok=True, text=f"answers at {shown}")


def _is_wanted(requirement: Requirement) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in _EXTRAS)


def _is_satisfied(requirement: Requirement) -> bool:
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return False
    return requirement.specifier.contains(version, prereleases=True)
