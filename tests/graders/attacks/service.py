"""A service with a sandbox, as its own process, so that it can be an ordinary user's.

`python -m tests.graders.attacks.service UID PYTHON`: a JSON request per line on standard input, an
answer per line on standard output.
"""

import asyncio
import json
import os
import sys
from typing import Any

from graders.outcome import Score
from graders.sandbox import Program, SandboxConfig
from graders.sandbox.process import ProcessSandbox

SETTLED = "def grade(sample, item):\n    return 0.25\n"


async def main(uid: int, python: str) -> None:
    """Serve until standard input ends."""
    if os.getuid() != uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    sandboxes: dict[float, ProcessSandbox] = {}
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        request = json.loads(line)
        timeout_s = request["timeout_s"]
        if timeout_s not in sandboxes:
            sandboxes[timeout_s] = ProcessSandbox(
                SandboxConfig(
                    python=python, timeout_s=timeout_s, memory_mb=256, disk_mb=16, tmp_dir="/tmp"
                )
            )
        answer = await _answer(sandboxes[timeout_s], request)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for sandbox in sandboxes.values():
        await sandbox.close()


async def _answer(sandbox: ProcessSandbox, request: dict[str, Any]) -> dict[str, Any]:
    before = _server(sandbox)
    # Beside the attack runs another call: it must not feel anything.
    attack, neighbour = await asyncio.gather(
        sandbox.run(Program(request["source"]), {"output_text": ""}, request["item"]),
        sandbox.run(Program(SETTLED), {"output_text": ""}, {}),
    )
    after = await sandbox.run(Program(SETTLED), {"output_text": ""}, {})
    survived = before in (None, _server(sandbox))
    return {
        "value": attack.outcome.value if isinstance(attack.outcome, Score) else None,
        "kind": None if isinstance(attack.outcome, Score) else attack.outcome.kind,
        "detail": None if isinstance(attack.outcome, Score) else attack.outcome.detail,
        "output": attack.output,
        "refused": dict(attack.refused),
        "others_unharmed": survived and neighbour.outcome == after.outcome == Score(0.25),
    }


def _server(sandbox: ProcessSandbox) -> int | None:
    return sandbox.server_pid


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
