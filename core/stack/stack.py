"""Start the whole service in one folder, keep it running, stop all of it.

    with Stack.start(Path(".rft")) as stack:
        client = OpenAI(base_url=stack.api_url, api_key=stack.create_key())

A child that dies is named with the end of its log and started again. One that dies more than
`RESTARTS` times within `WINDOW_S` seconds brings the stack down: `failure` then says why.
"""

import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from sqlalchemy import select
from sqlalchemy.orm import Session

from core import judges, keys, migrate
from core.db import make_engine, session_factory
from core.errors import ConfigurationError, RftError
from core.models import ApiKey, Project
from core.process.child import Child, ChildSpec, describe_exit
from core.registry import Registry
from core.settings import Settings
from core.stack import environment, programs, servers
from core.stack.access import project_for_key, record_key
from core.stack.lock import FolderLock
from core.stack.ports import LOCALHOST, PortBook

RESTARTS = 3
WINDOW_S = 600.0
#: Free disk space below which the stack does not start, in bytes.
MIN_FREE_BYTES = 1 << 30
_POLL_S = 0.3

Report = Callable[[str], None]


class StackFailed(RftError):
    """A child could not be started or kept running."""

    code = "stack_failed"


class Stack:
    """A running embedded stack; made by `Stack.start`, ended by `stop` or as a context."""

    def __init__(self, folder: Path, *, report: Report) -> None:
        self.folder = folder
        self.failure: str | None = None
        self.settings: Settings
        self.api_url = ""
        self.dashboard_url = ""
        self._report = report
        self._lock: FolderLock | None = None
        self._children: dict[str, Child] = {}
        self._deaths: dict[str, deque[float]] = {}
        self._stopping = threading.Event()
        self._failed = threading.Event()
        self._watched = threading.Event()
        self._children_gone = threading.Event()
        self._monitor = threading.Thread(target=self._monitor_main, name="monitor", daemon=True)

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        host: str = LOCALHOST,
        port: int | None = None,
        env: Mapping[str, str] | None = None,
        report: Report = lambda _line: None,
    ) -> "Stack":
        """Start every part and return when the API answers.

        Call it from a thread that outlives the stack. `env` adds variables for the children,
        `report` receives lines for a person. Raises ConfigurationError (folder in use, port taken,
        no disk, no base model) or StackFailed; nothing is left running then.
        """
        folder = folder.resolve()
        stack = cls(folder, report=report)
        with ExitStack() as undo:
            undo.callback(stack.stop)
            stack._start(host=host, port=port, env=dict(env or {}))
            undo.pop_all()
        return stack

    def create_key(self, name: str = "default") -> str:
        """Make an API key in the stack's first project and return its secret."""
        with self._session() as session:
            active = select(Project).where(Project.archived_at.is_(None))
            project = session.scalar(active.order_by(Project.created_at, Project.id).limit(1))
            project = project or project_for_key(session, "default")
            key, secret = keys.create_key(session, project.id, name)
            record_key(session, "created", key)
            return secret

    def has_keys(self) -> bool:
        """Say whether somebody was given a key before, be it revoked since."""
        with self._session() as session:
            return session.scalar(select(ApiKey.id).limit(1)) is not None

    def pids(self, name: str) -> list[int]:
        """Return the process ids of one child, the command itself first."""
        return self._children[name].pids()

    def wait(self) -> None:
        """Block until the stack fails; raises StackFailed."""
        while not self._failed.wait(timeout=1.0):
            continue
        raise StackFailed(self.failure or "The stack failed.")

    def stop(self) -> None:
        """Stop every child, those that use the servers first, and free the folder."""
        self._stopping.set()
        if self._monitor.is_alive():
            self._watched.wait()  # from here on nothing is started again
        everything = list(self._children.values())
        stores = [child for child in everything if child.spec.name in ("broker", "store")]
        for group in ([child for child in everything if child not in stores], stores):
            for child in group:
                child.ask_to_stop()
            for child in group:
                child.wait()
        self._children_gone.set()
        if self._monitor.is_alive():
            self._monitor.join()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> "Stack":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self.failure is not None and not isinstance(error, StackFailed):
            raise StackFailed(self.failure) from error

    @contextmanager
    def _session(self) -> Iterator[Session]:
        engine = make_engine(self.settings.database_url)
        try:
            with session_factory(engine).begin() as session:
                yield session
        finally:
            engine.dispose()

    def _start(self, *, host: str, port: int | None, env: dict[str, str]) -> None:
        environment.refuse_outside_servers()
        prepare_folder(self.folder)
        self._lock = FolderLock(self.folder)
        book = PortBook(self.folder)
        if port is None:
            port = book.choose("api", preferred=8000, host=host)
        else:
            book.require("api", port, host=host)
        ports = environment.choose_ports(self.folder)
        variables = environment.embedded_environment(self.folder, ports)
        self.settings = environment.settings_from(variables)
        require_models(self.settings)
        if self.settings.judges_file is not None:
            # API and workers would end over a wrong one, each with a traceback.
            judges.read_file(self.settings.judges_file, {**os.environ, **env})
        url = f"http://{programs.reachable(host)}:{port}"
        self.api_url, self.dashboard_url = f"{url}/v1", f"{url}/"
        migrate.upgrade(self.settings.database_url)
        self._launch(
            servers.broker_spec(self.folder, self.settings),
            servers.store_spec(self.folder, self.settings),
        )
        self._launch(
            *programs.program_specs(
                self.folder,
                self.settings,
                host=host,
                port=port,
                env={**os.environ, **variables, **env},
            )
        )
        self._lock.publish(url=url)
        self._monitor.start()

    def _launch(self, *specs: ChildSpec) -> None:
        """Start children side by side and return when all are ready."""
        assert self._lock is not None
        logs = self.folder / "logs"
        for spec in specs:
            child = Child(spec, logs / f"{spec.name}.log", keep_open=(self._lock.descriptor,))
            self._children[spec.name] = child
            child.start()
        for spec in specs:
            self._await(self._children[spec.name])

    def _await(self, child: Child) -> None:
        deadline = time.monotonic() + child.spec.ready_s
        while child.spec.is_ready is not None and not child.spec.is_ready():
            if (code := child.exit_code()) is not None:
                raise StackFailed(_obituary(child, describe_exit(code)))
            if time.monotonic() > deadline:
                wait = f"does not answer after {child.spec.ready_s:.0f} s"
                raise StackFailed(_obituary(child, wait))
            time.sleep(_POLL_S)
        self._report(f"{child.spec.name} started")

    def _monitor_main(self) -> None:
        try:
            self._watch()
        finally:
            self._watched.set()
            # The kernel stops a child when the thread that started it ends, so this one stays
            # until the last of them has been stopped in its turn.
            self._children_gone.wait()

    def _watch(self) -> None:
        """Restart what dies, in the monitor thread, until the stack stops or gives up."""
        while not self._stopping.wait(_POLL_S):
            for child in self._children.values():
                code = child.exit_code()
                if code is not None and not self._revive(child, code):
                    self._failed.set()
                    return

    def _revive(self, child: Child, code: int) -> bool:
        obituary = _obituary(child, describe_exit(code))
        deaths = self._deaths.setdefault(child.spec.name, deque())
        deaths.append(time.monotonic())
        while deaths[0] < time.monotonic() - WINDOW_S:
            deaths.popleft()
        if len(deaths) > RESTARTS:
            self.failure = f"{obituary}\nIt ended {len(deaths)} times; the stack stops."
            return False
        self._report(f"{obituary}\nStarting {child.spec.name} again.")
        try:
            child.start()
        except OSError as error:
            self.failure = (
                f"{obituary}\nIt cannot be started again ({error.strerror}); the stack stops."
            )
            return False
        return True


def prepare_folder(folder: Path) -> None:
    """Make the folder and its parts; raises ConfigurationError when the disk is nearly full."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise ConfigurationError(
            f"Only {free / 2**30:.1f} GiB are free at {folder}, and the stack needs"
            f" {MIN_FREE_BYTES / 2**30:.0f} GiB; free some space or name another folder with --dir."
        )


def require_models(settings: Settings) -> None:
    """Raise ConfigurationError naming the first base model whose files are missing."""
    for model in Registry.load(settings.models_file).all():
        if not (model.path / "config.json").is_file():
            raise ConfigurationError(
                f"The base model {model.id} is missing at {model.path}; run `make setup`, or"
                f" correct its path in {settings.models_file}."
            )


def _obituary(child: Child, what: str) -> str:
    return f"{child.spec.name} {what}; the end of {child.log}:\n{child.log_tail()}"
