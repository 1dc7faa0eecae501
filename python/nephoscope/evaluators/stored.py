"""A stored run as an evaluator reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nephoscope.scoring.prices import Prices
    from nephoscope.settings.resources import Resources
    from nephoscope.store import StoredRun


@dataclass(frozen=True)
class Stored:
    """A stored run, as an evaluator reads it."""

    run: StoredRun
    index: int
    """The place of the evaluator's entry among the study's ``[[measure]]``: its phases are labelled with it."""
    resources: Resources | None
    prices: Prices
    interval_s: float

    def why_not(self) -> str | None:
        """Return why the entry could not be measured, if the run says so."""
        for event in self.run.events:
            if (
                event.get("event") in ("unsupported", "fault_failed", "action_failed")
                and event.get("measure") == self.index
            ):
                return str(event["message"])
        return None
