"""How a study names files of other tools: ``pgbench:reads.sql@9,writes.sql``, or ``shop.sql`` by its ending."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.errors import InputError
from nephoscope.foreign.base import NamedFile
from nephoscope.foreign.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.foreign.base import Meant, Tool

_WEIGHT = re.compile(r"(?P<name>.+)@(?P<weight>\d{1,9})")


@dataclass(frozen=True)
class Named:
    """A tool and the files of a workload."""

    tool: Tool
    parts: Sequence[NamedFile]

    def __str__(self) -> str:
        """Write them as a study names them."""
        return f"{self.tool.name}:{','.join(map(str, self.parts))}"

    def below(self, folder: Path) -> Named:
        """Make the paths absolute; they are relative to a folder."""
        return replace(
            self,
            parts=tuple(
                part
                if part.name in self.tool.built_in
                else replace(part, name=str((folder / Path(part.name).expanduser()).resolve()))
                for part in self.parts
            ),
        )

    def meant(self) -> Meant:
        """Say what they mean for a study. Raises ``InputError``."""
        return self.tool.meant(self.parts)


def part_of(text: str) -> NamedFile:
    """Read ``FILE`` or ``FILE@WEIGHT``."""
    found = _WEIGHT.fullmatch(text)
    return NamedFile(found["name"], int(found["weight"])) if found else NamedFile(text)


def named(name: str) -> Named | None:
    """Read the name of a workload; None where it names no tool's files.

    Raises ``InputError``.
    """
    first, colon, files = name.partition(":")
    tool = TOOLS.get(first) if colon else None
    if tool is None:
        files = name
        tool = next((tool for tool in TOOLS.values() if tool.ending and name.endswith(tool.ending)), None)
        if tool is None or "://" in name:
            return None
    parts = tuple(part_of(file.strip()) for file in files.split(","))
    if not all(part.name for part in parts):
        raise InputError(f"workload.name: {name!r} names no file; expected {tool.name}:FILE")
    return Named(tool, parts)


def folder_of(found: Named) -> Path:
    """Make the folder of a workload; it lasts as long as this process. Raises ``InputError``."""
    return _written(found.tool.made(found.parts))


def _written(files: Mapping[str, str]) -> Path:
    """Write files to a folder that is named after them."""
    digest = sha256()
    for name, text in sorted(files.items()):
        digest.update(f"{name}\0{len(text)}\0{text}".encode())
    folder = _home() / digest.hexdigest()[:16]
    if not folder.exists():
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    return folder


@cache
def _home() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="nephoscope-workloads-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder.resolve()
