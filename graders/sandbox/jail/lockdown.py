"""Locking a process down for good: files, system calls, resources. In this order, once."""

import os
import resource

from . import landlock, privileges, runtime
from .libc import PR_SET_PDEATHSIG, SIGKILL, prctl
from .policy import Filters


class Unavailable(Exception):
    """This machine cannot confine code; the message is a sentence that says why."""


class Confinement:
    """What confines the calls of one fork-server, made before there are any.

    `neighbours` keeps a call from the process that made it, which is under the slot's ruleset too.
    """

    def __init__(
        self, limits: privileges.Limits, filters: Filters, neighbours: landlock.Ruleset
    ) -> None:
        self.limits, self.filters, self.neighbours = limits, filters, neighbours

    def enter_slot(self, folder: str, ruleset: landlock.Ruleset) -> int | None:
        """Confine this process to a slot's folder and limits, and with it all that it forks.

        Returns the listener for refused calls, where there is one. Raises `OSError`.
        """
        os.chdir(folder)
        privileges.limit_resources(self.limits)
        privileges.die_first()
        ruleset.enforce()
        return self.filters.confine_zygote()

    def enter_call(self, parent: int) -> None:
        """Lock this process, a fresh child, down for good.

        Raises `OSError` when the kernel refuses a step; the process must end then.
        """
        os.setsid()
        prctl(PR_SET_PDEATHSIG, SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # The parent died before its death could be noticed.
        # A backstop, should nobody be left to kill at the deadline.
        resource.setrlimit(resource.RLIMIT_CPU, (self.limits.cpu_s, self.limits.cpu_s))
        if not self.filters.listener:
            privileges.limit_threads()
        self.neighbours.enforce()
        self.filters.confine_child(os.getpid())


def require_landlock() -> int:
    """The version of Landlock; raises `Unavailable` when there is none."""
    version = landlock.abi()
    if version < 1:
        raise Unavailable(
            "The kernel offers no Landlock (Linux 5.13 or newer with `landlock` among its security "
            "modules, and a container that does not block it), so Python code cannot be confined."
        )
    return version


def usable_filters() -> Filters:
    """The filters, with a listener where the kernel lets us have one.

    Tried in a child, for a filter cannot be taken off. Raises `Unavailable`.
    """
    for listener in (True, False):
        found = Filters(listener=listener)
        if _work(found):
            return found
    raise Unavailable(
        "The kernel refuses seccomp filters (CONFIG_SECCOMP_FILTER, and a container that does not "
        "block them), so Python code cannot be confined."
    )


def _work(found: Filters) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            found.confine_zygote()
            found.confine_child(os.getpid())
            code = 0
        except OSError:
            code = 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def make_rulesets(
    version: int, folders: list[str], opened: dict[str, int]
) -> tuple[list[landlock.Ruleset], landlock.Ruleset]:
    """A ruleset for each slot's folder, and the one that keeps processes apart.

    Raises `Unavailable`.
    """
    try:
        slots = [_slot_ruleset(version, folder, opened) for folder in folders]
        return slots, landlock.Ruleset(landlock.Handled.neighbours(version))
    except OSError as error:
        raise Unavailable(
            f"The kernel refuses a Landlock ruleset, so Python code cannot be confined: {error}."
        ) from error


def _slot_ruleset(version: int, folder: str, opened: dict[str, int]) -> landlock.Ruleset:
    """The runtime to read, one folder to write."""
    ruleset = landlock.Ruleset(landlock.Handled.everything(version))
    for fd in opened.values():
        ruleset.allow_open(fd, landlock.READ)
    for device in runtime.DEVICES:
        ruleset.allow(device, landlock.DEVICE)
    ruleset.allow(folder, landlock.OWN)
    return ruleset
