"""Weights as checkpoints have them, where transformers holds them in another form.

Layers of experts, for one, are single tensors in memory and one for each expert on disk.
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import revert_weight_conversion


def checkpoint_form(
    model: Any, weights: Iterator[tuple[str, Tensor]]
) -> Iterator[tuple[str, Tensor]]:
    """The weights of a transformers model under the names, and in the shapes, of its files.

    One by one where nothing is converted, so that no second copy of the model is held.
    """
    conversions = getattr(model, "_weight_conversions", None)
    if conversions is None:  # the model was not loaded from files
        conversions = get_model_conversion_mapping(model, add_legacy=False)
    if conversions:
        weights = iter(revert_weight_conversion(model, dict(weights)).items())
    yield from weights
