"""The figures of a run at an HTTP address, in the text format that Prometheus reads."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from nephoscope.errors import InputError
from nephoscope.publishing.figures import BOUNDS_S, Distribution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope.publishing.figures import Family, LiveFigures

_UNITS = {"s": "_seconds", "1": "_ratio"}
"""The words for units at a name's end (OpenTelemetry, "Prometheus and OpenMetrics Compatibility")."""
_Made = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


@contextmanager
def serving(figures: LiveFigures, address: str) -> Iterator[str]:
    """Serve figures at an address, ``HOST:PORT`` or a port of this machine alone; gives the URL.

    Port 0 takes a free one. Raises ``InputError`` where it is no address, or is taken.
    """
    host, port = _host_and_port(address)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(figures))
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, UnicodeError) as error:
        raise InputError(f"--prometheus {address}: {getattr(error, 'strerror', None) or error}") from None
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not (port.isascii() and port.isdecimal() and int(port) <= 65_535):  # noqa: PLR2004 - a port has 16 bits
        raise InputError(
            f"--prometheus {address}: allowed is HOST:PORT, [HOST]:PORT for IPv6, or a PORT of this machine alone"
        )
    return host, int(port)


class _Collector(Collector):
    """Makes the library's families of ours, at each scrape."""

    def __init__(self, figures: LiveFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[_Made]:
        """Give all metrics."""
        for family in self._figures.families():
            yield _of(family)


def _of(family: Family) -> _Made:
    name = family.name.replace(".", "_") + _UNITS.get(family.unit, "")
    names = [name for name, _ in next(iter(family.values))]
    single = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    histogram = HistogramMetricFamily(name, family.help, labels=names)
    made = single(name, family.help, labels=names)
    for labels, value in family.values.items():
        of = [text for _, text in labels]
        if isinstance(value, Distribution):
            counts = zip(map(floatToGoString, BOUNDS_S), value.up_to, strict=True)
            histogram.add_metric(of, [*counts, ("+Inf", value.count)], value.sum)
        else:
            made.add_metric(of, value)
    return histogram if family.kind == "histogram" else made
