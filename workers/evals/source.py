"""The items of a run, one at a time: those of its body, or the lines of a stored file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from rft.dataset import iter_rows
from rft.dataset.rows import DatasetError

from core.errors import ObjectMissing
from core.eval_items import BadEntry, Entry, ItemSchema, Needed, read_entry
from core.models import EvalRun, File
from workers.context import Context
from workers.evals.ending import RunFailed


class Items:
    """The items of a run; reading them all a second time gives the same.

    Use as a context: once it is left, a thread that still reads them comes to an end.
    """

    def __init__(self, content: list[Any] | Path, schema: ItemSchema) -> None:
        self._content, self._schema = content, schema
        self._left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._left = True

    def check(self, needed: Needed) -> int:
        """Read and check every item, and return how many there are.

        Raises `RunFailed` with the place of the first that is none, when there is none at all, or
        when none has a field that is needed.
        """
        count = 0
        for count, entry in enumerate(self.entries(), start=1):
            try:
                self._schema.check(entry.item)
            except BadEntry as error:
                raise _bad(count, error) from error
            needed.see(entry.item)
        if count == 0:
            raise RunFailed("invalid_data_source", "The data source has no items.")
        try:
            needed.check()
        except BadEntry as error:
            raise RunFailed("invalid_data_source", str(error)) from error
        return count

    def entries(self) -> Iterator[Entry]:
        """Yield the items in their order; raises `RunFailed` at one that cannot be read."""
        rows = self._content if isinstance(self._content, list) else iter_rows(self._content)
        number = 0
        try:
            for raw in rows:
                if self._left:
                    return
                number += 1
                yield read_entry(raw)
        except BadEntry as error:
            raise _bad(number, error) from error
        except DatasetError as error:
            raise RunFailed("invalid_data_source", f"The file cannot be read: {error}") from error


def _bad(number: int, error: BadEntry) -> RunFailed:
    return RunFailed("invalid_data_source", f"Item {number} cannot be used: {error}")


def open_items(context: Context, run: EvalRun, config: dict[str, Any], folder: Path) -> Items:
    """Return a run's items; a file is brought to `folder`.

    Raises `RunFailed` when the file is gone, and `StorageError` when the store does not answer.
    """
    custom = config["type"] == "custom"
    schema = ItemSchema(config["schema"]["properties"]["item"] if custom else None)
    source = run.data_source["source"]
    if source["type"] == "file_content":
        return Items(source["content"], schema)
    path = folder / "items.jsonl"
    _fetch(context, run, source["id"], path)
    return Items(path, schema)


def _fetch(context: Context, run: EvalRun, file_id: str, path: Path) -> None:
    with context.sessions() as session:
        file = session.get(File, file_id)
    gone = f"The file {file_id} was deleted or has expired; upload it again and start a new run."
    if file is None or file.project_id != run.project_id or not file.live:
        raise RunFailed("file_not_found", gone)
    try:
        context.store.get_file(file.object_key, path)
    except ObjectMissing as error:
        raise RunFailed("file_not_found", gone) from error
