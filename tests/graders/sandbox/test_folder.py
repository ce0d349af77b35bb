"""The private folder: emptied whatever lies in it, measured whatever is tried."""

import os
from pathlib import Path

from graders.sandbox.jail.tmpdir import MAX_DEPTH, MAX_ENTRIES, TOO_MUCH, measure, wipe

#: A process that there cannot be: numbers end below it.
NOBODY = 2**22 + 5


def test_everything_is_wiped_and_no_link_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    (outside / "kept").write_text("x")
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("x")
    (folder / "a" / "link").symlink_to(outside)
    (folder / ".1").write_text("a name that wiping might use itself")
    (folder / "a" / ".2").mkdir()
    (folder / "closed").mkdir(mode=0)
    wipe(str(folder))
    assert list(folder.iterdir()) == []
    assert (outside / "kept").read_text() == "x"


def test_depth_and_number_do_not_matter(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(1_200):
        os.mkdir("d" * 100, dir_fd=fd)
        inner = os.open("d" * 100, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    for n in range(300):
        (folder / str(n)).mkdir()
    wipe(str(folder))
    assert list(folder.iterdir()) == []


def test_what_lies_there_is_measured(tmp_path: Path) -> None:
    assert measure(str(tmp_path), NOBODY) == 0
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(os.urandom(300_000))
    (tmp_path / "link").symlink_to("/")
    assert 300_000 <= measure(str(tmp_path), NOBODY) < 400_000


def test_a_deleted_file_counts_while_it_is_open(tmp_path: Path) -> None:
    # Whoever runs the tests may hold deleted files open too.
    before = measure(str(tmp_path), os.getpid())
    with (tmp_path / "gone").open("wb") as file:
        file.write(os.urandom(300_000))
        file.flush()
        (tmp_path / "gone").unlink()
        assert measure(str(tmp_path), os.getpid()) >= before + 300_000
    assert measure(str(tmp_path), os.getpid()) == before
    assert measure(str(tmp_path), NOBODY) == 0


def test_too_deep_and_too_many(tmp_path: Path) -> None:
    deep = tmp_path.joinpath("deep", *["d"] * MAX_DEPTH)
    deep.mkdir(parents=True)
    assert measure(str(tmp_path / "deep"), os.getpid()) == TOO_MUCH
    many = tmp_path / "many"
    many.mkdir()
    for n in range(MAX_ENTRIES + 1):
        os.close(os.open(many / str(n), os.O_CREAT))
    assert measure(str(many), os.getpid()) == TOO_MUCH
