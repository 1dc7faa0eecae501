"""Making requests from a forecast, into memory, beside numpy doing the least of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benches.engine import ROUNDS
from benches.results import Result, at_least, result
from benches.servers import example, timed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RATE, SECONDS, CELLS = 1_000_000, 20, 1000
PAGES = 2048
BURST = 20

PEER = f"""
import numpy as np
random = np.random.default_rng(1)
weights = 1 / np.arange(1, {CELLS} + 1)
for second in range({SECONDS}):
    cells = random.choice({CELLS}, {RATE}, p=weights / weights.sum())
    times = np.sort(random.random({RATE}))
    pages = random.integers(0, {PAGES}, {RATE})
"""
"""numpy: cells, times in order, and pages; no sizes, no streams, no exact strata. One process, one thread."""


def generate(_folder: Path) -> Iterator[Result]:
    """Million requests per processor second, start-up included; with any page alike, by a pattern, and in bursts."""
    program = str(example("nephoscope-storage", "generate"))
    given = [program, str(RATE), str(SECONDS), str(CELLS)]
    plain, patterned, burst, theirs = [], [], [], []
    for _ in range(ROUNDS):
        plain.append(timed(given).cpu)
        patterned.append(timed([*given, str(PAGES)]).cpu)
        burst.append(timed([*given, "0", str(BURST)]).cpu)
        theirs.append(timed([sys.executable, "-c", PEER]).cpu)
    count = RATE * SECONDS / 1e6
    detail = f"{count / min(plain):.0f} M/s a core; numpy {count / min(theirs):.0f} M/s"
    speeds = [count / each / 50 for each in plain]
    yield result("storage generate, requests to memory", "50 M/s a core", speeds, at_least(1), detail)
    faster = [other / each for each, other in zip(plain, theirs, strict=True)]
    yield result("storage generate, speed", "numpy's choice and sort", faster, at_least(1), detail)
    detail = f"{count / min(patterned):.1f} M/s a core"
    slower = [other / each for each, other in zip(patterned, theirs, strict=True)]
    yield result(
        "storage generate by a pattern, speed", "numpy's choice and sort", slower, at_least(0.5), detail
    )
    detail = f"{count / min(burst):.0f} M/s a core"
    slower = [other / each for each, other in zip(burst, theirs, strict=True)]
    yield result("storage generate in bursts, speed", "numpy's choice and sort", slower, at_least(1), detail)
