"""``python -m bench.rl [speed scaling memory]``, alone on a quiet machine."""

import sys

from bench.suite import run

if __name__ == "__main__":
    sys.exit(run("rl", ("speed", "scaling", "memory"), title="The reinforcement step"))
