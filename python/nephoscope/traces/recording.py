"""What passes between clients and a PostgreSQL server becomes a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.interrupts import Interrupted, shielded
from nephoscope.traces.making import MadeTrace, TraceInMaking, TraceKind
from nephoscope.traces.trace import writing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMES = ("postgresql", "postgres")
_PORT = 5432
_KIND = (_engine.RECORDED_FORMAT, "postgres", 1)
"""Format, dialect, and how fine the times are in microseconds."""


def record_trace(
    url: str,
    out: Path,
    *,
    listening: Callable[[str], None],
    listen: str | None = None,
    mask: bool = False,
    database: str | None = None,
    seconds: float | None = None,
) -> MadeTrace:
    """Write a trace of what clients ask a server through a proxy, until an interruption or for some seconds.

    ``listening`` is called with the address (host:port) once clients can connect to it.

    Raises:
        InputError: the URL is none of a PostgreSQL server, the address cannot be listened on, no statement was
            recorded, or the trace cannot be made there.

    """
    target = parse_target(url)
    with writing(out) as draft:
        recorder = _engine.SqlTraceRecorder(target, listen, mask, database, seconds)
        making = TraceInMaking(draft, recorder)
        try:
            listening(recorder.address)
            _take_all(making)
        except Interrupted:
            recorder.stop()
            _take_all(making)
        return making.finish(
            TraceKind(*_KIND, masked=mask), f"no statement was recorded between clients and {target}"
        )


def _take_all(making: TraceInMaking) -> None:
    """Write all statements that still come. What has been taken is written before an interruption is raised."""
    more = True
    while more:
        with shielded():
            more = making.take()


def parse_target(url: str) -> str:
    """Read the URL of a server that is recorded; gives its host:port.

    Raises:
        InputError: it is something else.

    """
    allowed = "allowed: such as postgresql://10.0.0.5:5432/"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORT
    except ValueError as error:
        raise InputError(f"--from: {error} ({allowed})") from None
    if parts.scheme not in SCHEMES:
        raise InputError(
            f"--from: it is no URL of PostgreSQL ({allowed}); of MariaDB and MySQL, import the general log by "
            "`nephoscope trace import`"
        )
    if not host or "@" in parts.netloc or parts.path.strip("/") or parts.query or parts.fragment:
        raise InputError(
            f"--from: it has more or less than a host and a port ({allowed}); user and password are the clients', "
            "and --database chooses a database"
        )
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
