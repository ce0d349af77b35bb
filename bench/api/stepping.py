"""A trainer that only reports: one step after another, each with the time at which it was told.

The supervisor starts it as it starts the real one; the job directory is its last argument.
"""

import json
import os
import time
from typing import Any

#: Steps that are told, those before the first that counts, and seconds between two of them.
STEPS, WARM_UP, PAUSE_S = 160, 10, 0.1


def main() -> None:
    """Report all steps and end."""
    reports = int(os.environ["RFT_REPORT_FD"])

    def tell(**report: Any) -> None:
        os.write(reports, json.dumps(report).encode() + b"\n")

    tell(type="started", step=0, total_steps=STEPS, resumed=False)
    tell(type="phase", phase="rl")
    for step in range(1, STEPS + 1):
        time.sleep(PAUSE_S)
        data = {
            "train_mean_reward": step / STEPS,
            "completion_tokens_mean": 31.5,
            "graders": [{"name": f"grader {n}", "scored": 64, "mean": 0.5} for n in range(4)],
            "counted": step > WARM_UP,
            "told_at": time.time(),
        }
        tell(type="metrics", phase="rl", step=step, total_steps=STEPS, data=data)
    tell(type="ended", reason="done", message="Done.")


if __name__ == "__main__":
    main()
