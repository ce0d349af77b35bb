"""The Celery application with the fake trainer: ``celery -A tests.workers.celery_program``."""

import os
from pathlib import Path

from core.settings import get_settings
from tests.workers.lab import Lab
from workers.app import make_app
from workers.context import Context

_settings = get_settings()
_lab = Lab(Context.open(_settings), Path(os.environ["LAB_MEMORY"]), "")
app = make_app(_settings, conduct=_lab.conduct)
