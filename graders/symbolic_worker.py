"""Compares formulas with math-verify, one pair a line; run as a file by `graders.symbolic`.

A line in is `[answer, reference]` as JSON, a line out `true`, `false`, or `null` when the
reference is no formula. It imports nothing of ours, holds no secrets, and may be killed any time.
"""

import json
import logging
import os
import resource
import signal
import sys
from typing import Any

#: Memory, in bytes. A formula can ask sympy for more than any machine has.
MAX_BYTES = 2**30
#: After so many seconds on one pair it ends by itself: whoever would have killed it is gone.
ORPHAN_S = 30


def main() -> None:
    """Answer until the standard input ends."""
    replies = os.fdopen(os.dup(1), "w")
    # What sympy prints is not to be taken for a reply.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    logging.disable()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from math_verify import (  # type: ignore[import-untyped]
        LatexExtractionConfig,
        parse,
        verify,
    )

    def formula(text: str) -> list[Any]:
        # No extraction of plain expressions: that one evaluates text as Python. No timeouts of its
        # own: they are signals, and the other side kills.
        found: list[Any] = parse(f"${text}$", [LatexExtractionConfig()], parsing_timeout=None)
        return found

    formula("1")
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        answer, reference = json.loads(line)
        signal.alarm(ORPHAN_S)
        wanted = formula(reference)
        same = bool(wanted) and verify(wanted, formula(answer), timeout_seconds=None)
        signal.alarm(0)
        print(json.dumps(same if wanted else None), file=replies, flush=True)


if __name__ == "__main__":
    main()
