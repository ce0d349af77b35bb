"""The Python that graders run on: its folders, and reaching them without root's rights."""

import os
import site
import sys
import time

#: Where shared libraries and what the C library reads lie, besides Python's own folders.
_SYSTEM = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"),
    *(
        "/usr/share/zoneinfo",
        "/etc/localtime",
        "/usr/share/nltk_data",
        "/usr/local/share/nltk_data",
    ),
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")

#: Descriptors of Python's folders have numbers from here on.
FIRST_FD = 200


def add_packages() -> None:
    """Let installed packages be imported, without running what their .pth files say.

    The interpreter was started with -S: those files are code, and this project's own among them.
    """
    prefixes = _prefixes()
    if prefixes != [sys.prefix]:
        sys.prefix = sys.exec_prefix = prefixes[0]
    sys.path += [path for path in site.getsitepackages(prefixes) if os.path.isdir(path)]


def _prefixes() -> list[str]:
    """Where packages are installed: in the virtual environment, if this Python is of one."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))
    try:
        with open(os.path.join(folder, "pyvenv.cfg")) as file:
            text = file.read().lower().replace(" ", "")
    except FileNotFoundError:
        return [sys.prefix]
    shares = "include-system-site-packages=true" in text
    return [folder, sys.base_prefix] if shares else [folder]


def open_readable() -> dict[str, int]:
    """Open what graders may read, the runtime and nothing of the service; by path."""
    opened = {path: os.open(path, os.O_PATH) for path in _SYSTEM if os.path.exists(path)}
    for number, path in enumerate(_python_folders(), start=FIRST_FD):
        fd = os.open(path, os.O_PATH)
        opened[path] = os.dup2(fd, number)
        os.close(fd)
    return opened


def _python_folders() -> list[str]:
    """The folders of this Python's own files and packages."""
    data = [os.path.join(prefix, "nltk_data") for prefix in (sys.prefix, sys.base_prefix)]
    return sorted({path for path in (*sys.path, *data) if os.path.isdir(path)})


def make_importable(opened: dict[str, int]) -> int:
    """See to it that Python can import, also when its folders cannot be reached by their paths.

    Returns how many of the open folders are needed for that, from `FIRST_FD` on.
    """
    folders = {path: fd for path, fd in opened.items() if fd >= FIRST_FD}
    if all(os.access(path, os.R_OK | os.X_OK) for path in folders):
        return 0
    _import_through(folders)
    return len(folders)


def _import_through(opened: dict[str, int]) -> None:
    """Import through the open folders from now on.

    A Python below /root cannot be reached by another user along its path, but it can through
    `/proc/self/fd`.
    """

    def through(path: str) -> str:
        for folder in sorted(opened, key=len, reverse=True):
            if path == folder or path.startswith(folder + os.sep):
                return f"/proc/self/fd/{opened[folder]}{path[len(folder) :]}"
        return path

    sys.path[:] = [through(path) for path in sys.path]
    for module in list(sys.modules.values()):
        places = getattr(module, "__path__", None)
        if isinstance(places, list):
            places[:] = [through(place) for place in places]
    sys.path_importer_cache.clear()


def preload(names: list[str]) -> dict[str, float]:
    """Import modules by name; returns the seconds that each took. What fails is left out."""
    took = {}
    del sys.argv[1:]  # They are the fork-server's own.
    for name in names:
        started = time.perf_counter()
        try:
            __import__(name)
        except (Exception, SystemExit):  # whatever it is, the grader's own import will show it
            continue
        took[name] = time.perf_counter() - started
    return took
