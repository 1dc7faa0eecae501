"""How transactions are tried again, as a study says it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from nephoscope import _engine
from nephoscope.settings.base import Settings
from nephoscope.settings.units import Duration, one_as_list
from nephoscope.settings.validation import one_of


class RetrySetting(Settings):
    """``[load.retry]``: how transactions are retried after an error that allows it."""

    attempts: Annotated[int, Field(ge=1, le=1000)] = 5
    """The most attempts of a transaction, the first included; 1 means no retry."""
    backoff: Duration = 0.005
    """The mean pause before the second attempt; it doubles with each further one."""
    backoff_max: Duration = 0.2
    """The longest mean pause."""
    classes: Annotated[
        list[Annotated[str, one_of("a class of errors", _engine.error_classes)]], BeforeValidator(one_as_list)
    ] = Field(default_factory=lambda: ["serialization", "deadlock", "shutting_down"])
    """After which [classes of errors](metrics.md#errors)."""

    def to_engine(self) -> dict[str, Any]:
        """Describe it for the engine."""
        return {
            "attempts": self.attempts,
            "backoff_ms": self.backoff * 1000,
            "backoff_max_ms": self.backoff_max * 1000,
            "classes": self.classes,
        }
