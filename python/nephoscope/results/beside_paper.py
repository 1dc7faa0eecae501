"""Which figures of a study may be set beside CloudyBench's tables, and why others may not.

A figure may where the study's settings are the paper's procedure (sections II and III); what the paper leaves open is
no reason against it, and is told. The machines, the vendors and the paper's own client are never the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.evaluators.elasticity.patterns import PATTERNS, resolve
from nephoscope.scoring.definitions import PERFECT
from nephoscope.scoring.prices import DEFAULT_PRICE_BOOK

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from nephoscope.scoring.definitions import PerfectName
    from nephoscope.settings.resources import Resources
    from nephoscope.study.reading import Study

WORKLOAD = "sales"
SCALES = (1, 10, 100)
CONCURRENCY = (50, 200)
MIXES = {"RO", "RW", "WO"}
TAU = 110
FAILING_SESSIONS = 150
TENANTS = 3
SLOT_S = 60
WINDOW_S = 600

_TABLES: Mapping[PerfectName, str] = {
    "P": "Table V",
    "E1": "Figure 6",
    "R": "Table VIII",
    "F": "Table VIII",
    "E2": "Table IX",
    "C": "section III-F",
    "T": "Table VII",
}
_EVALUATORS: Mapping[PerfectName, str] = {
    "P": "throughput", "E1": "elasticity", "R": "failover", "F": "failover", "E2": "scaleout", "C": "lag",
    "T": "tenancy",
}  # fmt: skip


def verdicts(study: Study, resources: Resources | None, measured: Collection[str]) -> list[dict[str, str]]:
    """Say it of the measured scores, as verdicts; only where the study asks for it (``score.beside_paper``)."""
    if not study.score.beside_paper:
        return []
    found = {
        name: against
        for name in PERFECT
        if name in measured and (against := reasons(name, study, resources)) is not None
    }
    fitting = [f"{name} ({_TABLES[name]})" for name, against in found.items() if not against]
    others = [f"{name} ({_TABLES[name]}): {', '.join(against)}" for name, against in found.items() if against]
    made = []
    if fitting:
        made.append(("measured as the paper measures, and may be set beside its tables", ", ".join(fitting)))
    if others:
        made.append(
            ("not measured as the paper measures: not to be set beside its tables", "; ".join(others))
        )
    return [{"level": "note", "verdict": verdict, "detail": detail} for verdict, detail in made]


def reasons(name: PerfectName, study: Study, resources: Resources | None) -> list[str] | None:
    """List what sets a score's procedure apart from the paper's; None where the study does not measure it."""
    entry = next((one for one in study.measure if one.evaluator == _EVALUATORS[name]), None)
    if entry is None:
        return None
    return [*_of_all(name, study), *_OF[name](entry, study, resources)]


def _of_all(name: PerfectName, study: Study) -> Iterator[str]:
    if study.workload.name != WORKLOAD:
        yield f"the workload is {study.workload.name}, and the paper's {WORKLOAD}"
    # The paper names the scale factor of its elasticity only; other scores may have any of the three.
    allowed = (1,) if name == "E1" else SCALES
    if study.workload.scale not in allowed:
        yield f"the scale factor is {study.workload.scale:g}, and the paper's {', '.join(map(str, allowed))}"
    if name in ("P", "E1", "T") and study.cost.price_book != DEFAULT_PRICE_BOOK:
        yield f"the price book is not {DEFAULT_PRICE_BOOK}"


def _p(entry: Any, study: Study, resources: Resources | None) -> Iterator[str]:  # noqa: ANN401 - an evaluator's settings
    del study
    if entry.score != "mean":
        yield "it is the TPS of the best concurrency, and the paper's the mean over all"
    levels = entry.concurrency if isinstance(entry.concurrency, list) else [0]
    if (min(levels), max(levels)) != CONCURRENCY:
        yield f"the concurrencies are not from {CONCURRENCY[0]} to {CONCURRENCY[1]}"
    if set(entry.mixes) != MIXES:
        yield "the mixes are not RO, RW and WO"
    if resources is None or resources.nodes != 2:  # noqa: PLR2004 - one of each role
        yield "the cost is not of two nodes"


def _e1(entry: Any, study: Study, resources: Resources | None) -> Iterator[str]:  # noqa: ANN401
    del study, resources
    if {resolve(pattern)[0] for pattern in entry.patterns} != set(PATTERNS):
        yield "the patterns are not the paper's four"
    if set(entry.mixes) != MIXES:
        yield "the mixes are not RO, RW and WO"
    if entry.tau != TAU:
        yield f"τ is not {TAU}, the paper's for all systems"
    if (entry.slot, entry.window) != (SLOT_S, WINDOW_S):
        yield "slots are not a minute long, or paid for over ten minutes"


def _failures(entry: Any, study: Study, resources: Resources | None) -> Iterator[str]:  # noqa: ANN401
    del study, resources
    if entry.fault != "restart":
        yield f"the fault is a {entry.fault}, and the paper's a restart"
    if set(entry.roles) != {"rw", "ro"}:
        yield "not both of RW and RO fail"
    if entry.is_open or entry.concurrency != FAILING_SESSIONS:
        yield f"the load is not of {FAILING_SESSIONS} closed sessions"
    if entry.mix != "RW":
        yield "the mix is not RW"


def _e2(entry: Any, study: Study, resources: Resources | None) -> Iterator[str]:  # noqa: ANN401
    del study, resources
    if entry.reads != "all":
        yield "reads are not spread over the writer and the read-only nodes"
    if entry.nodes != 1:
        yield "more than one read-only node is added"
    yield "the paper says neither the mix nor the concurrency"


def _c(entry: Any, study: Study, resources: Resources | None) -> Iterator[str]:  # noqa: ANN401
    del study, resources
    if entry.loads is not None:
        yield "the loads are not the paper's four of inserts, updates and deletes"


def _t(entry: Any, study: Study, resources: Resources | None) -> Iterator[str]:  # noqa: ANN401
    if (
        study.tenants.number != TENANTS
        or entry.saturation is not None
        or entry.custom
        or len(entry.patterns) != len(PATTERNS)
    ):
        yield "the patterns are not the paper's four of three tenants"
    if entry.mix != "RW" or entry.slot != SLOT_S:
        yield "the mix is not RW, or slots are not a minute long"
    if study.tenants.share != "server" and (resources is None or resources.nodes != 1):
        yield "the cost is that of all nodes, and the paper's of the tenants' alone"


_OF: Mapping[PerfectName, Callable[[Any, Study, Resources | None], Iterator[str]]] = {
    "P": _p,
    "E1": _e1,
    "R": _failures,
    "F": _failures,
    "E2": _e2,
    "C": _c,
    "T": _t,
}
