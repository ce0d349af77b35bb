"""Read a training file from standard input, write its report to standard output as JSON.

python -m core.inspection.child <train.jsonl
"""

import json
import os
import sys

from rft.dataset import Validator

#: Less than what answers requests gets: an upload must not wait for the inspection beside it.
NICENESS = 10

_CHUNK_BYTES = 1 << 20


def main() -> None:
    """Inspect standard input as rows of the kind that the command line names."""
    os.nice(NICENESS)
    validator = Validator(sys.argv[1])
    while chunk := os.read(sys.stdin.fileno(), _CHUNK_BYTES):
        validator.feed(chunk)
    json.dump(validator.close().to_dict(), sys.stdout)


if __name__ == "__main__":
    main()
