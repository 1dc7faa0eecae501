"""The folders that this tool makes for itself: where they are, whose they are, and who is using one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.errors import InputError, MeasurementError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT_CACHE = Path("/var/cache")
LOCK_FILE = "nephoscope.lock"
"""The file that makes a folder ours, whoever is using it at the moment."""

_LOOK_AGAIN_S = 0.05
_ENOUGH_BYTES = 2**31


def cache_folder() -> Path:
    """Say where this tool keeps what it can make again; the folder need not exist yet.

    ``NEPHOSCOPE_CACHE`` where it is set, else ``$XDG_CACHE_HOME/nephoscope`` or ``~/.cache/nephoscope``. As
    root ``/var/cache/nephoscope``: a server's user, who is not root, cannot reach anything below root's home.
    """
    if chosen := os.environ.get("NEPHOSCOPE_CACHE"):
        return Path(chosen).expanduser().absolute()
    if os.geteuid() == 0:
        return _ROOT_CACHE / "nephoscope"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification of XDG_CACHE_HOME has relative paths ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "nephoscope"


def make_folder(folder: Path, setting: str) -> None:
    """Make ``folder`` and its missing ancestors, and see that it is ours alone to write to.

    What is made here is open to other users as root, whose servers run as one of them, and closed otherwise;
    what exists keeps its mode. ``setting`` tells the user in an error what decides the place.

    Raises:
        InputError: it cannot be made, is no folder, or somebody else can change what is in it.

    """
    mode = 0o755 if os.geteuid() == 0 else 0o700
    try:
        for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
            with contextlib.suppress(FileExistsError):  # another process was faster
                missing.mkdir()
                missing.chmod(mode)  # a umask may have taken more away than our servers can bear
        status = folder.stat()
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder; {setting} says where it should be")
    except OSError as error:
        raise InputError(
            f"cannot use folder {folder}: {error.strerror}; {setting} can name another one"
        ) from error
    if status.st_uid != os.geteuid():
        raise InputError(
            f"folder {folder} belongs to user {status.st_uid}, and nephoscope runs as user {os.geteuid()}: "
            f"{setting} can name another one"
        )
    if status.st_mode & 0o002:  # root must not follow links that somebody else put there
        raise InputError(f"every user may write to folder {folder}: {setting} can name another one")


def write_file(
    path: Path, content: str | bytes, *, private: bool, owner: tuple[int, int] | None = None
) -> None:
    """Write a file anew, for its owner alone if ``private``, else for all to read; ``owner``: uid and gid."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if owner is not None:
            os.fchown(descriptor, *owner)
        if not private:
            os.fchmod(descriptor, 0o644)
        file.write(content if isinstance(content, bytes) else content.encode())


class FolderLock:
    """The right to use a folder, for one process at a time: an exclusive lock on a file in it.

    The system gives it back when every process that holds the descriptor has ended: who is killed leaves no
    stale lock.
    """

    def __init__(self, folder: Path) -> None:
        """Take the folder; it need not exist yet."""
        self.folder = folder
        self._file = folder / LOCK_FILE
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        """The open lock file: a child that inherits it holds the lock on after our death."""
        if self._descriptor is None:
            raise MeasurementError(f"folder {self.folder} is not locked")
        return self._descriptor

    def acquire(self, limit_s: float, *, wait_for_living: bool, hint: str) -> None:
        """Take the lock.

        A holder that is alive is waited for only if ``wait_for_living``. One that is dead has left something
        that still shuts down, which is waited for up to ``limit_s`` seconds. ``hint`` ends the message.

        Raises:
            MeasurementError: somebody else has it; the message names the folder and the process.

        """
        if self._descriptor is not None:
            return
        deadline = time.monotonic() + limit_s
        while not self._try():
            holder = self._holder()
            living = holder is not None and is_alive(holder)
            if time.monotonic() >= deadline or (living and not wait_for_living):
                who = (
                    f"process {holder}{_name_of(holder)}"
                    if living
                    else "a server that is still shutting down"
                )
                raise MeasurementError(f"folder {self.folder} is in use by {who}; {hint}")
            time.sleep(_LOOK_AGAIN_S)

    def release(self) -> None:
        """Give the lock back; harmless without it."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            try:
                os.ftruncate(descriptor, 0)
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # forked children share the lock, and would hold it on
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def held(self, limit_s: float, hint: str) -> Iterator[None]:
        """Hold the lock inside a ``with``, waiting for others up to ``limit_s`` seconds."""
        self.acquire(limit_s, wait_for_living=True, hint=hint)
        try:
            yield
        finally:
            self.release()

    def _try(self) -> bool:
        try:
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InputError(
                f"cannot use folder {self.folder}: {error.strerror} on opening {self._file}"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                return False
            raise InputError(f"folder {self.folder} cannot be locked: {error.strerror}") from error
        self._descriptor = descriptor
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return True

    def _holder(self) -> int | None:
        """Read who has it; nobody in the instant between its lock and its writing."""
        try:
            return int(self._file.read_text())
        except (OSError, ValueError):
            return None


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    # The name stands in brackets and may hold anything; the state follows it.
    return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}


def _name_of(pid: int | None) -> str:
    """Name a process in brackets: its name alone, for arguments may hold secrets."""
    try:
        return f" ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    except OSError:
        return ""


def fast_folder() -> str:
    """Name a folder for what is thrown away soon: in memory if it will do, else the usual one."""
    memory = "/dev/shm"  # noqa: S108 - whoever makes a folder there makes one of its own
    with contextlib.suppress(OSError):
        status = os.statvfs(memory)
        if not status.f_flag & os.ST_NOEXEC and status.f_bavail * status.f_frsize > _ENOUGH_BYTES:
            return memory
    return tempfile.gettempdir()
