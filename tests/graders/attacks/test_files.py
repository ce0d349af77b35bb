"""Reading, changing and making files that are not the call's own."""

import pytest

from tests.graders.attacks.arena import Arena, Attack
from tests.graders.attacks.conftest import Strike
from tests.graders.attacks.users import TOKEN


def secret(arena: Arena) -> dict[str, str]:
    return {"path": arena.secret, "token": TOKEN}


def target(arena: Arena) -> dict[str, str]:
    return {"path": arena.target}


def outbox(arena: Arena) -> dict[str, str]:
    return {"path": arena.outbox}


def target_harmed(arena: Arena) -> bool:
    return arena.target_is_harmed


def outbox_harmed(arena: Arena) -> bool:
    return arena.outbox_is_harmed


READING = [
    Attack("open", "return open(item['path']).read() == item['token']", secret),
    Attack(
        "openat with a relative path",
        """
        folder = os.open('/', os.O_PATH)
        fd = os.open('.' + item['path'], os.O_RDONLY, dir_fd=folder)
        return os.read(fd, 100).decode() == item['token']
        """,
        secret,
    ),
    Attack(
        "reopening what was opened as a path",
        """
        fd = os.open(item['path'], os.O_PATH)
        return open(f'/proc/self/fd/{fd}').read() == item['token']
        """,
        secret,
    ),
    Attack(
        "openat2",
        """
        how = ctypes.create_string_buffer(24)
        fd = call(437, -100, item['path'].encode(), how, 24)
        return os.read(fd, 100).decode() == item['token']
        """,
        secret,
    ),
    Attack(
        "through the root of its own process",
        "return open('/proc/self/root' + item['path']).read() == item['token']",
        secret,
    ),
    Attack(
        "a symbolic link in its own folder",
        """
        import tempfile
        link = os.path.join(tempfile.mkdtemp(), 'link')
        os.symlink(item['path'], link)
        return open(link).read() == item['token']
        """,
        secret,
    ),
    Attack(
        "a hard link in its own folder",
        """
        import tempfile
        link = os.path.join(tempfile.mkdtemp(dir='/tmp' if os.getcwd() == '/' else None), 'link')
        os.link(item['path'], link)
        return open(link).read() == item['token']
        """,
        secret,
    ),
    Attack(
        "a file handle",
        """
        handle = ctypes.create_string_buffer((128).to_bytes(4, 'little') + bytes(132))
        mount = ctypes.create_string_buffer(4)
        call('name_to_handle_at', -100, item['path'].encode(), handle, mount, 0)
        folder = os.open('/', os.O_RDONLY)
        fd = call('open_by_handle_at', folder, handle, 0)
        return os.read(fd, 100).decode() == item['token']
        """,
        secret,
        root_only=True,
        optional=True,
    ),
    Attack(
        "listing a folder",
        "return 'secret.txt' in os.listdir(os.path.dirname(item['path']))",
        secret,
    ),
    Attack("the users of the machine", "return 'root' in open('/etc/passwd').read()"),
    Attack(
        "watching a folder with inotify",
        "return call('inotify_add_watch', call('inotify_init1', 0), b'/tmp', 0x100) >= 1",
    ),
    Attack(
        "watching everything with fanotify",
        "return call('fanotify_init', 0, 0) >= 0",
        root_only=True,
        optional=True,
    ),
    Attack(
        "a folder changed by chroot",
        "os.chroot(os.path.dirname(item['path']))\n"
        "return open('/secret.txt').read() == item['token']",
        secret,
        root_only=True,
    ),
]

CHANGING = [
    Attack("append", "open(item['path'], 'a').write('!'); return 1", target, target_harmed),
    Attack("truncate", "os.truncate(item['path'], 0); return 1", target, target_harmed),
    Attack(
        "truncate while opened for reading",
        "os.open(item['path'], os.O_RDONLY | os.O_TRUNC); return 1",
        target,
        target_harmed,
    ),
    Attack("creat", "call('creat', item['path'].encode(), 0o600); return 1", target, target_harmed),
    Attack("unlink", "os.unlink(item['path']); return 1", target, target_harmed),
    Attack(
        "rename", "os.rename(item['path'], item['path'] + '2'); return 1", target, target_harmed
    ),
    Attack(
        "rename into its own folder",
        "import shutil, tempfile; shutil.move(item['path'], tempfile.mkdtemp()); return 1",
        target,
        target_harmed,
    ),
    Attack("chmod", "os.chmod(item['path'], 0o666); return 1", target, target_harmed),
    Attack(
        "fchmodat2",
        "call(452, -100, item['path'].encode(), 0o666, 0); return 1",
        target,
        target_harmed,
        optional=True,
    ),
    Attack("chown", "os.chown(item['path'], 1, 1); return 1", target, root_only=True),
    Attack("utime", "os.utime(item['path'], (5, 5)); return 1", target, target_harmed),
    Attack(
        "setxattr", "os.setxattr(item['path'], 'user.x', b'1'); return 1", target, optional=True
    ),
    Attack(
        "a hard link elsewhere",
        "os.link(item['path'], item['path'] + '2'); return 1",
        target,
        target_harmed,
    ),
    Attack("a new file", "open(item['path'] + '/x', 'w'); return 1", outbox, outbox_harmed),
    Attack("a new folder", "os.mkdir(item['path'] + '/x'); return 1", outbox, outbox_harmed),
    Attack(
        "a new symlink", "os.symlink('/', item['path'] + '/x'); return 1", outbox, outbox_harmed
    ),
    Attack("a new fifo", "os.mkfifo(item['path'] + '/x'); return 1", outbox, outbox_harmed),
    Attack(
        "a device node",
        "os.mknod(item['path'] + '/x', 0o20666, os.makedev(1, 3)); return 1",
        outbox,
        outbox_harmed,
        root_only=True,
        optional=True,
    ),
    Attack(
        "a nameless file",
        "os.write(os.open(item['path'], os.O_TMPFILE | os.O_WRONLY), b'x'); return 1",
        outbox,
        optional=True,
    ),
    Attack(
        "shared memory by name",
        """
        path = f'/dev/shm/rft-{os.urandom(8).hex()}'
        open(path, 'w').write('x')
        os.unlink(path)
        return 1
        """,
    ),
    Attack(
        "the runtime's own files",
        "os.close(os.open(os.__file__, os.O_RDWR)); return 1",
        root_only=True,
    ),
    Attack(
        "the mode of a runtime file",
        "fd = os.open(os.__file__, 0); os.fchmod(fd, os.fstat(fd).st_mode & 0o7777); return 1",
        root_only=True,
    ),
    Attack(
        "a lock on a runtime file",
        "import fcntl; fcntl.flock(os.open(os.__file__, 0), fcntl.LOCK_EX); return 1",
    ),
    Attack(
        "a lease on a runtime file",
        "import fcntl; fcntl.fcntl(os.open(os.__file__, 0), fcntl.F_SETLEASE, 0); return 1",
        root_only=True,
    ),
    Attack(
        "a file system mounted",
        "libc.mount(b'none', item['path'].encode(), b'tmpfs', 0, b'') and os.abort()\n"
        "libc.umount2(item['path'].encode(), 2); return 1",
        outbox,
        root_only=True,
        optional=True,
    ),
]


@pytest.mark.parametrize("attack", READING, ids=str)
def test_reading(strike: Strike, attack: Attack) -> None:
    strike(attack)


@pytest.mark.parametrize("attack", CHANGING, ids=str)
def test_changing(strike: Strike, attack: Attack) -> None:
    strike(attack)
