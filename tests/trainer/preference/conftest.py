"""Exports that are not proved, because each proof starts a process."""

import pytest


@pytest.fixture
def unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every export for proved."""
    proved = {"differs_from_base": True}
    monkeypatch.setattr("trainer.proof.prove", lambda *_args, **_options: proved)
