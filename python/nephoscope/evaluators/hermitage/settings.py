"""The settings of Hermitage's cases in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from nephoscope.settings.loads import Isolation, each_once
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration, one_as_list

if TYPE_CHECKING:
    from typing import Self


class HermitageSettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "hermitage"``."""

    evaluator: Literal["hermitage"] = "hermitage"
    isolation: Annotated[list[Isolation], BeforeValidator(one_as_list), Field(min_length=1)]
    """The isolation levels that are gone through, one or several."""
    moment: Duration = 0.3
    """A statement that was not answered after so long waits for another transaction."""
    limit: Duration = 10.0
    """A statement that was not answered after so long is given up: where the system finds no deadlock, it ends so."""

    _each_once = field_validator("isolation")(each_once)

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if not 0 < self.moment < self.limit:
            raise ValueError("moment must be above 0, and limit longer")
        return self
