"""Read a training file from standard input, write its report to standard output as JSON.

python -m core.inspection.child auto <train.jsonl
"""

import json
import os
import sys
import time

from rft.dataset import Validator

from core.inspection.apart import TOO_SLOW

#: Less than what answers requests gets: an upload must not wait for the inspection beside it.
NICENESS = 10
#: Time that any file may take, in CPU seconds, and the bytes that must be read for each further
#: second. Rows of usual length are read ten times as fast; some gigabytes of the shortest ones
#: would keep others from being read for hours.
GRACE_S, LEAST_PACE = 30.0, 4 * 1024 * 1024

_CHUNK_BYTES = 1 << 20


def main() -> None:
    """Inspect standard input as rows of the kind that the command line names."""
    os.nice(NICENESS)
    validator = Validator(sys.argv[1])
    read = 0
    while chunk := os.read(sys.stdin.fileno(), _CHUNK_BYTES):
        validator.feed(chunk)
        read += len(chunk)
        if time.process_time() > GRACE_S + read / LEAST_PACE:
            sys.exit(TOO_SLOW)
    json.dump(validator.close().to_dict(), sys.stdout)


if __name__ == "__main__":
    main()
