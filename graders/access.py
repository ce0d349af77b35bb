"""What a grader needs of the outside world, held against what the operator allows.

Found without building the grader, so that it can be said when a job is created.
"""

from collections.abc import Iterator
from typing import NamedTuple

from graders.base import Spec
from graders.endpoint import Endpoint
from graders.errors import SpecProblem
from graders.http import Policy
from graders.judges.config import Ability, Modality, find
from graders.judges.judge import refusal
from graders.judges.spec import JudgeSpec
from graders.services import ServicesConfig
from graders.text_similarity import EMBEDDING_MODEL, TextSimilarity


class Need(NamedTuple):
    """A model that a grader asks; `param` is the dotted path of the field that names it."""

    param: str
    model: str
    does: Ability
    reads: frozenset[Modality]


def needs(spec: Spec) -> list[Need]:
    """The models that a grader and its children ask."""
    found = []
    for place, each in _leaves(spec):
        match each:
            case JudgeSpec():
                found.append(Need(f"{place}model", each.model, each.ability, each.modalities()))
            case TextSimilarity(evaluation_metric="cosine"):
                model = each.embedding_model or EMBEDDING_MODEL
                found.append(Need(f"{place}embedding_model", model, "embeddings", frozenset()))
    return found


def problems(spec: Spec, config: ServicesConfig) -> list[SpecProblem]:
    """Why a grader cannot run here: unknown models, and URLs that may not be called."""
    found = []
    for need in needs(spec):
        reason = refusal(config.judges, need.model, does=need.does, reads=need.reads)
        if reason is not None:
            found.append(SpecProblem(need.param, reason))
    policy = Policy(config.http.allow_hosts)
    for place, each in _leaves(spec):
        reason = each.refusal(policy) if isinstance(each, Endpoint) else None
        if reason is not None:
            found.append(SpecProblem(f"{place}url", reason))
    return found


def reduced(spec: Spec, config: ServicesConfig) -> ServicesConfig:
    """The configuration with those judges only that the grader asks: it gets no other keys."""
    used = [find(config.judges, need.model, need.does) for need in needs(spec)]
    kept = tuple(judge for judge in config.judges if judge in used)
    return config.model_copy(update={"judges": kept})


def _leaves(spec: Spec, place: str = "") -> Iterator[tuple[str, Spec]]:
    """The graders that are no `multi`, each with its place."""
    children = getattr(spec, "graders", None)
    if children is None:
        yield place, spec
        return
    for key, child in children.items():
        yield from _leaves(child, f"{place}graders.{key}.")
