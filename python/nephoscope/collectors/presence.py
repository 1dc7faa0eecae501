"""Who else is at work on a server: sessions of nephoscope carry a label that others can see.

A label ends with its session, so a killed run leaves none.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from nephoscope import _engine
    from nephoscope.dialects import Dialect

_PREFIX = "nephoscope "
_MOST = 63
"""The bytes of a label: PostgreSQL keeps so many of an application's name."""
_LINGER_S = 0.5
"""How long a session may still be seen after its client has ended, in s."""


@dataclass(frozen=True)
class Presence:
    """A run, or a load of data, as others see it."""

    label: str
    """``nephoscope 5f3a0c run 20261122T204801Z-mine``: the digits tell apart runs of one name."""

    @classmethod
    def of(cls, what: str) -> Presence:
        """Make a label for a run or a load that begins now: ``run …``, ``load of …``."""
        return cls(f"{_PREFIX}{secrets.token_hex(3)} {what}"[:_MOST])

    def announce(self, dialect: Dialect) -> str:
        """Return the SQL that gives a session this label."""
        return dialect.label.format(label=dialect.literal(self.label))


def name_of(label: str) -> str:
    """Return what a label stands for: ``run 20261122T204801Z-mine``."""
    return label.split(" ", 2)[2]


def labels(admin: _engine.Admin, dialect: Dialect, known: Collection[str] = ()) -> set[str]:
    """Give the labels of all that goes on on a server, or of the ``known`` where it shows no others.

    Raises ``MeasurementError``.
    """
    asked = " UNION ALL ".join(f"SELECT {dialect.literal(label)} AS label" for label in sorted(known))
    words = {"prefix": dialect.literal(_PREFIX), "known": asked or "SELECT NULL AS label"}
    _, rows = admin.query(dialect.labels.format(**words))
    found = {row[0] or "" for row in rows}
    # A label has three words; other sessions may have a name that begins alike.
    return {label for label in found if label.count(" ") >= 2}  # noqa: PLR2004


def lasting_labels(admin: _engine.Admin, dialect: Dialect, known: Collection[str], own: str = "") -> set[str]:
    """Give the labels (see ``labels``) of what goes on besides one's own, and not of what has ended just now.

    Call it outside a transaction, in which a server may repeat its first answer. Raises ``MeasurementError``.
    """
    found = labels(admin, dialect, known) - {own}
    if found:
        time.sleep(_LINGER_S)
        found &= labels(admin, dialect, known)
    return found


def company(others: Collection[str]) -> str:
    """Write the warning for a run on whose server others work, by their labels."""
    return (
        f"at work on the same server at the same time: {', '.join(sorted(map(name_of, others)))}; "
        "throughput and latency are those of a shared server"
    )
