"""What a transaction costs the client, beside what it costs a peer: both take turns on one server."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benches.client import measure
from benches.servers import example, timed
from nephoscope import _engine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benches.servers import Usage

ROUNDS = 5
SECONDS = 4.0
"""How long a turn is."""


def ways() -> list[str]:
    """List the ways of waiting for sockets that this kernel allows."""
    return ["epoll", "uring"] if _engine.choose_io("auto")[0] == "uring" else ["epoll"]


def cost(used: Usage, count: int) -> dict[str, float]:
    """Give a peer's processor time per transaction, in µs, and its transactions per second of a turn."""
    return {"cpu_us": used.cpu * 1e6 / count, "user_us": used.user * 1e6 / count, "tps": count / SECONDS}


def by_turns(
    spec: Mapping[str, Any],
    sessions: int,
    peer: Callable[[int], dict[str, float]],
    waiting: Sequence[str] | None = None,
) -> tuple[list[dict[str, float]], dict[str, list[dict[str, Any]]]]:
    """Measure a closed load and its peer in turns; give the peer's costs, and ours by the way of waiting.

    ``waiting`` are the ways; all that there are if left out.
    """
    theirs: list[dict[str, float]] = []
    ours: dict[str, list[dict[str, Any]]] = {io: [] for io in waiting or ways()}
    for _ in range(ROUNDS):
        theirs.append(peer(sessions))
        for io, found in ours.items():
            load = {**spec, "io": io, "level": {"concurrency": sessions}, "seconds": SECONDS}
            found.append(measure(load))
    return theirs, ours


def median(found: Sequence[dict[str, Any]], key: str) -> float:
    """Give the median of a figure over the turns."""
    return float(statistics.median(entry[key] for entry in found))


def told(ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]]) -> str:
    """Say in words what both cost."""
    return (
        f"{median(ours, 'cpu_us'):.2f} µs against {median(theirs, 'cpu_us'):.2f} µs a transaction "
        f"(user {median(ours, 'user_us'):.2f} against {median(theirs, 'user_us'):.2f}); "
        f"TPS {median(ours, 'tps'):,.0f} against {median(theirs, 'tps'):,.0f}"
    )


def ratios(ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]]) -> list[float]:
    """Give our cost over the peer's, turn by turn."""
    return [a["cpu_us"] / b["cpu_us"] for a, b in zip(ours, theirs, strict=True)]


@dataclass(frozen=True)
class Question:
    """The bytes of a point select, as the bare exchange sends them."""

    sent: bytes
    end: bytes
    """The last bytes of each answer."""
    offset: int
    """The place of the key in ``sent``: a number of four bytes."""
    order: str
    """Of these bytes: ``big`` or ``little``."""
    keys: int
    """The largest key."""


def exchange(sockets: Sequence[int], question: Question) -> dict[str, float]:
    """Have the minimal client exchange point selects over connected sockets for a turn; give its costs.

    ``each`` is the mean number of answers of a wait.
    """
    program = example("nephoscope-runtime", "exchange")
    what = [question.sent.hex(), question.end.hex(), str(question.offset), question.order, str(question.keys)]
    used = timed([str(program), f"{SECONDS:g}", *what, *map(str, sockets)], inherited=sockets)
    answers, waits = map(int, used.output.split())
    return {**cost(used, answers), "each": answers / waits}
