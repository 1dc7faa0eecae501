"""The resolved method of an evaluator: the settings that it was run with, every default written out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.report.kit.parts import Fact, Method
from nephoscope.report.sections.environment import redacted, text_of

if TYPE_CHECKING:
    from nephoscope.report.kit.run import Run


def of(run: Run, evaluator: str) -> tuple[Method, ...]:
    """Return the entries of ``[[measure]]`` of an evaluator."""
    return tuple(
        Method(
            evaluator=evaluator,
            settings=tuple(
                Fact(label=str(key).replace("_", " "), value=redacted(text_of(value)))
                for key, value in entry.items()
                if key != "evaluator"
            ),
        )
        for entry in run.measures
        if entry.get("evaluator") == evaluator
    )
