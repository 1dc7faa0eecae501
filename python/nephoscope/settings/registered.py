"""Tables that registered providers and evaluators extend by keys of their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field

from nephoscope.settings.base import Settings
from nephoscope.settings.endpoints import MetricsEndpoint
from nephoscope.settings.resources import Resources
from nephoscope.settings.units import one_as_list


class SystemSettings(Settings):
    """The ``[system]`` table of a study; each provider adds its own keys."""

    provider: str
    """Who gives the system: ``nephoscope systems`` lists the providers."""
    resources: Resources | None = None
    """What the system was given, for its cost: see [resources](systems.md#resources)."""
    metrics: dict[Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,30}$")], MetricsEndpoint] = Field(default={})
    """Other machines and programs whose metrics are kept beside the load: see
    [metrics of other machines](systems.md#metrics-of-other-machines)."""


class OwnSystemSettings(SystemSettings):
    """The ``[system]`` table of a system that this tool starts itself."""

    database: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,62}$")] | None = None
    """The name of the database, made if it does not exist. Left out, it is `nephoscope_` and the workload's name:
    each workload has tables of its own, whose names may be those of another's."""

    @property
    def database_name(self) -> str:
        """The database, of a workload or of none."""
        return self.database or "nephoscope"

    def of_workload(self, name: str) -> Self:
        """Choose the database where none is named; ``name`` is a workload's, or its path."""
        if self.database is not None:
            return self
        own = re.sub(r"\W", "_", Path(name).stem, flags=re.ASCII)
        return self.model_copy(update={"database": f"nephoscope_{own}"[:63]})


def _distinct(scales: list[float]) -> list[float]:
    if len(set(scales)) < len(scales):
        raise ValueError("a scale factor is there more than once")
    return scales


Scales = Annotated[
    list[Annotated[float, Field(gt=0, le=1e6)]],
    BeforeValidator(one_as_list),
    AfterValidator(_distinct),
    Field(min_length=1, max_length=20),
]
"""Scale factors, each once."""


class MeasureSettings(Settings):
    """An entry of ``[[measure]]``; each evaluator adds its own keys."""

    evaluator: str
    scales: Scales | None = None
    """At which of `workload.scales` it is measured; at all of them if left out."""
