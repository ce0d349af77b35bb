"""docs/api.md names every path, field and scope of the API."""

import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from api.schemas.chat import ChatRequest
from api.schemas.dry_run_report import DryRunReport
from api.schemas.dry_runs import CreateDryRun
from api.schemas.graders import RunGrader, ValidateGrader
from api.schemas.jobs import CreateJob
from core.keys import SCOPES
from tests.api.running import Api

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page() -> str:
    """The documentation."""
    return (ROOT / "docs" / "api.md").read_text()


def test_every_path(api: Api, page: str) -> None:
    for route in api.app.routes:
        if isinstance(route, APIRoute):
            path = route.path.replace(":path", "")
            for method in route.methods:
                assert f"`{method} {path}`" in page


def test_every_field_and_scope(page: str) -> None:
    unsupported = {
        name for name, field in ChatRequest.model_fields.items() if field.annotation is type(None)
    }
    bodies = (CreateJob, ChatRequest)
    for name in [*SCOPES, *(name for body in bodies for name in body.model_fields)]:
        if name not in unsupported:
            assert re.search(rf"`{name}\b", page), name
    for name in [*RunGrader.model_fields, *ValidateGrader.model_fields]:
        assert f'"{name}"' in page


def test_every_field_of_a_dry_run_and_its_report() -> None:
    page = (ROOT / "docs" / "dry-runs.md").read_text()
    takes, report = page.split("## The report")
    for name in CreateDryRun.model_fields:
        assert f"`{name}`" in takes, name
    for name in DryRunReport.model_fields.keys() - {"version"}:
        assert f"`{name}`" in report, name
