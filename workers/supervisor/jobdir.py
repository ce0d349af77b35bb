"""The folder that a trainer works in: its orders, its data, and where it goes on from."""

import shutil
from pathlib import Path
from typing import Any

from core import manifest
from core.errors import ManifestMismatch, ManifestMissing, NotFound, ObjectMissing
from core.fenced import FencedWriter
from core.methods import chosen
from core.models import Checkpoint, File, Job
from core.permissions import usable_by
from graders.masking import masked
from trainer.spec import (
    AdapterSpec,
    DataSpec,
    Hyperparameters,
    LimitsSpec,
    ModelSpec,
    PreferenceSpec,
    ReinforcementSpec,
    SupervisedSpec,
    TrainSpec,
    WarmStartSpec,
)
from workers.context import Context
from workers.supervisor import names
from workers.supervisor.dry_run import dry_run_spec

#: Most steps between two checkpoints; evaluations and the ends of epochs bring further ones.
CHECKPOINT_INTERVAL = 10

#: Checkpoints over a job whose steps are short.
OFFLINE_CHECKPOINTS = 20


class DataGone(NotFound):
    """A file or model that the job was made with has been deleted since."""


def path_of(context: Context, job_id: str, fence: int) -> Path:
    """The job directory of one attempt."""
    return (context.settings.data_dir / "jobs" / f"{job_id}-{fence}").resolve()


def prepare(context: Context, job: Job, writer: FencedWriter, directory: Path) -> Checkpoint | None:
    """Fill a fresh job directory; returns the checkpoint to go on from, ``None`` from nothing.

    Everything that the last attempt recorded past that checkpoint is forgotten.

    Raises:
        DataGone: an input was deleted.
        StorageError: the object store does not answer.
        ConfigurationError: the base model is no longer listed, or its files are gone.
    """
    for left_over in directory.parent.glob(f"{job.id}-*"):
        shutil.rmtree(left_over)
    (directory / "out").mkdir(parents=True)
    _fetch_files(context, job, directory / "data")
    if job.init_from is not None:
        _fetch_init(context, job, directory / "init")
    spec = make_spec(context, job)
    (directory / "spec.json").write_text(spec.model_dump_json(indent=1))
    last = _fetch_last(context, writer, directory / "resume")
    if last is None:
        writer.rewind(0, phase="loading")
    else:
        writer.rewind(last.step, phase=last.phase)
    return last


def make_spec(context: Context, job: Job) -> TrainSpec:
    """The trainer's orders for a job whose every value is resolved.

    Raises:
        ConfigurationError: the base model is no longer listed, or its files are gone.
    """
    settings, method = context.settings, chosen(job.method)
    base = context.registry.require(job.model)
    values = method["hyperparameters"]
    return TrainSpec(
        job_id=job.id,
        seed=job.seed,
        model=ModelSpec(
            id=base.id,
            path=base.path,
            context_tokens=base.context_tokens,
            chat_template=base.chat_template,
        ),
        init="init" if job.init_from else None,
        adapter=AdapterSpec(
            rank=values["lora_rank"],
            alpha=values["lora_alpha"],
            targets=values["lora_targets"],
            quantization=values["quantization"],
        ),
        data=DataSpec(
            train="data/train.jsonl",
            validation="data/validation.jsonl" if job.validation_file else None,
            warm_start="data/warm_start.jsonl" if job.warm_start_file else None,
        ),
        method=_method(context, job),
        limits=_limits(method["limits"], job),
        checkpoint_interval=_checkpoint_interval(values["max_steps"], job.method["type"]),
        engine=settings.trainer_engine,
        dtype=base.dtype or settings.trainer_dtype,
        threads=settings.trainer_threads,
        processes=settings.trainer_processes,
        sampler_memory_share=settings.trainer_sampler_memory_share,
    )


def final_name(context: Context, job: Job) -> str:
    """The name under which the job's result will be served."""
    return names.model_name(
        job.model,
        organization=context.settings.organization_id,
        suffix=job.suffix,
        job_id=job.id,
    )


def _method(context: Context, job: Job) -> ReinforcementSpec | SupervisedSpec | PreferenceSpec:
    values = chosen(job.method)["hyperparameters"]
    if job.method["type"] == "supervised":
        return SupervisedSpec(type="supervised", **_offline(values))
    if job.method["type"] == "dpo":
        own = {name: values[name] for name in ("loss", "beta")}
        return PreferenceSpec(type="dpo", **own, **_offline(values))
    return _reinforcement(context, job)


def _offline(values: dict[str, Any]) -> dict[str, Any]:
    names = ("batch_size", "max_steps", "learning_rate", "eval_interval", "eval_samples")
    return {name: values[name] for name in names}


def _checkpoint_interval(steps: int, method: str) -> int:
    """Steps without sampling are short, so those of offline methods are counted in shares."""
    if method == "reinforcement":
        return CHECKPOINT_INTERVAL
    return max(CHECKPOINT_INTERVAL, steps // OFFLINE_CHECKPOINTS)


def _reinforcement(context: Context, job: Job) -> ReinforcementSpec:
    method = job.method["reinforcement"]
    values = method["hyperparameters"]
    monitor = method.get("monitor_grader")
    return ReinforcementSpec(
        type="reinforcement",
        # The grader process has the real ones; the trainer needs no secret headers.
        grader=masked(method["grader"]),
        monitor_grader=None if monitor is None else masked(monitor),
        dry_run=dry_run_spec(context.settings, job),
        spread_check=(job.plan or {}).get("spread_check", "refuse"),
        warm_start=_warm_start(method.get("warm_start")),
        hyperparameters=Hyperparameters(
            **{name: values[name] for name in Hyperparameters.model_fields}
        ),
        failure_share_limit=context.settings.failure_share_limit,
    )


def _limits(block: dict[str, Any], job: Job) -> LimitsSpec:
    return LimitsSpec(
        max_train_seconds=block.get("max_train_seconds"),
        seconds_before=job.gpu_seconds or 0.0,
        max_tokens=block.get("max_tokens"),
        plateau_window=block["plateau_window"],
        min_entropy=block.get("min_entropy", 0.0),
        max_kl=block.get("max_kl", 0.0),
        max_mismatch=block.get("max_mismatch", 0.2),
    )


def _warm_start(block: dict[str, Any] | None) -> WarmStartSpec | None:
    if block is None:
        return None
    return WarmStartSpec(
        epochs=block["epochs"],
        learning_rate=block["learning_rate"],
        batch_size=block["batch_size"],
        reference_field=block.get("reference_field"),
    )


def _fetch_files(context: Context, job: Job, directory: Path) -> None:
    wanted = {
        "train": ("training_file", job.training_file),
        "validation": ("validation_file", job.validation_file),
        "warm_start": ("warm_start_file", job.warm_start_file),
    }
    for name, (param, file_id) in wanted.items():
        if file_id is not None:
            fetch_file(context, file_id, directory / f"{name}.jsonl", param=param)


def fetch_file(context: Context, file_id: str, path: Path, *, param: str) -> None:
    """Download an uploaded file.

    Args:
        param: what the job calls the file, for the error.

    Raises:
        DataGone: it was deleted, or has expired.
    """
    with context.sessions() as session:
        file = session.get(File, file_id)
    if file is None or not file.live:
        raise _gone(file_id, param)
    try:
        context.store.get_file(file.object_key, path)
    except ObjectMissing as error:
        raise _gone(file_id, param) from error


def _gone(file_id: str, param: str) -> DataGone:
    return DataGone(
        f"The {param.replace('_', ' ')} {file_id} was deleted; upload it again and create a new "
        "job.",
        code=f"deleted_{param}",
        param=param,
    )


def _fetch_init(context: Context, job: Job, directory: Path) -> None:
    with context.sessions() as session:
        start = usable_by(session, job.project_id, job.init_from or "")
    gone = DataGone(
        f"The model {job.init_from} was deleted, or its project no longer lets this one use it;"
        " create a new job from another model.",
        code="model_not_found",
        param="model",
    )
    if start is None:
        raise gone
    try:
        manifest.fetch(context.store, start.object_prefix, directory)
    except (ManifestMissing, ManifestMismatch) as error:
        raise gone from error


def _fetch_last(context: Context, writer: FencedWriter, directory: Path) -> Checkpoint | None:
    while (last := writer.last_checkpoint()) is not None:
        try:
            manifest.fetch(
                context.store, names.state_prefix(last.object_prefix), directory / "state"
            )
            manifest.fetch(context.store, last.object_prefix, directory / "model")
            return last
        except (ManifestMissing, ManifestMismatch) as error:
            shutil.rmtree(directory, ignore_errors=True)
            writer.event(
                f"Cannot go on from the checkpoint of step {last.step}: {error}", level="warn"
            )
            writer.drop_state([last.id])
    return None
