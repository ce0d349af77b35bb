"""Completions that are cut or get no score."""

from trainer.watch.signs.completions import cut, without_score


def test_many_cut_completions_are_seen() -> None:
    assert cut(3, {"truncated_share": 0.1}) is None
    found = cut(3, {"truncated_share": 0.25})
    assert found is not None and "25% of the completions of step 3" in found.message


def test_a_step_without_any_score_is_seen() -> None:
    assert without_score(3, {"abstentions": 5, "train_mean_reward": 0.0}) is None
    assert without_score(3, {"abstentions": 0, "train_mean_reward": None}) is None
    found = without_score(3, {"abstentions": 5, "train_mean_reward": None})
    assert found is not None and found.data == {"abstentions": 5}
