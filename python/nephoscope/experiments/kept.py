"""The system of an experiment's run, kept for the runs after it that measure the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from nephoscope.systems.around import Around

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from nephoscope.settings.registered import SystemSettings
    from nephoscope.study.reading import Study
    from nephoscope.systems.base import Provider, System


class _Held(Around):
    """Is started once, and not stopped with a run."""

    def __init__(self, inner: Provider, settings: SystemSettings) -> None:
        super().__init__(inner)
        self.name = inner.name  # type: ignore[misc]
        self.settings = settings
        self.system: System | None = None

    def start(self) -> System:
        """Start it, or give what runs already."""
        if self.system is None:
            self.system = super().start()
        return self.system

    def stop(self) -> None:
        """Let it run."""

    def end(self) -> None:
        """Stop it. Raises ``MeasurementError``."""
        super().stop()


class Kept:
    """Keeps one system at a time, within a context."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._held: _Held | None = None

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop what is kept."""
        self.end()

    def around(self, study: Study) -> Callable[[Provider], Provider]:
        """Put the kept system in the place of a study's own where their tables are the same.

        Else the kept one is stopped, and the study's own is the next one. Raises ``MeasurementError``.
        """

        def wrap(own: Provider) -> Provider:
            if self._held is None or self._held.system is None or self._held.settings != study.system:
                self.end()
                self._held = _Held(own, study.system)
            return self._held

        return wrap

    def end(self) -> None:
        """Stop what is kept; harmless where nothing is. Raises ``MeasurementError``."""
        held, self._held = self._held, None
        if held is not None:
            held.end()
