"""`python -m graders --spec FILE --socket PATH`: serve one grader on a Unix socket."""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from graders.errors import SpecError
from graders.process import serve


def main() -> int:
    """Run the grader process; returns 2 when the grader is refused."""
    parser = argparse.ArgumentParser(prog="python -m graders", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="file with the grader's JSON")
    parser.add_argument("--socket", type=Path, required=True, help="Unix socket to serve on")
    arguments = parser.parse_args()
    try:
        spec = json.loads(arguments.spec.read_text(encoding="utf-8"))
        asyncio.run(serve(spec, arguments.socket))
    except (OSError, ValueError) as error:
        name = "The grader is refused" if isinstance(error, SpecError) else "Cannot start"
        sys.stderr.write(f"{name}: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
