"""The cases: interleavings of two or three transactions, and what shows that an anomaly has occurred.

They test what Hermitage tests (M. Kleppmann, github.com/ept/hermitage); the anomalies are those of Adya (1999), and of
Bailis et al., "Highly Available Transactions" (VLDB 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nephoscope.engine.interleaving import Interleaved, InterleavedStatement

if TYPE_CHECKING:
    from collections.abc import Callable

_ALL = "SELECT id, value FROM {t} ORDER BY id"


def _row(number: int) -> str:
    return f"SELECT value FROM {{t}} WHERE id = {number}"


def _set(number: int, value: int) -> str:
    return f"UPDATE {{t}} SET value = {value} WHERE id = {number}"


@dataclass(frozen=True)
class HermitageCase:
    """An interleaving that shows one anomaly where a level allows it."""

    anomaly: str
    about: str
    steps: tuple[InterleavedStatement, ...]
    occurs: Callable[[Interleaved], bool]
    writes: bool = False
    """Whether it needs a transaction that reads and writes, where others of the anomaly only read."""


def _committed(course: Interleaved, *who: int) -> bool:
    return course.committed >= set(who)


def _skewed(course: Interleaved) -> bool:
    return (
        _committed(course, 1)
        and course.rows.get("first") == ((10,),)
        and course.rows.get("second") == ((18,),)
    )


_G0 = HermitageCase(
    "G0",
    "two transactions write both rows, and each row is of another",
    (
        InterleavedStatement(1, _set(1, 11)),
        InterleavedStatement(2, _set(1, 12)),
        InterleavedStatement(1, _set(2, 21)),
        InterleavedStatement(1, "COMMIT"),
        InterleavedStatement(2, _set(2, 22)),
        InterleavedStatement(2, "COMMIT"),
    ),
    lambda course: tuple(value for _, value in course.final) in {(11, 22), (12, 21)},
)
_G1A = HermitageCase(
    "G1a",
    "a transaction reads what another writes that rolls back",
    (
        InterleavedStatement(1, _set(1, 101)),
        InterleavedStatement(2, _ALL, "first"),
        InterleavedStatement(1, "ROLLBACK"),
        InterleavedStatement(2, _ALL, "second"),
        InterleavedStatement(2, "COMMIT"),
    ),
    lambda course: (1, 101) in (*course.rows.get("first", ()), *course.rows.get("second", ())),
)
_G1B = HermitageCase(
    "G1b",
    "a transaction reads what its writer goes on to overwrite",
    (
        InterleavedStatement(1, _set(1, 101)),
        InterleavedStatement(2, _ALL, "first"),
        InterleavedStatement(1, _set(1, 11)),
        InterleavedStatement(1, "COMMIT"),
        InterleavedStatement(2, _ALL, "second"),
        InterleavedStatement(2, "COMMIT"),
    ),
    lambda course: (1, 101) in course.rows.get("first", ()),
)
_G1C = HermitageCase(
    "G1c",
    "each of two transactions reads what the other has written",
    (
        InterleavedStatement(1, _set(1, 11)),
        InterleavedStatement(2, _set(2, 22)),
        InterleavedStatement(1, _row(2), "first"),
        InterleavedStatement(2, _row(1), "second"),
        InterleavedStatement(1, "COMMIT"),
        InterleavedStatement(2, "COMMIT"),
    ),
    lambda course: course.rows.get("first") == ((22,),) and course.rows.get("second") == ((11,),),
)
_OTV = HermitageCase(
    "OTV",
    "a transaction that was seen vanishes: one of its two writes is there, the other replaced",
    (
        InterleavedStatement(1, _set(1, 11)),
        InterleavedStatement(1, _set(2, 19)),
        InterleavedStatement(2, _set(1, 12)),
        InterleavedStatement(1, "COMMIT"),
        InterleavedStatement(3, _ALL, "first"),
        InterleavedStatement(2, _set(2, 18)),
        InterleavedStatement(3, _ALL, "second"),
        InterleavedStatement(2, "COMMIT"),
        InterleavedStatement(3, "COMMIT"),
    ),
    lambda course: bool(
        {((1, 12), (2, 19)), ((1, 11), (2, 18))} & {course.rows.get("first"), course.rows.get("second")}
    ),
)
_PMP = HermitageCase(
    "PMP",
    "a transaction that has found no row for a predicate finds one that was inserted since",
    (
        InterleavedStatement(1, "SELECT id FROM {t} WHERE value = 30", "first"),
        InterleavedStatement(2, "INSERT INTO {t} (id, value) VALUES (3, 30)"),
        InterleavedStatement(2, "COMMIT"),
        InterleavedStatement(1, "SELECT id FROM {t} WHERE value % 3 = 0", "second"),
        InterleavedStatement(1, "COMMIT"),
    ),
    lambda course: (
        _committed(course, 1) and course.rows.get("first") == () and (3,) in course.rows.get("second", ())
    ),
)
_PMP_WRITES = HermitageCase(
    "PMP",
    "a transaction still finds rows that it has just deleted by the same predicate",
    (
        InterleavedStatement(1, "UPDATE {t} SET value = value + 10"),
        InterleavedStatement(2, "SELECT id FROM {t} WHERE value = 20"),
        InterleavedStatement(2, "DELETE FROM {t} WHERE value = 20"),
        InterleavedStatement(1, "COMMIT"),
        InterleavedStatement(2, "SELECT id FROM {t} WHERE value = 20", "left"),
        InterleavedStatement(2, "COMMIT"),
    ),
    lambda course: _committed(course, 2) and bool(course.rows.get("left")),
    writes=True,
)
_P4 = HermitageCase(
    "P4",
    "two transactions read a row, write it, and both commit",
    (
        InterleavedStatement(1, _row(1)),
        InterleavedStatement(2, _row(1)),
        InterleavedStatement(1, _set(1, 11)),
        InterleavedStatement(2, _set(1, 12)),
        InterleavedStatement(1, "COMMIT"),
        InterleavedStatement(2, "COMMIT"),
    ),
    lambda course: _committed(course, 1, 2),
)
_G_SINGLE = HermitageCase(
    "G-single",
    "a transaction reads one row before another writes both, and the other row after",
    (
        InterleavedStatement(1, _row(1), "first"),
        InterleavedStatement(2, _ALL),
        InterleavedStatement(2, _set(1, 12)),
        InterleavedStatement(2, _set(2, 18)),
        InterleavedStatement(2, "COMMIT"),
        InterleavedStatement(1, _row(2), "second"),
        InterleavedStatement(1, "COMMIT"),
    ),
    _skewed,
)
_G_SINGLE_PREDICATE = HermitageCase(
    "G-single",
    "a transaction reads by a predicate before another writes, and by another predicate after",
    (
        InterleavedStatement(1, "SELECT id FROM {t} WHERE value % 5 = 0 ORDER BY id", "first"),
        InterleavedStatement(2, "UPDATE {t} SET value = 12 WHERE value = 10"),
        InterleavedStatement(2, "COMMIT"),
        InterleavedStatement(1, "SELECT id FROM {t} WHERE value % 3 = 0", "second"),
        InterleavedStatement(1, "COMMIT"),
    ),
    lambda course: (
        _committed(course, 1) and course.rows.get("first") == ((1,), (2,)) and bool(course.rows.get("second"))
    ),
)
_G_SINGLE_WRITES = HermitageCase(
    "G-single",
    "a transaction reads one row before another writes both, and deletes by what the other row was",
    (
        InterleavedStatement(1, _row(1), "first"),
        InterleavedStatement(2, _ALL),
        InterleavedStatement(2, _set(1, 12)),
        InterleavedStatement(2, _set(2, 18)),
        InterleavedStatement(2, "COMMIT"),
        InterleavedStatement(1, "DELETE FROM {t} WHERE value = 20"),
        InterleavedStatement(1, "COMMIT"),
    ),
    lambda course: (
        _committed(course, 1, 2) and course.rows.get("first") == ((10,),) and (2, 18) in course.final
    ),
    writes=True,
)
_G2_ITEM = HermitageCase(
    "G2-item",
    "two transactions read both rows, and each writes another",
    (
        InterleavedStatement(1, _ALL),
        InterleavedStatement(2, _ALL),
        InterleavedStatement(1, _set(1, 11)),
        InterleavedStatement(2, _set(2, 21)),
        InterleavedStatement(1, "COMMIT"),
        InterleavedStatement(2, "COMMIT"),
    ),
    lambda course: _committed(course, 1, 2),
)
_G2 = HermitageCase(
    "G2",
    "two transactions find no row for a predicate, and each inserts one",
    (
        InterleavedStatement(1, "SELECT id FROM {t} WHERE value % 3 = 0"),
        InterleavedStatement(2, "SELECT id FROM {t} WHERE value % 3 = 0"),
        InterleavedStatement(1, "INSERT INTO {t} (id, value) VALUES (3, 30)"),
        InterleavedStatement(2, "INSERT INTO {t} (id, value) VALUES (4, 42)"),
        InterleavedStatement(1, "COMMIT"),
        InterleavedStatement(2, "COMMIT"),
    ),
    lambda course: _committed(course, 1, 2),
)
_G2_TWO_EDGES = HermitageCase(
    "G2",
    "a reader sees the second of two transactions without the first, which has read before the second wrote",
    (
        InterleavedStatement(1, _ALL, "first"),
        InterleavedStatement(2, "UPDATE {t} SET value = value + 5 WHERE id = 2"),
        InterleavedStatement(2, "COMMIT"),
        InterleavedStatement(3, _ALL, "second"),
        InterleavedStatement(3, "COMMIT"),
        InterleavedStatement(1, _set(1, 0)),
        InterleavedStatement(1, "COMMIT"),
    ),
    lambda course: (
        _committed(course, 1, 2, 3)
        and course.rows.get("first") == ((1, 10), (2, 20))
        and course.rows.get("second") == ((1, 10), (2, 25))
    ),
)
CASES = (
    _G0, _G1A, _G1B, _G1C, _OTV, _PMP, _PMP_WRITES, _P4, _G_SINGLE, _G_SINGLE_PREDICATE, _G_SINGLE_WRITES, _G2_ITEM,
    _G2, _G2_TWO_EDGES,
)  # fmt: skip
