"""Figures of others that an experiment is drawn beside: ``[[reference]]`` of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from nephoscope.settings.base import Settings
from nephoscope.settings.validation import validated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.study.factors import ExperimentTable, FactorTable

_Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Pair = Annotated[list[_Above0], Field(min_length=2, max_length=2)]
_Text = Annotated[str, Field(min_length=1, max_length=200)]


class ReferenceTable(Settings):
    """An entry of ``[[reference]]``: what others have measured on a system of theirs."""

    name: _Text
    """What was measured: `"Aurora, db.r5.large"`."""
    source: _Text
    """Where the figures stand: the publication, with its page, figure or table."""
    response: str = "tps"
    """The response that the figures are of."""
    where: dict[str, str] = Field(default_factory=dict)
    """The levels of factors that they belong to: `{ test = "oltp_read_only" }`. Of the other factors they are drawn
    beside each level."""
    points: Annotated[list[_Pair], Field(min_length=1, max_length=1000)]
    """Pairs of a number on the axis of `experiment.over` and a figure in the response's unit: `[[16, 3213.3], [32,
    3629.8]]`."""


def references_of(tables: Any, faults: list[str]) -> tuple[ReferenceTable, ...]:  # noqa: ANN401 - whatever TOML can hold
    """Read the entries of ``[[reference]]``; what is wrong is added to ``faults``."""
    if not isinstance(tables, list):
        faults.append("reference: expected [[reference]], once for each series of figures")
        return ()
    found = [
        validated(ReferenceTable, table, f"reference.{index}", faults) for index, table in enumerate(tables)
    ]
    return tuple(one for one in found if one is not None)


def reference_faults(
    references: Sequence[ReferenceTable], factors: Sequence[FactorTable], experiment: ExperimentTable
) -> list[str]:
    """Tell which references do not belong to an experiment over these factors."""
    faults = []
    levels: Mapping[str, Sequence[str]] = {factor.name: factor.names for factor in factors}
    free = [name for name in levels if name not in {experiment.over, experiment.by}]
    if references and experiment.over is None:
        faults.append("reference: figures are drawn over a factor: experiment.over names it")
    for index, one in enumerate(references):
        if one.response not in experiment.responses:
            allowed = ", ".join(experiment.responses)
            faults.append(
                f"reference.{index}.response: {one.response!r} is no response of it; allowed: {allowed}"
            )
        for name, level in one.where.items():
            if name not in free:
                allowed = ", ".join(free) or "none"
                faults.append(
                    f"reference.{index}.where: {name!r} has no charts of its own; allowed: {allowed}"
                )
            elif level not in levels[name]:
                allowed = ", ".join(levels[name])
                faults.append(
                    f"reference.{index}.where.{name}: there is no level {level!r}; levels are {allowed}"
                )
    return faults
