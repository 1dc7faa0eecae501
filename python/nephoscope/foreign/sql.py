"""SQL alone: a file whose statements say by comments what they are called and which values are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from nephoscope.errors import InputError
from nephoscope.foreign.base import Asked, Part, Tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Sql(Tool):
    """A file of SQL."""

    name: ClassVar[str] = "sql"
    ending: ClassVar[str] = ".sql"

    def asked(self, files: Sequence[str], words: Sequence[str]) -> Asked:
        """Take no words."""
        if words:
            raise InputError(f"{words[0]}: not known here")
        return Asked(parts=[Part(file) for file in files])

    def made(self, parts: Sequence[Part]) -> Mapping[str, str]:
        """Make a workload of its transactions."""
        raise InputError(f"{parts[0].name}: no")
