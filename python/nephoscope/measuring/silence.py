"""A measurement that nobody watches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope.scoring.definitions import ScoreName
    from nephoscope.scoring.formulas import Score


class Silence:
    """An audience that shows nothing."""

    def say(self, message: str) -> None:
        """Show nothing."""

    def loading(self, tables: Sequence[tuple[str, int, int]]) -> None:
        """Show nothing."""

    def begin(self, folder: Path, seconds: float) -> None:
        """Show nothing."""

    def phase(self, record: Mapping[str, Any]) -> None:
        """Show nothing."""

    def interval(self, record: Mapping[str, Any]) -> None:
        """Show nothing."""

    def error(self, record: Mapping[str, Any]) -> None:
        """Show nothing."""

    def expect(self, what: str | None) -> None:
        """Show nothing."""

    def gap(self, record: Mapping[str, Any]) -> None:
        """Show nothing."""

    def score(self, name: ScoreName, score: Score) -> None:
        """Show nothing."""

    def end(self) -> None:
        """Show nothing."""
