"""Files by name: reading those that anybody may have made, and writing so that nobody can lead us astray.

What is read is a regular file of a limited size, and opening it never waits. What is written gets a name that nobody
can know beforehand, and its own name when it is whole. Files of ours can be changed by their owner only, whatever the
umask.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from nephoscope.errors import InputError, MeasurementError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

USER_FILE_BYTES = 16 * 2**20
"""The largest study, file of figures or price book."""
OTHERS_MAY_NOT_WRITE = 0o022
"""What the umask of this process has at least."""

_PACKAGE = Path(__file__).parent
_FILE_MODE = 0o644
FOLDER_MODE = 0o755
"""Of folders that are made for what may be shown to others."""

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}
_MOST_DEPTH = 64
_INTEGERS = range(-(2**63), 2**63)


# --- reading ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_regular(path: Path, most: int, *, links: bool = True) -> Iterator[BinaryIO]:
    """Open a regular file of at most so many bytes for reading, without waiting for anything.

    Without ``links`` the file itself may be no symbolic link. Raises ``OSError`` whose ``strerror`` says what is wrong.
    """
    _check_regular(_stat(path, links=links))
    # It may have become something else by now: so nothing waits, and what was opened is looked at again.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    with os.fdopen(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        _check_regular(found)
        if found.st_size > most:
            raise _too_large(most)
        yield file


def read_regular(path: Path, most: int, *, links: bool = True) -> bytes:
    """Read a whole file as `open_regular` opens it."""
    with open_regular(path, most, links=links) as file:
        content = file.read(most + 1)
    # Some files of the system have no size.
    if len(content) > most:
        raise _too_large(most)
    return content


def is_file(path: Path) -> bool:
    """Tell whether there is a file; what is no path at all, or too long for one, is none."""
    return os.path.isfile(path)  # noqa: PTH113 - pathlib's raises for some of these


def is_there(path: Path) -> bool:
    """Tell whether there is something that is no folder: reading it says whether it is a file."""
    return os.path.exists(path) and not os.path.isdir(path)  # noqa: PTH110, PTH112 - as above


def check_regular(path: Path) -> None:
    """Raise ``OSError`` where there is something that is no regular file, a link included."""
    with contextlib.suppress(FileNotFoundError):
        _check_regular(_stat(path, links=False))


def _stat(path: Path, *, links: bool) -> os.stat_result:
    try:
        return path.stat(follow_symlinks=links)
    except ValueError:  # a NUL byte, or half of a surrogate pair
        raise OSError(errno.EINVAL, "this is no path of a file") from None


def _check_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no file")
        raise OSError(errno.EINVAL, f"it is {kind}; allowed: a regular file")


def _too_large(most: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {most // 2**20:,} MiB")


@cache
def packaged(folder: str) -> Mapping[str, Path]:
    """List the TOML files of a folder that comes with nephoscope, by their names without the suffix."""
    found = {file.stem: file for file in (_PACKAGE / folder).glob("*.toml")}
    return dict(sorted(found.items()))


def packaged_folders(folder: str, mark: str) -> list[str]:
    """List what comes with nephoscope as a folder each: those of a folder that have a file of this name."""
    return sorted(file.parent.name for file in (_PACKAGE / folder).glob(f"*/{mark}"))


def packaged_folder(folder: str, name: str, mark: str) -> Path | None:
    """Find one of those by its name; None where there is none."""
    found = _PACKAGE / folder / name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else None
    return found.resolve() if found is not None and is_file(found / mark) else None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a user's TOML file. Raises ``InputError`` that names the file and says what is wrong."""
    try:
        content = read_regular(path, USER_FILE_BYTES)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    try:
        return parse_toml(content)
    except ValueError as error:
        raise InputError(f"{path}: this is not TOML: {error}") from None


def parse_toml(content: bytes | str) -> dict[str, Any]:
    """Parse TOML. Raises ``ValueError`` for whatever is wrong with it, nested too deep and too large included."""
    text = content.decode() if isinstance(content, bytes) else content
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python's limit on the digits of a number
        raise ValueError(_TOO_MANY_DIGITS) from None
    check_toml(tables)
    return tables


def check_toml(tables: object) -> None:
    """Raise ``ValueError`` for tables that are nested too deep, or hold an integer that 64 bits do not."""
    level = [tables]
    for _ in range(_MOST_DEPTH):
        if any(type(value) is int and value not in _INTEGERS for value in level):
            raise ValueError(_TOO_MANY_DIGITS)
        level = [
            inner
            for value in level
            for inner in (
                value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            )
        ]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


_TOO_DEEP = f"it is nested too deep; allowed are {_MOST_DEPTH} levels"
_TOO_MANY_DIGITS = "an integer is larger than 64 bits hold"


# --- writing ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file in one step: a reader finds the old content or the new one, and a link is replaced, not followed.

    Raises ``OSError``; then the old content stays.
    """
    _check_replaceable(path)
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, _FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _check_replaceable(path: Path) -> None:
    """Refuse to put a file in the place of a device or a pipe: renamed over, it would be gone."""
    with contextlib.suppress(FileNotFoundError):
        found = _stat(path, links=False)
        if not stat.S_ISLNK(found.st_mode):
            _check_regular(found)


def write_named(path: Path, text: str) -> None:
    """Write a file that the user names; of a link it is what the link points to. Raises ``MeasurementError``."""
    try:
        with replacing(_target_of(path)) as file:
            file.write(text.encode(errors="replace"))
    except OSError as error:
        raise MeasurementError(f"{path} cannot be written: {error.strerror or error}") from None


def check_named(path: Path) -> None:
    """Check that a file that the user names can be written. Raises ``InputError``."""
    try:
        target = _target_of(path)
        _check_replaceable(target)
        check_writable(target.parent)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None


def _target_of(path: Path) -> Path:
    return path.resolve() if path.is_symlink() else path


def append_to(path: Path) -> TextIO:
    """Open a file to add text to its end, made where it is missing; a link is not followed. Raises ``OSError``."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, _FILE_MODE), "a", encoding="utf-8", errors="replace")


def make_folders(folder: Path) -> None:
    """Make a folder and those above it, where they are missing. Raises ``OSError``."""
    if folder.is_dir():
        return
    make_folders(folder.parent)
    try:
        folder.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None


def check_writable(folder: Path) -> None:
    """Write a file into a folder and take it away again, as far as the disk has room. Raises ``OSError``."""
    probe = folder / f".{secrets.token_hex(8)}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(probe, flags, 0o600)
    try:
        # A disk that is full has room for names.
        os.write(descriptor, b"\0" * 4096)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            probe.unlink()


def keep_others_from_writing() -> None:
    """Let nothing that this process and its children make be writable for others, whatever the umask was."""
    os.umask(os.umask(OTHERS_MAY_NOT_WRITE) | OTHERS_MAY_NOT_WRITE)
