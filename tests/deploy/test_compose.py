"""docker-compose.yml: valid, complete, without secrets, and true to the package and to `make`."""

import ast
import importlib.util
import json
import re
import tomllib
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from core.settings import Settings
from core.stack.programs import program_specs

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: each for name, each in SERVICES.items() if each["image"].startswith("rft-service")}
#: Variables of the compose file: `${NAME:?message}` must be given, `${NAME:-default}` may be.
VARIABLE = re.compile(r"\$\{(\w+)(:[-?])([^}]*)\}")


def strings(value: Any) -> list[str]:
    """All strings in a YAML value, keys left out."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in strings(each)]
    return [value] if isinstance(value, str) else []


def test_it_follows_the_compose_specification() -> None:
    files = metadata.files("check-jsonschema") or []
    [schema] = [file for file in files if file.name == "compose-spec.json"]
    jsonschema.validate(COMPOSE, json.loads(schema.read_text()))


def test_all_parts_are_there() -> None:
    assert set(SERVICES) == {
        *("postgres", "valkey", "seaweedfs"),
        *("migrate", "api", "worker-cpu", "worker-gpu", "beat", "serving"),
    }


def test_every_lasting_part_has_a_health_check_and_comes_back() -> None:
    for name in set(SERVICES) - {"migrate"}:
        assert SERVICES[name]["healthcheck"]["test"], name
        assert SERVICES[name]["restart"] == "unless-stopped", name


def test_dependencies_exist_and_wait_for_something_that_is_checked() -> None:
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], (name, other)
            else:
                assert (other, how["condition"]) == ("migrate", "service_completed_successfully")


def test_secrets_come_from_outside_and_are_asked_for_by_name() -> None:
    secret = re.compile("PASSWORD|SECRET|TOKEN|ACCESS_KEY|AUTH")
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if secret.search(name):
                assert VARIABLE.fullmatch(value), name
    for name, kind, message in VARIABLE.findall(TEXT):
        if secret.search(name):
            assert (kind, message) == (":?", f"Set {name} in .env."), name


def test_the_example_names_every_variable() -> None:
    example = (ROOT / "deploy" / ".env.example").read_text()
    named = set(re.findall(r"^(?:# )?(\w+)=", example, re.MULTILINE))
    assert named == {name for name, _, _ in VARIABLE.findall(TEXT)}
    for name, kind, _ in VARIABLE.findall(TEXT):
        if kind == ":?":
            assert f"\n{name}=\n" in example, f"{name} must be empty, not commented out"


def test_settings_know_every_variable_that_ours_are_given() -> None:
    known = {f"RFT_{name.upper()}" for name in Settings.model_fields}
    for name, service in OURS.items():
        assert set(service["environment"]) <= known, name


def test_what_shares_a_gpu_leaves_room_to_train() -> None:
    defaults = {name: value for name, kind, value in VARIABLE.findall(TEXT) if kind == ":-"}
    share = re.fullmatch(r"--gpu-memory-utilization (0\.\d+)", defaults["RFT_SERVING_OPTIONS"])
    assert share
    serving = int(defaults["RFT_SERVING_ENGINES"]) * float(share[1])
    sampler = float(defaults["RFT_TRAINER_SAMPLER_MEMORY_SHARE"])
    assert sampler == Settings.model_fields["trainer_sampler_memory_share"].default
    assert serving + sampler <= 0.7
    example = (ROOT / "deploy" / ".env.example").read_text()
    for name in ("SERVING_ENGINES", "SERVING_OPTIONS", "TRAINER_SAMPLER_MEMORY_SHARE"):
        assert f"# RFT_{name}={defaults[f'RFT_{name}']}\n" in example


@pytest.mark.parametrize("name", sorted(OURS))
def test_the_command_exists_in_the_package(name: str) -> None:
    command = OURS[name]["command"]
    if command[0] == "rft-server":
        scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
        assert defines(scripts["rft-server"])
        assert f"def {command[1]}(" in (ROOT / "core" / "stack" / "cli.py").read_text()
        return
    assert command[:2] == ["python", "-m"]
    assert importlib.util.find_spec(command[2])
    if command[2] == "uvicorn":
        assert command[3] == "--factory"
        assert defines(command[4])
    else:
        assert command[2:5] == ["celery", "--app", "workers.app"]
        assert defines("workers.app:app")


def defines(target: str) -> bool:
    """Whether `package.module:name` is defined at the top of that module."""
    module, name = target.split(":")
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    inside = [each for node in tree.body if isinstance(node, ast.With) for each in node.body]
    for node in (*tree.body, *inside):
        if isinstance(node, ast.Assign):
            names |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    return name in names


def test_the_embedded_stack_runs_the_same_programs(tmp_path: Path) -> None:
    names = {"worker-light": "worker-cpu", "worker-train": "worker-gpu"}
    for spec in program_specs(tmp_path, Settings(), host="0.0.0.0", port=8000, env={}):
        compose = OURS[names.get(spec.name, spec.name)]["command"]
        ours, theirs = dict(pairwise(spec.command)), dict(pairwise(compose))
        for option in ("-m", "--factory", "--app", "--queues", "--concurrency"):
            assert ours.get(option) == theirs.get(option), (spec.name, option)


def test_workers_see_the_base_models_and_give_jobs_back_before_they_are_killed() -> None:
    for name in ("worker-cpu", "worker-gpu", "serving"):
        assert any(each.endswith(":/app/.models:ro") for each in OURS[name]["volumes"]), name
    worker = OURS["worker-gpu"]
    minutes = int(worker["stop_grace_period"].removesuffix("m"))
    assert float(worker["environment"]["RFT_STOP_GRACE_S"]) + 10 <= minutes * 60
    assert worker["environment"].items() > OURS["serving"]["environment"].items()


def test_images_are_built_once_with_the_steps_of_make() -> None:
    makefile = (ROOT / "Makefile").read_text()
    built = {service["image"]: service["build"] for service in OURS.values() if "build" in service}
    assert set(built) == {service["image"] for service in OURS.values()}
    for build in built.values():
        dockerfile = (ROOT / build["dockerfile"]).read_text()
        steps = re.findall(r"RUN make (\w+)(?: REQUIREMENTS=(\S+))?", dockerfile)
        assert [target for target, _ in steps][-2:] == ["packages", "project"]
        for target, requirements in steps:
            assert re.search(rf"^{target}: ", makefile, re.MULTILINE)
            if requirements and not requirements.startswith("$"):
                assert (ROOT / requirements).is_file()
        assert "pip install" not in dockerfile  # or the steps would not be those of make
        for requirements in re.findall(r"^ARG REQUIREMENTS=(\S+)", dockerfile, re.MULTILINE):
            assert (ROOT / requirements).is_file()


def test_no_secret_stands_in_a_command_line() -> None:
    for name, service in SERVICES.items():
        for text in strings(service.get("command", [])):
            assert not VARIABLE.search(text), name


def test_what_calls_addresses_of_users_is_told_which_hosts_inside_it_may_call() -> None:
    for name in ("api", "worker-cpu", "worker-gpu"):
        assert OURS[name]["environment"]["RFT_OUTBOUND_HOSTS"] == "${RFT_OUTBOUND_HOSTS:-}", name
