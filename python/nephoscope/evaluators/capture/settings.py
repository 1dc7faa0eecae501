"""The settings of a grid of loads in a study."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from nephoscope.settings.loads import HIGHEST_RATE, AccessSetting, Mixes, each_once
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration

_Rate = Annotated[float, Field(gt=0, le=HIGHEST_RATE)]


class CaptureSettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "capture"``."""

    evaluator: Literal["capture"] = "capture"
    rates: Annotated[list[_Rate], Field(min_length=1)]
    """The transactions a second, as an open load; each is measured with each mix."""
    mixes: Mixes
    """The mixes: see [mixes](#mixes)."""
    replicates: Annotated[int, Field(ge=1, le=1000)] = 3
    """How often each cell of the grid is measured. Two captures of one cell tell how far a model can come."""
    duration: Duration = 60.0
    """Of each measured phase: a run of the corpus, in whole seconds."""
    warm_up: Duration = 10.0
    """How long the load runs before each measured phase."""
    pause: Duration = 5.0
    """How long the load rests before each cell, so that none starts with the queue of another."""
    settle: Duration = 0.0
    """How long the load runs before the first cell, with each mix in turn at its highest rate: a database that was just
    loaded changes faster than it does later."""
    vacuum: bool = True
    """Whether PostgreSQL vacuums and analyzes before each cell, so that none has the dead rows of another, and
    autovacuum has little to do within one: an analysis alone reads up to 30,000 pages of a table. MariaDB purges as
    it goes."""
    arrivals: Literal["constant", "poisson"] = "poisson"
    """How the arrivals are spread: evenly, or as a Poisson process."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""
    seed: Annotated[int, Field(ge=0)] = 1
    """Of the order of the cells, which is another one in each replicate: a drift must not pass for an effect."""

    _each_once = field_validator("mixes", "rates")(each_once)

    @field_validator("duration")
    @classmethod
    def _whole_seconds(cls, seconds: float) -> float:
        if seconds < 1 or seconds != int(seconds):
            raise ValueError("a run of a corpus has whole seconds, 1 at the least")
        return seconds
