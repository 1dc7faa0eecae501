"""What a statement does to the transaction around it, as far as its words tell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nephoscope.foreign.scanning import Sql

_BORDER = re.compile(
    r"(?P<begin>BEGIN|START\s+TRANSACTION)(?:\s+(?:WORK|TRANSACTION))?(?P<modes>\s+.+)?"
    r"|(?P<commit>COMMIT|END)(?:\s+(?:WORK|TRANSACTION))?(?:\s+AND\s+NO\s+CHAIN)?"
    r"|(?P<rollback>ROLLBACK|ABORT)(?:\s+(?:WORK|TRANSACTION))?(?:\s+AND\s+NO\s+CHAIN)?",
    re.IGNORECASE | re.DOTALL,
)
_READING = {"SELECT", "VALUES", "TABLE", "SHOW", "WITH"}
_WRITING = {"INSERT", "UPDATE", "DELETE", "MERGE", "INTO", "SHARE", "NEXTVAL", "SETVAL"}


@dataclass(frozen=True)
class Border:
    """A statement that begins or ends a transaction."""

    word: str
    """``begin``, ``commit`` or ``rollback``."""
    modes: str = ""
    """What else BEGIN says, such as an isolation level."""


def border_of(sql: str) -> Border | None:
    """Tell whether a statement begins or ends a transaction."""
    found = _BORDER.fullmatch(sql.strip())
    if found is None:
        return None
    word = next(word for word in ("begin", "commit", "rollback") if found[word])
    return Border(word, (found["modes"] or "").strip())


def reads_only(statements: Iterable[Sql]) -> bool:
    """Tell whether no statement is known to write or to lock."""
    plain = [sql.words for sql in statements if border_of(sql.text) is None]
    return all(words and words[0] in _READING and not _WRITING & set(words) for words in plain)
