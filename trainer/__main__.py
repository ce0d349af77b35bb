"""``python -m trainer JOBDIR``: learn one job; the exit code says how it ended."""

import argparse
import errno
import sys
from pathlib import Path

import torch

from trainer.channel import Channel
from trainer.errors import NoDisk, OutOfMemory, TrainerError
from trainer.run import run


def main() -> int:
    """Run the job and report its end; bugs are reported, then raised."""
    parser = argparse.ArgumentParser(prog="trainer", description=__doc__)
    parser.add_argument("job_dir", type=Path)
    job_dir: Path = parser.parse_args().job_dir.resolve()
    channel = Channel.from_environment()
    try:
        run(job_dir, channel)
    except TrainerError as end:
        return _end(channel, end)
    except (torch.OutOfMemoryError, MemoryError):
        return _end(
            channel,
            OutOfMemory(
                "No memory is left. Lower batch_size, group_size or max_completion_tokens."
            ),
        )
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return _end(channel, NoDisk(f"No space is left on the disk of {job_dir}. Free some."))
    channel.report("ended", reason="done", message="Training is complete.", examples=[])
    return 0


def _end(channel: Channel, end: TrainerError) -> int:
    channel.report("ended", reason=end.reason, message=end.message, examples=end.examples)
    return end.exit_code


if __name__ == "__main__":
    sys.exit(main())
