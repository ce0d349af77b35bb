"""Measure the graders: `python -m bench.graders [pure judges mixed python]`."""

import sys

from bench.suite import run

if __name__ == "__main__":
    sys.exit(run("graders", ("pure", "judges", "mixed", "python"), title="Graders"))
