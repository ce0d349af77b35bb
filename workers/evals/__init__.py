"""Runs of evals: sampling, grading, and what came of it."""
