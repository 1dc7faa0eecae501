"""Logs of PostgreSQL that are written by hand."""

from __future__ import annotations

LINE = (
    '2026-02-01 00:00:{second:06.3f} UTC,"u","shop",7,"h:1",6a.{session},1,"SELECT",2026-02-01 00:00:00 UTC,1/1,0,'
    'LOG,00000,"duration: {ms} ms  statement: {sql}",,,,,,,,,"a","client backend",,0\n'
)


def log_of(*statements: tuple[float, str, float, str]) -> str:
    """Write a csvlog of second, session, milliseconds and SQL."""
    return "".join(
        LINE.format(second=second, session=session, ms=f"{ms:.3f}", sql=sql.replace('"', '""'))
        for second, session, ms, sql in statements
    )
