"""What is trained of a model in tests."""

from trainer.spec import AdapterSpec


def adapter(rank: int) -> AdapterSpec:
    """All weights for rank 0, or a LoRA adapter on all linear layers."""
    return AdapterSpec(rank=rank, alpha=max(1, 2 * rank), targets="all-linear", quantization="none")
