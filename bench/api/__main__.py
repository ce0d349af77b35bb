"""Measure the API: `python -m bench.api [reads validate upload events results]`."""

import sys

from bench.suite import run

if __name__ == "__main__":
    sys.exit(run("api", ("reads", "validate", "upload", "events", "results"), title="API"))
