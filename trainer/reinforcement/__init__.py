"""Reinforcement: sample, grade, compare, update."""
