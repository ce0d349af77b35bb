"""Judges: models behind an OpenAI-compatible API that grade, label, rank or embed."""
