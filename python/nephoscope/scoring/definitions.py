"""The scores of PERFECT and their union O: name, words, unit, direction and order of each, here and nowhere else.

A new score is an entry of ``DEFINITIONS`` and its formula: tables, files and pages follow the entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a score that have a table of their own."""

    key: str
    """The key of the parts in the score's ``detail``."""
    by: str
    """The noun for the parts, in the table's title."""
    paper: int
    """The number of this table in CloudyBench."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The meaning of a score, for reports and comparisons."""

    name: str
    about: str
    """A few words that follow the name on the page."""
    meaning: str
    """The same in one phrase, for tables."""
    equation: int
    """Its number in CloudyBench, section II-G."""
    unit: str
    higher_is_better: bool
    source: str
    """The table or figure of CloudyBench that has such scores."""
    in_o: bool = True
    """Whether O combines it. One that is better when lower is a time, in s, and O divides by it."""
    by_prices: bool = False
    """Whether it has a starred form, by the prices that are really paid."""
    by_ends: bool = False
    """Whether its interval is written by both ends everywhere: half a width would suggest times below 0."""
    is_signed: bool = False
    """Whether it can be below 0."""
    digits: str = ".4g"
    """How its value is written in CloudyBench's tables."""
    table_unit: Literal["", "s", "ms"] = ""
    """Its unit in CloudyBench's tables, where the heading has one."""
    parts: Parts | None = None

    @property
    def better(self) -> Literal["higher", "lower"]:
        """Its direction, in a word."""
        return "higher" if self.higher_is_better else "lower"


DEFINITIONS: Mapping[str, Definition] = MappingProxyType(
    {
        "P": Definition(
            "Productivity", "throughput per cost", "productivity: throughput per cost",
            1, "TPS per $/min", higher_is_better=True, source="Table V", by_prices=True, digits=",.0f",
            parts=Parts("mixes", "mix", 5),
        ),
        "E1": Definition(
            "Elasticity", "throughput per cost while the load varies", "elasticity of scaling up and down",
            2, "TPS per $", higher_is_better=True, source="Figure 6", by_prices=True, digits=",.0f",
        ),
        "R": Definition(
            "Recovery", "from the service's return to full throughput", "recovery: service back to TPS back",
            4, "s", higher_is_better=False, source="Table VIII", by_ends=True, table_unit="s",
        ),
        "F": Definition(
            "Fail-over", "from the fault to the service's return", "fail-over: fault to service back",
            3, "s", higher_is_better=False, source="Table VIII", by_ends=True, table_unit="s",
        ),
        "E2": Definition(
            "Scale-out", "gain per added read-only node", "elasticity of scaling out",
            5, "delta TPS per node", higher_is_better=True, source="Table IX", is_signed=True,
        ),
        "C": Definition(
            "Consistency", "replication lag", "consistency: replication lag",
            6, "s", higher_is_better=False, source="section III-F", table_unit="ms",
        ),
        "T": Definition(
            "Tenancy", "throughput per cost over all tenants", "tenancy: tenants' throughput per cost",
            7, "TPS per $/min", higher_is_better=True, source="Table VII", by_prices=True, digits=",.0f",
            parts=Parts("patterns", "pattern of tenancy", 7),
        ),
        "O": Definition(
            "Overall", "all of the above, on a logarithmic scale", "overall",
            8, "log10", higher_is_better=True, source="Table IX", in_o=False, by_prices=True, digits=".2f",
        ),
    }
)  # fmt: skip
"""Every score, in the order of PERFECT and then O."""

SCORES = tuple(DEFINITIONS)
"""The scores that O combines, and O."""

PERFECT = tuple(name for name, about in DEFINITIONS.items() if about.in_o)
"""The scores that O combines, in the order of the name."""

STARRED = tuple(name for name, about in DEFINITIONS.items() if about.by_prices)
"""The scores that actual prices change."""

TIMES = tuple(name for name in PERFECT if not DEFINITIONS[name].higher_is_better)
"""The scores that O divides by."""

FACTORS = tuple(name for name in PERFECT if name not in TIMES)
"""The scores that O multiplies."""

BY_ENDS = tuple(name for name, about in DEFINITIONS.items() if about.by_ends)


def listed(names: Sequence[str]) -> str:
    """Write names as a sentence has them: ``R, F and C``."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


if TYPE_CHECKING:
    ScoreName = str
    PerfectName = str
else:
    # A study's file is checked against the names that there are.
    ScoreName = Literal[SCORES]
    PerfectName = Literal[PERFECT]
