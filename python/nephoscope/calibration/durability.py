"""The evaluator ``failover``: acknowledged commits that a promoted replica has never had are lost, each of them."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.calibration.base import PRODUCTS, Case, Reading
from nephoscope.calibration.failover import failure
from nephoscope.calibration.planted import Planted
from nephoscope.errors import MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.settings.base import ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nephoscope.calibration.base import Bench
    from nephoscope.systems.base import Done
    from nephoscope.systems.cluster.embedded import EmbeddedCluster

_LOST = 37
_PATIENCE_S = 15.0

_TABLE = "CREATE TABLE calibration_gate AS SELECT {port} AS port, 0 AS passes"
_GATES: Mapping[str, Sequence[str]] = {
    "postgres": (
        "DROP TABLE IF EXISTS calibration_gate",
        _TABLE.format(port="current_setting('port')"),
        (
            "CREATE OR REPLACE FUNCTION calibration_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " UPDATE calibration_gate SET passes = passes - 1"
            " WHERE passes > 0 OR port <> current_setting('port');"
            " IF NOT FOUND THEN RAISE 'the gate of calibration is shut'; END IF; RETURN NEW; END $$"
        ),
        (
            "CREATE TRIGGER calibration_gate BEFORE INSERT ON nephoscope_probe_write"
            " FOR EACH ROW EXECUTE FUNCTION calibration_gate()"
        ),
    ),
    "mariadb": (
        "DROP TABLE IF EXISTS calibration_gate",
        _TABLE.format(port="@@port"),
        (
            "CREATE TRIGGER calibration_gate BEFORE INSERT ON nephoscope_probe_write FOR EACH ROW BEGIN"
            " UPDATE calibration_gate SET passes = passes - 1 WHERE passes > 0 OR port <> @@port;"
            " IF row_count() = 0 THEN"
            " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the gate of calibration is shut'; END IF; END"
        ),
    ),
}
"""A gate before the writes of probes, shut: each write takes one pass, and none is written without. Who passes holds
the row until he has committed, so that passes are counted exactly. On another server than the one it was made on, which
is the replica when it has been promoted, it is open."""
_WRITTEN = "SELECT count(*) FROM nephoscope_probe_write"


class _Crash:
    """Crashes a primary after so many commits that its replica has not received, and promotes that one."""

    def __init__(self, gate: Sequence[str], lost: int) -> None:
        self._gate = gate
        self._lost = lost
        self.missed = 0
        """How many commits the old primary had more than the replica, as both said."""

    def kill(self, inner: EmbeddedCluster) -> Done:
        """Shut the gate, let the replica have everything and stop it, let so many through, and kill the primary."""
        (replica,) = (node for node, role in inner.nodes().items() if role == "ro")
        rw, ro = (_engine.Admin(inner.endpoints(role)[0], answer_timeout_s=_PATIENCE_S) for role in ROLES)
        try:
            for statement in self._gate:
                rw.query(statement)
            before = _number(rw, _WRITTEN)
            _wait_for(lambda: _number(ro, _WRITTEN) == before, "the replica to have what was written")
            inner.act(Action.STOP, node=replica)
            rw.query(f"UPDATE calibration_gate SET passes = {self._lost}")
            _wait_for(lambda: _number(rw, "SELECT passes FROM calibration_gate") == 0, "the last write")
            self.missed = _number(rw, _WRITTEN) - before
        finally:
            rw.close()
            ro.close()
        return inner.act(Action.KILL)

    def promote(self, inner: EmbeddedCluster) -> Done:
        """Start the replica, and make it the one that takes writes."""
        began = _engine.monotonic_ns()
        (replica,) = (node for node, role in inner.nodes().items() if role == "ro")
        inner.act(Action.START, node=replica)
        return replace(inner.act(Action.PROMOTE), began_ns=began)


def _number(admin: _engine.Admin, sql: str) -> int:
    return int(admin.query(sql)[1][0][0] or 0)


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > limit:
            raise MeasurementError(f"waited {_PATIENCE_S:g} s for {what}")
        time.sleep(0.02)


def _lost(bench: Bench, product: str) -> Iterator[Reading]:
    """Expect exactly as many acknowledged commits lost as the replica that was promoted has not received."""
    crash = _Crash(_GATES[product], _LOST)
    measured = bench.measure(
        bench.embedded(product, replicas=1),
        failure(bench, fault="crash", lasts_s=8.0),
        provider=lambda inner: Planted(inner, {Action.KILL: crash.kill, Action.PROMOTE: crash.promote}),
    )
    (found,) = (event for event in measured.run.events if event["event"] == "durability")
    # The truth is what both servers have said; that it is what was meant is looked at as well.
    yield Reading(figure="commits that the replica lacks", planted=_LOST, read=crash.missed)
    yield Reading(figure="acknowledged commits lost", planted=crash.missed, read=found["lost"])


CASES = tuple(
    Case(
        "failover",
        f"a promoted replica of {name} that lacks 37 commits",
        partial(_lost, product=product),
        240.0,
    )
    for product, name in PRODUCTS.items()
)
