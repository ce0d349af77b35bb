"""Groups are sent to the sampler in two waves, so that a prompt is read once."""

from trainer.rollout.vllm_engine import _waves


def test_the_first_of_each_prompt_goes_ahead() -> None:
    assert _waves([[1], [1], [2], [1], [2]]) == [[0, 2], [1, 3, 4]]


def test_prompts_of_one_completion_go_together() -> None:
    assert _waves([[1], [2]]) == [[0, 1]]
    assert _waves([]) == []
