"""Which anomalies an isolation level forbids, and what a checked history says of a level that was asked for.

Adya, Liskov and O'Neil, "Generalized Isolation Level Definitions" (2000); Cerone and Gotsman (2018) for snapshots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nephoscope.settings.units import describe_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVELS = ("read uncommitted", "read committed", "snapshot isolation", "serializable")
"""Levels as the checker names them, the weakest first."""
PROMISES: Mapping[str, str] = {
    "read uncommitted": "read uncommitted",
    "read committed": "read committed",
    "repeatable read": "snapshot isolation",
    "serializable": "serializable",
}
"""What a level of SQL promises here. Write skew is no contradiction of repeatable read: systems whose repeatable
read is snapshot isolation allow it."""
Order = Literal["none", "session", "real-time"]
ORDERS: Sequence[Order] = ("none", "session", "real-time")

_UNKNOWN_SHARE = 0.01
"""With a larger share of unknown outcomes an anomaly may well have stayed unseen."""
_WITNESSED = 160
"""Characters of a witness in a verdict."""


class Judgement(NamedTuple):
    """What a history says of a level."""

    answer: Literal["contradicted", "not contradicted", "not known"]
    why: str
    anomalies: Sequence[Mapping[str, Any]]
    """Those that contradict it."""


def contradictions(
    history: Mapping[str, Any], isolation: str, order: Order = "real-time"
) -> list[Mapping[str, Any]]:
    """List the anomalies that contradict a level of SQL, in an order no stronger than ``order``."""
    promised = LEVELS.index(PROMISES[isolation])
    return [
        anomaly
        for anomaly in history["anomalies"]
        if LEVELS.index(anomaly["forbidden_from"]) <= promised
        and ORDERS.index(anomaly["order"]) <= ORDERS.index(order)
        # What was written may be in the part that is not there.
        and not (history.get("broken") and anomaly["anomaly"] == "unwritten value")
    ]


def judge(history: Mapping[str, Any], isolation: str, order: Order = "real-time") -> Judgement:
    """Say whether a checked history contradicts a level of SQL."""
    found = contradictions(history, isolation, order)
    if found:
        names = {(anomaly["anomaly"], anomaly["order"]) for anomaly in found}
        told = next(
            (one["told"] for one in history["witnesses"] if (one["anomaly"], one["order"]) in names), ""
        )
        witness = f": {told[:_WITNESSED]}{'…' if len(told) > _WITNESSED else ''}" if told else ""
        return Judgement("contradicted", f"{counted(found)}{witness}", found)
    if why := _unknown(history):
        return Judgement("not known", why, ())
    return Judgement(
        "not contradicted", f"in {describe_count(history['committed'], 'committed transaction')}", ()
    )


def _unknown(history: Mapping[str, Any]) -> str:
    """Say why it is not known whether a history has an anomaly that was not found; empty if it is known."""
    if history.get("broken"):
        return str(history["broken"])
    if not history["committed"]:
        return "no transaction committed that told what it saw"
    if history["unknown"] > _UNKNOWN_SHARE * history["committed"]:
        return f"the outcome of {describe_count(history['unknown'], 'transaction')} is not known"
    late, missed = history["late"] + history["forced"], history["unordered"]
    if late:
        return f"{describe_count(late, 'operation')} came later than the checker could wait for"
    if missed:
        return f"{missed:,} dependencies could not be followed"
    return ""


def counted(anomalies: Sequence[Mapping[str, Any]]) -> str:
    """Count anomalies in words."""
    return ", ".join(
        anomaly["anomaly"]
        + ("" if anomaly["order"] == "none" else f" in {anomaly['order']} order")
        + f" ({anomaly['times']:,})"
        for anomaly in anomalies
    )
