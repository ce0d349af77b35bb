"""Advantages and losses as pure functions of tensors, for every algorithm."""
