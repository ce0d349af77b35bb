"""What one call leaves behind for the next: nothing."""

import pytest

from tests.graders.attacks.users import Bare, Sandboxed, code

#: What the first call does, and how a later one sees it.
LEAKS = {
    "a variable of a module": ("import os; os.left = 1", "import os; return hasattr(os, 'left')"),
    "a built-in function": (
        "import builtins; builtins.sorted = lambda x: 1",
        "return sorted([2]) == 1",
    ),
    "a module of the grader's name": (
        "import sys; sys.modules['helper'] = os",
        "import sys; return 'helper' in sys.modules",
    ),
    "a poisoned library": (
        "import json; json.loads = lambda text: 1",
        "import json; return json.loads('2') == 1",
    ),
    "the environment": ("os.environ['LEFT'] = '1'", "return 'LEFT' in os.environ"),
    "a seed": (
        "import random; random.seed(7)",
        "import random; return random.random() in (0.32383276483316237, 0.15084917392450192)",
    ),
    "a file": (
        "import tempfile; open(tempfile.gettempdir() + '/rft-left', 'w')",
        "import tempfile; path = tempfile.gettempdir() + '/rft-left'\n"
        "found = os.path.exists(path)\nif found: os.unlink(path)\nreturn found",
    ),
    "a file that the next call imports": (
        "import sys, tempfile\nfolder = tempfile.gettempdir()\n"
        "open(folder + '/rft_colorsys.py', 'w').write('planted = 1')\nsys.path.insert(0, folder)",
        "import rft_colorsys\nos.unlink(rft_colorsys.__file__)\nreturn rft_colorsys.planted",
    ),
    "a folder within folders": (
        "import tempfile; os.makedirs(tempfile.gettempdir() + '/rft-a/b/c', 0o300, exist_ok=True)",
        "import shutil, tempfile; path = tempfile.gettempdir() + '/rft-a'\n"
        "found = os.path.exists(path)\n"
        "if found: os.removedirs(path + '/b/c') if os.path.exists(path + '/b/c') else None\n"
        "return found",
    ),
    "the working folder": ("os.chdir('/usr')", "return os.getcwd() == '/usr'"),
    "the mask of new files": ("os.umask(0o12)", "return os.umask(0) == 0o12"),
    "a signal handler": (
        "import signal; signal.signal(14, signal.SIG_IGN)",
        "import signal; return signal.getsignal(14) == signal.SIG_IGN",
    ),
    "a limit": (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))",
        "import resource; return resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 50",
    ),
    "the depth of recursion": (
        "import sys; sys.setrecursionlimit(5000)",
        "import sys; return sys.getrecursionlimit() == 5000",
    ),
    "an open descriptor": ("os.dup2(0, 77)", "os.fstat(77); return 1"),
    "a thread": (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(1,), name='left', daemon=True).start()",
        "import threading; return any(t.name == 'left' for t in threading.enumerate())",
    ),
    "a trace function": (
        "import sys; sys.setprofile(print)",
        "import sys; return sys.getprofile() is print",
    ),
    "an import hook": (
        "import sys; sys.meta_path.insert(0, type('Hook', (), {'find_spec': lambda *a: None})())",
        "import sys; return type(sys.meta_path[0]).__name__ == 'Hook'",
    ),
    "an object in memory": (
        "global kept\nkept = ['rft-' + 'remembered' * 3]\nimport sys; sys.kept = kept",
        "import gc\nword = 'rft-' + 'remembered' * 3\n"
        "return any(type(each) is list and word in each for each in gc.get_objects())",
    ),
}

#: More than there are slots, so that the second call comes to where the first has been.
ROUNDS = 10


@pytest.mark.parametrize("way", LEAKS)
def test_nothing_is_left_for_the_next_call(bare: Bare, sandboxed: Sandboxed, way: str) -> None:
    leave, look = LEAKS[way]
    first, second = code(f"{leave}\nreturn 0"), code(look)
    assert bare.run([first, second], {}) == 1
    assert sandboxed.run(first, {})["value"] == 0
    for _ in range(ROUNDS):
        assert sandboxed.run(second, {})["value"] != 1


def test_numbers_drawn_at_random_differ(sandboxed: Sandboxed) -> None:
    source = code("import random; return random.random()")
    assert len({sandboxed.run(source, {})["value"] for _ in range(ROUNDS)}) == ROUNDS


def test_sample_and_item_are_the_calls_own(sandboxed: Sandboxed) -> None:
    spoil = code("item['x'].append(1); sample.clear(); return len(item['x'])")
    assert [sandboxed.run(spoil, {"x": []})["value"] for _ in range(ROUNDS)] == [1.0] * ROUNDS
