"""The two users, and the proof that an attack works without the sandbox and not inside."""

import os
from collections.abc import Callable, Iterator

import pytest

from tests.graders.attacks.arena import Arena, Attack
from tests.graders.attacks.users import NOBODY, TOKEN, Bare, Sandboxed, code, python_for

Strike = Callable[[Attack], None]


@pytest.fixture(scope="session", params=["root", "user"])
def uid(request: pytest.FixtureRequest) -> int:
    """Root, and an ordinary user."""
    if request.param == "root":
        if os.getuid() != 0:
            pytest.skip("only root can try what root can do")
        return 0
    found = NOBODY if os.getuid() == 0 else os.getuid()
    if python_for(found) is None:
        pytest.skip("there is no Python that an ordinary user can run")
    return found


@pytest.fixture(scope="session")
def open_secret(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A descriptor of a file with the token, which every process inherits that is not careful."""
    path = tmp_path_factory.mktemp("open") / "secret"
    path.write_text(TOKEN)
    fd = os.open(path, os.O_RDONLY)
    os.set_inheritable(fd, True)
    yield fd
    os.close(fd)


@pytest.fixture(scope="session")
def sandboxed(uid: int, open_secret: int) -> Iterator[Sandboxed]:
    """A service of the user's with a sandbox."""
    service = Sandboxed(uid, [open_secret])
    yield service
    service.close()


@pytest.fixture(scope="session")
def bare(uid: int, open_secret: int) -> Bare:
    """A runner of the user's without one."""
    return Bare(uid, [open_secret])


@pytest.fixture
def strike(uid: int, sandboxed: Sandboxed, bare: Bare) -> Strike:
    """Show that an attack works without the sandbox and has no effect inside."""

    def show(attack: Attack) -> None:
        if attack.root_only and uid != 0:
            pytest.skip("not within the rights of an ordinary user")
        source = code(attack.body)
        arena = Arena(uid)
        try:
            value = bare.run([source], attack.item(arena))
            works = value == 1 or attack.harm(arena)
        finally:
            arena.close()
        if attack.optional and not works and "Error: [Errno" in str(value):
            pytest.skip(f"not on this kernel: {value}")
        assert works, f"{attack.name} does not work without the sandbox either: {value}"
        arena = Arena(uid)
        try:
            found = sandboxed.run(source, attack.item(arena))
            assert not attack.harm(arena), found
        finally:
            arena.close()
        assert found["value"] != 1, found
        assert found["others_unharmed"], found

    return show
