"""docs/results.md names every parameter and field of what it describes."""

from pathlib import Path

import pytest

from api.schemas.artifacts import ArtifactObject
from api.schemas.jobs import ExportProof, ServingProof
from api.schemas.metrics import MetricSeriesObject
from api.schemas.retention import ChangeRetention, DeletionObject
from api.schemas.samples import SampleObject, SamplePage
from api.services.sample_texts import MAX_FILES, MAX_SEARCHED
from api.services.samples import Filters

PAGE = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
#: Fields that every page and object has, or whose meaning is their name.
USUAL = {"object", "fine_tuning_job_id", "first_id", "last_id", "name", "grader_latency_s"}


def sections() -> dict[str, str]:
    found = {}
    for part in PAGE.split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        found[title] = text
    return found


@pytest.mark.parametrize(
    ("section", "fields"),
    [
        ("Metrics", MetricSeriesObject.model_fields),
        ("Samples", Filters.__dataclass_fields__),
        ("Samples", SampleObject.model_fields),
        ("Samples", SamplePage.model_fields),
        ("Weights", ArtifactObject.model_fields.keys() - {"id"}),
        ("Weights", ExportProof.model_fields),
        ("Weights", ServingProof.model_fields),
        ("Retention", ChangeRetention.model_fields),
        ("Retention", DeletionObject.model_fields),
    ],
)
def test_every_field_is_described(section: str, fields: list[str]) -> None:
    text = sections()[section]
    for name in set(fields) - USUAL:
        assert f"`{name}`" in text, name


def test_the_limits_of_a_search_are_those_of_the_code() -> None:
    assert f"{MAX_SEARCHED:,} samples in {MAX_FILES} files" in " ".join(PAGE.split())
