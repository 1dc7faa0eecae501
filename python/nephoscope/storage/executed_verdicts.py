"""What ``nephoscope storage run`` says of its own figures: requests that failed, with the target's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.report.kit.parts import Verdict
from nephoscope.storage.executed import ALL

if TYPE_CHECKING:
    from nephoscope.storage.executed import Executed, Tail

_SHARE = 0.01
"""Of a source's requests of an operation: where as many failed, a 99th percentile of the others may hide them."""


def verdicts_of(found: Executed) -> list[Verdict]:
    """Judge each operation of each source, the gravest first; where nothing failed there is no verdict."""
    failing = [tail for tail in found.tails if tail.operation != ALL and tail.failed]
    verdicts = [_verdict(found, tail) for tail in failing]
    return sorted(verdicts, key=lambda verdict: verdict.level != "problem")


def _verdict(found: Executed, tail: Tail) -> Verdict:
    ended = tail.done + tail.failed
    share = tail.failed / ended
    refused = [one for one in found.refused if (one.source, one.operation) == (tail.source, tail.operation)]
    words = "; ".join(f"{one.words} ({one.count:,})" for one in refused)
    left = "Latencies are of the others alone." if tail.done else "There is no latency of them."
    return Verdict(
        level="problem" if share >= _SHARE else "warning",
        text=f"{tail.source}: {tail.failed:,} of {ended:,} requests ({tail.operation}) failed.",
        detail=f"{left} The target said: {words}" if words else left,
    )
