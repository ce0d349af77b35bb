"""Write `docs/benchmarks.md` and its plots: `python -m bench.report`."""

from bench.machine import ROOT
from bench.report.page import write

if __name__ == "__main__":
    write(ROOT / "bench" / "results", ROOT / "docs" / "benchmarks.md")
