"""Names that users see and keys that objects lie under."""

import hashlib

from core.artifacts import root_of
from core.ids import ALPHABET


def model_name(base: str, *, organization: str, suffix: str | None, job_id: str) -> str:
    """The name of a job's final model: ``ft:{base}:{org}:{suffix}:{8 characters}``.

    It depends on the job alone, so a run that takes over announces the same name.
    """
    return f"ft:{base}:{organization}:{suffix or ''}:{_short(job_id)}"


def checkpoint_name(
    base: str, *, organization: str, suffix: str | None, job_id: str, step: int, phase: str = "rl"
) -> str:
    """The name of an intermediate checkpoint; each has eight characters of its own."""
    place = _place(phase, step)
    own = _short(f"{job_id}/{place}")
    return f"ft:{base}:{organization}:{suffix or ''}:{own}:ckpt-step-{place}"


def checkpoint_root(job_id: str, *, step: int, fence: int, final: bool, phase: str = "rl") -> str:
    """Where a checkpoint's objects lie; its model and its state are committed apart below.

    The fence keeps a holder that lost the job, and does not know it yet, from writing among the
    objects of its successor.
    """
    if final:
        return f"models/{job_id}/{fence}"
    return f"jobs/{job_id}/checkpoints/{_place(phase, step)}/{fence}"


def model_prefix(root: str) -> str:
    """Where a checkpoint's weights and tokenizer lie: all that serving needs."""
    return f"{root}/model"


def state_prefix(model_prefix: str) -> str:
    """Where the resumable state beside some weights lies."""
    return f"{root_of(model_prefix)}/state"


def rollouts_key(job_id: str, *, step: int, split: str, fence: int) -> str:
    """Where one step's samples lie."""
    return f"jobs/{job_id}/rollouts/{step}-{split}-{fence}.jsonl.zst"


def report_key(job_id: str, *, stage: str, step: int, fence: int) -> str:
    """Where one evaluation report lies."""
    return f"jobs/{job_id}/reports/{stage}-{step}-{fence}.json"


def result_key(job_id: str, *, filename: str, fence: int) -> str:
    """Where a result file lies."""
    return f"jobs/{job_id}/results/{fence}/{filename}"


def _place(phase: str, step: int) -> str:
    """A step among all of a job; those of a warm start are counted apart."""
    return f"warm-{step}" if phase == "warm_start" else str(step)


def _short(text: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    characters = []
    for _ in range(8):
        number, index = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[index])
    return "".join(characters)
