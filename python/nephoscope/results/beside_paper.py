"""Which figures of a study may be set beside CloudyBench's tables, and why others may not.

A figure may where the study's settings are the paper's procedure (sections II and III); what the paper leaves open is
no reason against it, and is told. Each measurement has the procedure in its folder, in ``paper.py``. The machines,
the vendors and the paper's own client are never the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope import registry
from nephoscope.scoring.definitions import DEFINITIONS, PERFECT
from nephoscope.scoring.prices import DEFAULT_PRICE_BOOK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from nephoscope.settings.resources import Resources
    from nephoscope.study.reading import Study

WORKLOAD = "sales"
SCALES = (1, 10, 100)


def verdicts(study: Study, resources: Resources | None, measured: Collection[str]) -> list[dict[str, str]]:
    """Say it of the measured scores, as verdicts; only where the study asks for it (``score.beside_paper``)."""
    if not study.score.beside_paper:
        return []
    found = {
        name: against
        for name in PERFECT
        if name in measured and (against := reasons(name, study, resources)) is not None
    }
    fitting = [f"{name} ({DEFINITIONS[name].source})" for name, against in found.items() if not against]
    others = [
        f"{name} ({DEFINITIONS[name].source}): {', '.join(against)}"
        for name, against in found.items()
        if against
    ]
    made = []
    if fitting:
        made.append(("measured as the paper measures, and may be set beside its tables", ", ".join(fitting)))
    if others:
        made.append(
            ("not measured as the paper measures: not to be set beside its tables", "; ".join(others))
        )
    return [{"level": "note", "verdict": verdict, "detail": detail} for verdict, detail in made]


def reasons(name: str, study: Study, resources: Resources | None) -> list[str] | None:
    """List what sets a score's procedure apart from the paper's; None where the study does not measure it."""
    for module in registry.shown("paper"):
        entry = next((one for one in study.measure if isinstance(one, module.OF)), None)
        if name in module.SCORES and entry is not None:
            scales = getattr(module, "SCALES", SCALES)
            return [*_of_all(name, study, scales), *module.apart(entry, study, resources)]
    return None


def _of_all(name: str, study: Study, scales: Collection[int]) -> Iterator[str]:
    if study.workload.name != WORKLOAD:
        yield f"the workload is {study.workload.name}, and the paper's {WORKLOAD}"
    if study.workload.scale not in scales:
        yield f"the scale factor is {study.workload.scale:g}, and the paper's {', '.join(map(str, scales))}"
    if DEFINITIONS[name].by_prices and study.cost.price_book != DEFAULT_PRICE_BOOK:
        yield f"the price book is not {DEFAULT_PRICE_BOOK}"
