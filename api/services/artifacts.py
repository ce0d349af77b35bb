"""What a checkpoint offers for download: the files that its manifests name."""

from urllib.parse import quote

from api.schemas.artifacts import ArtifactObject, Form, MergedState
from api.tenancy import Tenant
from core import manifest
from core.artifacts import merged_prefix, request_merge
from core.clock import now
from core.errors import InvalidRequest, NotFound
from core.models import Checkpoint, File, Job
from core.store import ObjectStore


def get_checkpoint(tenant: Tenant, job: Job, checkpoint_id: str) -> Checkpoint:
    """Return a stored checkpoint of the job; raises `NotFound`."""
    query = tenant.select(Checkpoint).where(
        Checkpoint.job_id == job.id,
        Checkpoint.id == checkpoint_id,
        Checkpoint.deleted_at.is_(None),
    )
    checkpoint = tenant.session.scalar(query)
    if checkpoint is None:
        raise NotFound(
            f"No such checkpoint: {checkpoint_id}. GET /v1/fine_tuning/jobs/{job.id}/checkpoints"
            " lists those that are stored.",
            code="checkpoint_not_found",
            param="checkpoint_id",
        )
    return checkpoint


def merged_state(checkpoint: Checkpoint) -> MergedState:
    """Say how far the merged weights are."""
    if checkpoint.kind != "adapter":
        return MergedState(status="not_applicable", since=None, error=None)
    return MergedState.model_validate(
        {
            "status": checkpoint.merged_status or "not_requested",
            "since": checkpoint.merged_at,
            "error": checkpoint.merged_error,
        }
    )


def ask_for_merged(tenant: Tenant, checkpoint: Checkpoint) -> None:
    """Have a worker fold the adapter into its base model, unless that was done.

    Raises `InvalidRequest` for a checkpoint that has whole weights.
    """
    if checkpoint.kind != "adapter":
        raise InvalidRequest(
            f"{checkpoint.id} has whole weights already, as the job trained without an adapter;"
            " download its 'full' files.",
            code="not_an_adapter",
        )
    request_merge(tenant.session, checkpoint)


def list_artifacts(
    store: ObjectStore, checkpoint: Checkpoint, *, expires_s: int | None
) -> list[ArtifactObject]:
    """Return the files of every form that is there, with presigned addresses where asked for."""
    found: list[ArtifactObject] = []
    for form in _forms(checkpoint):
        for entry in manifest.read(store, _prefix(checkpoint, form)).files:
            found.append(_shown(store, checkpoint, form, entry, expires_s))
    return found


def find_artifact(store: ObjectStore, checkpoint: Checkpoint, form: str, path: str) -> File:
    """Return what an answer needs of one file that a manifest names; raises `NotFound`.

    It is no row of the database.
    """
    if form in _forms(checkpoint):
        prefix = _prefix(checkpoint, form)
        for entry in manifest.read(store, prefix).files:
            if entry.path == path:
                return File(
                    filename=path.rpartition("/")[2],
                    bytes=entry.bytes,
                    sha256=entry.sha256,
                    object_key=f"{prefix}/{path}",
                )
    place = f"/v1/fine_tuning/jobs/{checkpoint.job_id}/checkpoints/{checkpoint.id}/artifacts"
    hint = f"POST {place}/merged has it made." if form == "merged" else f"GET {place} lists all."
    raise NotFound(f"No such artifact: {form}/{path}. {hint}", code="artifact_not_found")


def _forms(checkpoint: Checkpoint) -> list[Form]:
    own: Form = "adapter" if checkpoint.kind == "adapter" else "full"
    return [own, "merged"] if checkpoint.merged_status == "ready" else [own]


def _prefix(checkpoint: Checkpoint, form: str) -> str:
    prefix = checkpoint.object_prefix
    return merged_prefix(prefix) if form == "merged" else prefix


def _shown(
    store: ObjectStore,
    checkpoint: Checkpoint,
    form: Form,
    entry: manifest.Entry,
    expires_s: int | None,
) -> ArtifactObject:
    place = f"/v1/fine_tuning/jobs/{checkpoint.job_id}/checkpoints/{checkpoint.id}/artifacts"
    key, signed = f"{_prefix(checkpoint, form)}/{entry.path}", None
    if expires_s is not None:
        filename = entry.path.rpartition("/")[2]
        signed = store.presigned(key, expires_s=expires_s, filename=filename)
    return ArtifactObject(
        id=f"{checkpoint.id}/{form}/{entry.path}",
        form=form,
        path=entry.path,
        bytes=entry.bytes,
        sha256=entry.sha256,
        url=f"{place}/{form}/{quote(entry.path)}",
        presigned_url=signed,
        presigned_expires_at=None if expires_s is None else now() + expires_s,
    )
