"""The versions that a bisection goes through, in their order: commits of a git repository, or lines of a file."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from nephoscope.errors import InputError
from nephoscope.files import USER_FILE_BYTES, read_regular
from nephoscope.settings.variables import redacted_url

if TYPE_CHECKING:
    from pathlib import Path

MOST = 10_000
"""The most versions."""
_LIMIT_S = 60.0


class BisectVersion(BaseModel):
    """A version."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=4096)]
    """The hash of a commit, the name of an image, a URL: what the command is given."""
    about: str = ""
    """A commit's subject."""

    @property
    def shown(self) -> str:
        """The version as messages name it, without passwords."""
        name = redacted_url(self.name) if "://" in self.name else self.name
        return f"{name[:12]} {self.about}" if self.about else name


def of_git(good: str, bad: str, repository: Path) -> list[BisectVersion]:
    """List the commits from a good one to a bad one, along first parents. Raises ``InputError``."""
    first, last = (_commit(name, repository, option) for name, option in ((good, "--good"), (bad, "--bad")))
    if first == last or _git(["merge-base", "--is-ancestor", first, last], repository).returncode:
        raise InputError(f"--good {good} is no ancestor of --bad {bad}")
    found = _git(["log", "--first-parent", "--reverse", "--format=%H%x00%s", f"{first}..{last}"], repository)
    head = _git(["log", "-1", "--format=%H%x00%s", first], repository)
    lines = [*head.stdout.splitlines(), *found.stdout.splitlines()]
    return _checked(
        [BisectVersion(name=line.partition("\0")[0], about=line.partition("\0")[2][:200]) for line in lines]
    )


def of_file(path: Path) -> list[BisectVersion]:
    """Read versions from a file, one a line, the good one first and the bad one last. Raises ``InputError``."""
    try:
        lines = read_regular(path, USER_FILE_BYTES).decode(errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    names = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
        raise InputError(
            f"{path}: {BisectVersion(name=twice).shown} stands there twice; allowed: each version once"
        )
    return _checked([BisectVersion(name=name) for name in names])


def _checked(versions: list[BisectVersion]) -> list[BisectVersion]:
    if not 2 <= len(versions) <= MOST:  # noqa: PLR2004
        raise InputError(
            f"{len(versions)} versions to bisect; allowed: 2 to {MOST:,}, the good and the bad one included"
        )
    return versions


def _commit(name: str, repository: Path, option: str) -> str:
    found = _git(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"], repository)
    if found.returncode:
        said = found.stderr.strip().splitlines()
        raise InputError(
            f"{option} {name}: {said[-1] if said else f'there is no such commit in {repository}'}"
        )
    return found.stdout.strip()


def _git(words: list[str], repository: Path) -> subprocess.CompletedProcess[str]:
    if shutil.which("git") is None:
        raise InputError("git is not on the path: --versions FILE names versions without it")
    try:
        return subprocess.run(
            ["git", "-c", "log.showSignature=false", "-C", str(repository), *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"git {words[0]} did not end within {_LIMIT_S:g} s") from None
