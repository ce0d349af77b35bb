"""A worker as a process of its own: takes one job with the lab's fake trainer.

python worker_program.py MEMORY_DIR   (settings come from RFT_… variables)
"""

import logging
import sys
import threading
from pathlib import Path

from core.settings import get_settings
from tests.workers.lab import Lab
from workers.context import Context
from workers.supervisor.supervise import run_next

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    context = Context.open(get_settings())
    lab = Lab(context, Path(sys.argv[1]), "")
    run_next(context, owner="victim", stopping=threading.Event(), conduct=lab.conduct)
