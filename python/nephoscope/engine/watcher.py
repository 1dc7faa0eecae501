"""What a run tells while it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Watcher(Protocol):
    """Whoever shows a run while it goes on."""

    def begin(self, folder: Path, seconds: float) -> None:
        """Show that the load begins; it will take about so long."""

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


class Watchers:
    """Several watchers in place of one."""

    def __init__(self, *watchers: Watcher) -> None:
        """Tell each of them everything, in this order."""
        self._watchers = watchers

    def begin(self, folder: Path, seconds: float) -> None:
        """Show that the load begins."""
        for watcher in self._watchers:
            watcher.begin(folder, seconds)

    def phase(self, record: Mapping[str, Any]) -> None:
        """Show that a phase begins."""
        for watcher in self._watchers:
            watcher.phase(record)

    def interval(self, record: Mapping[str, Any]) -> None:
        """Show an interval."""
        for watcher in self._watchers:
            watcher.interval(record)

    def error(self, record: Mapping[str, Any]) -> None:
        """Show errors of one kind."""
        for watcher in self._watchers:
            watcher.error(record)

    def gap(self, record: Mapping[str, Any]) -> None:
        """Show that the tool itself did not run for a while."""
        for watcher in self._watchers:
            watcher.gap(record)

    def expect(self, what: str | None) -> None:
        """Attribute errors to ``what`` from now on; None ends that."""
        for watcher in self._watchers:
            watcher.expect(what)
