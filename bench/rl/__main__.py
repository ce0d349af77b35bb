"""`python -m bench.rl [settings speed scaling memory]`, alone on a quiet machine: two hours."""

import sys

from bench.suite import run

if __name__ == "__main__":
    sys.exit(run("rl", ("settings", "speed", "scaling", "memory"), title="The reinforcement step"))
