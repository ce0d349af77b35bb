"""``python -m trainer JOBDIR``: learn one job; the exit code says how it ended."""

import argparse
import errno
import sys
from pathlib import Path

from trainer.channel import Channel
from trainer.errors import NoDisk, OutOfMemory, TrainerError
from trainer.run import run
from trainer.watch.memory import is_out_of_memory


def main() -> int:
    """Run the job and report its end; a bug is reported, then raised."""
    parser = argparse.ArgumentParser(prog="trainer", description=__doc__)
    parser.add_argument("job_dir", type=Path)
    job_dir: Path = parser.parse_args().job_dir.resolve()
    channel = Channel.from_environment()
    try:
        run(job_dir, channel)
    except TrainerError as end:
        return _end(channel, end)
    except Exception as error:
        end_of_machine = as_end(error, job_dir)
        if end_of_machine is None:
            channel.report("ended", reason="error", message=repr(error), examples=[])
            raise
        return _end(channel, end_of_machine)
    channel.report("ended", reason="done", message="Training is complete.", examples=[])
    return 0


def as_end(error: Exception, job_dir: Path) -> TrainerError | None:
    """What an error of the machine means for the job; ``None`` when it is a bug."""
    if is_out_of_memory(error):
        return OutOfMemory(
            "Memory is used up. Use shorter rows or completions, or a machine with more memory."
        )
    # Safetensors has no error type of its own for this.
    text = str(error).lower()
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or "no space left" in text or "quota exceeded" in text:
        return NoDisk(f"No space is left on the disk of {job_dir}. Free some, then resume.")
    return None


def _end(channel: Channel, end: TrainerError) -> int:
    channel.report("ended", reason=end.reason, message=end.message, examples=end.examples)
    return end.exit_code


if __name__ == "__main__":
    sys.exit(main())
