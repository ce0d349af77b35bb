"""Which groups teach something, and what is said about those that do not."""

import pytest

from graders.outcome import Abstain, Failure, Outcome
from tests.trainer.rollouts import group, rollout
from trainer.objectives.advantages import group_advantages
from trainer.sampling import Rollout
from trainer.spread import Spread, comparable, kind_of, solved_at

FAILED = Failure("sample_parse_error", "not JSON", "g")


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ([0, 1], "spread"),
        ([0.3, 0.30000001], "spread"),
        ([0, 0, FAILED], "all_same"),
        ([0.5, 0.5], "all_same"),
        ([1, 1, Abstain("no idea")], "all_solved"),
        ([1, FAILED], "too_few"),
        ([FAILED, FAILED], "too_few"),
        ([2, 2], "all_solved"),
    ],
)
def test_kinds(outcomes: list[Outcome | float], kind: str) -> None:
    made = group(*outcomes)
    assert kind_of(made, 1.0, mask_truncated=True) == kind
    advantages = group_advantages(
        [comparable(r, mask_truncated=True) for r in made], scale_by_std=True
    )
    assert any(advantages) == (kind == "spread")


def test_what_was_cut_is_no_comparison() -> None:
    cut = rollout(0, truncated=True)
    assert kind_of([cut, rollout(1), rollout(1)], 1.0, mask_truncated=True) == "all_solved"
    assert kind_of([cut, rollout(1)], 1.0, mask_truncated=True) == "too_few"


def test_the_graders_own_threshold_says_what_is_solved() -> None:
    assert solved_at({"pass_threshold": 0.5}) == 0.5
    assert solved_at({}) == 1.0
    assert kind_of(group(0.6, 0.6), 0.5, mask_truncated=True) == "all_solved"


def spread(*groups: list[Rollout]) -> Spread:
    return Spread.of(groups, solved_at=1.0, mask_truncated=True)


def test_levels() -> None:
    dull, lively = group(0, 0), group(0, 1)
    assert spread(*[dull] * 19, lively).level == "bad"
    assert spread(*[dull] * 18, *[lively] * 2).level == "warn"
    assert spread(*[dull] * 3, *[lively] * 2).level == "warn"
    good = spread(*[dull] * 2, *[lively] * 2)
    assert (good.level, good.share_without) == ("good", 0.5)
    assert good.message == "2 of 4 groups (50%) have a spread of scores to learn from."


def test_the_numbers_add_up_and_are_named() -> None:
    found = spread(group(0, 0), group(0, 0), group(1, 1), group(0, FAILED), group(0, 1))
    assert found.wire() == {
        "total": 5,
        "with_spread": 1,
        "without_spread": 4,
        "share_without_spread": 0.8,
        "all_solved": 1,
        "all_same": 2,
        "too_few": 1,
    }
    assert found.message.startswith("4 of 5 groups (80%) have no spread of scores")
    advice = found.advice(max_completion_tokens=64)
    most, *others = advice
    assert most.startswith("2 groups score the same below full marks every time: add a warm_start")
    assert sorted(text.split(":")[0] for text in others) == [
        "1 group has fewer than two completions to compare",
        "1 group is solved every time",
    ]


def test_a_cause_that_lies_elsewhere_is_named() -> None:
    cut = spread(*[group(0, 0, truncated=True)] * 3)
    (said,) = cut.advice(max_completion_tokens=64)
    assert "100% of all were cut at max_completion_tokens=64; raise it" in said
    failed = spread(*[group(FAILED, FAILED)] * 3)
    (said,) = failed.advice(max_completion_tokens=64)
    assert "100% of all could not be graded; mend the grader" in said
