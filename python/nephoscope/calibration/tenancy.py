"""The evaluator ``tenancy``: two tenants, one of which is held back while the other runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.calibration.base import Case, Reading
from nephoscope.statistics import jain_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.calibration.base import Bench

_WARMUP_S = 0.5
_SERVICE_MS, _PLACES, _SESSIONS = 10.0, 6, 12
_SHARES = (1.0, 1 / 3)
_TOLERANCE = 0.03


def _throttled(bench: Bench) -> Iterator[Reading]:
    """Expect that a tenant whose places are cut to a third beside the other keeps a third, and the other everything."""
    slot_s = bench.seconds(5, 2)
    together_s = _WARMUP_S + slot_s
    sim = f"sim://?latency=constant({_SERVICE_MS:g}ms)&capacity="
    resources = {"vcores": 1, "memory_gb": 4, "storage_gb": 10}
    held = f"{sim}{round(_PLACES * _SHARES[1])},{together_s:g}s:{_PLACES}"
    measured = bench.measure(
        {"provider": "url", "rw": f"{sim}{_PLACES}", "resources": resources},
        {
            "evaluator": "tenancy",
            "mix": "SELECT",
            "patterns": [],
            "custom": {"both": [[_SESSIONS], [_SESSIONS]]},
            "slot": slot_s,
            "warmup": _WARMUP_S,
        },
        tenants={"number": 2, "share": "server", "servers": [{"rw": held, "resources": resources}]},
    )
    found = measured.scores["details"]["tenancy"]["patterns"]["both"]
    for tenant, share in zip(("tenant1", "tenant2"), _SHARES, strict=True):
        read = found["tenants"][tenant]["interference"]
        # Of one that loses nothing there is no share to err by.
        relative, absolute = (_TOLERANCE, 0.0) if share < 1 else (0.0, _TOLERANCE)
        yield Reading(
            figure=f"interference of {tenant}",
            planted=1 - share,
            read=read,
            relative=relative,
            absolute=absolute,
        )
    yield Reading(figure="Jain's index", planted=jain_index(_SHARES), read=found["jain"], relative=_TOLERANCE)


CASES = (Case("tenancy", "one tenant of two at a third", _throttled),)
