"""What passes between clients and a server becomes a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.interrupts import Interrupted, shielded
from nephoscope.traces.making import MadeTrace, TraceInMaking, TraceKind
from nephoscope.traces.trace import writing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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

    ``listening`` is called with the command of a client that connects to it, once clients can.

    Raises:
        InputError: the URL is none of PostgreSQL, MariaDB or MySQL, the address cannot be listened on, no statement was
            recorded, or the trace cannot be made there.

    """
    with writing(out) as draft:
        recorder = _engine.SqlTraceRecorder(url, listen, mask, database, seconds)
        making = TraceInMaking(draft, recorder)
        try:
            listening(recorder.connect)
            _take_all(making)
        except Interrupted:
            recorder.stop()
            _take_all(making)
        empty = f"no statement was recorded between clients and {recorder.server}"
        return making.finish(TraceKind(*recorder.kind, masked=mask), empty)


def _take_all(making: TraceInMaking) -> None:
    """Write all statements that still come. What has been taken is written before an interruption is raised."""
    more = True
    while more:
        with shielded():
            more = making.take()
