"""Results: what a benchmark has found, and how it is kept."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.statistics import half_width, mean_ci

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FILE = Path(__file__).parent / "results.json"


@dataclass(frozen=True)
class Result:
    """A figure against its bar."""

    figure: str
    peer: str
    """What it is compared with: another program, or the truth."""
    ratio: float
    """Ours over the peer's: the median over the turns."""
    spread: tuple[float, float]
    """The smallest and the largest of the turns."""
    bar: str
    holds: bool
    detail: str = ""


Bar = tuple[str, "Callable[[float], bool]"]
"""A bar in words, and whether a ratio holds it."""


def result(figure: str, peer: str, ratios: Sequence[float], bar: Bar, detail: str = "") -> Result:
    """Sum up the turns of a comparison."""
    median = statistics.median(ratios)
    text, holds = bar
    return Result(figure, peer, median, (min(ratios), max(ratios)), text, holds(median), detail)


def at_most(bar: float) -> Bar:
    """Make a bar that a ratio should not exceed."""
    return f"≤ {bar:g}", lambda ratio: ratio <= bar


def at_least(bar: float) -> Bar:
    """Make a bar that a ratio should reach."""
    return f"≥ {bar:g}", lambda ratio: ratio >= bar


def mean(ratios: Sequence[float]) -> str:
    """Tell the mean of the turns with its 95 % interval."""
    found = mean_ci(ratios)
    return f"mean {found.mean:.3f} ± {half_width(found.ci95) or 0.0:.3f}"


def keep(results: Sequence[Result]) -> None:
    """Write the results; those of benchmarks that were not run stay as they are."""
    old = json.loads(FILE.read_text()) if FILE.exists() else []
    new = [asdict(entry) for entry in results]
    names = {entry["figure"] for entry in new}
    kept = [entry for entry in old if entry["figure"] not in names]
    FILE.write_text(json.dumps(kept + new, indent=1, ensure_ascii=False) + "\n")
