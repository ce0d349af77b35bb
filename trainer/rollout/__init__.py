"""Sampling: token ids in, token ids with log-probabilities out."""
