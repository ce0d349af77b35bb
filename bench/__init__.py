"""Measurements whose results are committed under ``results/``."""
