"""A run's own figures for monitoring systems while it goes on: as a Prometheus endpoint, and by OTLP."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from nephoscope.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nephoscope.publishing.figures import LiveFigures

_EXTRAS = {"prometheus": "prometheus_client", "otlp": "opentelemetry.exporter.otlp.proto.http"}


@contextmanager
def published(
    figures: LiveFigures, say: Callable[[str], None], *, prometheus: str | None, otlp: str | None
) -> Iterator[None]:
    """Publish figures within this context: at an address for Prometheus, to a URL by OTLP, or both.

    Raises ``InputError`` where an address is no address or is taken, a URL is none, or a library is not installed.
    """
    with ExitStack() as stack:
        if otlp is not None:
            _check_installed("otlp")
            from nephoscope.publishing.otlp import exporting  # noqa: PLC0415 - an optional dependency

            stack.enter_context(exporting(figures, otlp, say))
        if prometheus is not None:
            _check_installed("prometheus")
            from nephoscope.publishing.prometheus import serving  # noqa: PLC0415 - an optional dependency

            say(f"prometheus: {stack.enter_context(serving(figures, prometheus))}")
        yield


def _check_installed(extra: str) -> None:
    """Raise ``InputError`` where an optional dependency is not installed."""
    try:
        found = find_spec(_EXTRAS[extra])
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise InputError(
            f"--{extra} needs a library that is not installed: pip install 'nephoscope[{extra}]'"
        )
