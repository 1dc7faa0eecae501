"""What a run tells while it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Watcher(Protocol):
    """Whoever shows a run while it goes on."""

    def phase(self, record: Mapping[str, Any]) -> None:
        """Show that a phase begins."""

    def interval(self, record: Mapping[str, Any]) -> None:
        """Show an interval."""

    def error(self, record: Mapping[str, Any]) -> None:
        """Show errors of one kind."""

    def gap(self, record: Mapping[str, Any]) -> None:
        """Show that the tool itself did not run for a while."""

    def expect(self, what: str | None) -> None:
        """Attribute errors to ``what`` from now on; None ends that."""
