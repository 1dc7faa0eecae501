"""The figures of a run, sent to a receiver of OpenTelemetry by OTLP over HTTP."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from nephoscope.errors import InputError
from nephoscope.masking import masked
from nephoscope.publishing.figures import BOUNDS_S, Distribution
from nephoscope.settings.endpoints import is_http

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nephoscope.publishing.figures import Family, LiveFigures

PERIOD_S = 5.0
"""The time between two exports, in s."""
_PATIENCE_S = 5.0
"""How long a receiver is waited for, in s: also by the end of a run."""
_CUMULATIVE = AggregationTemporality.CUMULATIVE


@contextmanager
def exporting(figures: LiveFigures, url: str, say: Callable[[str], None]) -> Iterator[None]:
    """Send figures to a URL every few seconds, and once more at the end; say at the end how often that failed.

    Headers, such as a token, come from the variable ``OTEL_EXPORTER_OTLP_HEADERS``.

    Raises ``InputError`` for a bad URL.
    """
    exporter = _Exporter(figures, _endpoint(url))
    try:
        yield
    finally:
        exporter.close()
        if exporter.refused:
            of = f"{exporter.refused} of {exporter.sent + exporter.refused} exports"
            say(f"warning: the receiver at {masked(url)} did not take {of}")


def _endpoint(url: str) -> str:
    """Return the URL of metrics: that of a receiver has ``/v1/metrics`` behind it (OTLP's specification)."""
    if not is_http(url):
        raise InputError(f"--otlp {masked(url)}: allowed is a URL such as http://127.0.0.1:4318")
    return url if urlsplit(url).path.strip("/") else f"{url.rstrip('/')}/v1/metrics"


class _Exporter:
    """A thread that exports until it is closed."""

    def __init__(self, figures: LiveFigures, endpoint: str) -> None:
        # What is not taken is told once, at the end, in our words.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._figures = figures
        self._exporter = OTLPMetricExporter(endpoint=endpoint, timeout=_PATIENCE_S)
        self._began_ns = time.time_ns()
        self.sent = self.refused = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nephoscope-otlp", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(PERIOD_S):
            self._export()
        self._export()

    def _export(self) -> None:
        families = self._figures.families()
        if not families:
            return
        data = _data(families, self._began_ns, time.time_ns())
        taken = self._exporter.export(data, timeout_millis=1000 * _PATIENCE_S) is MetricExportResult.SUCCESS
        self.sent += taken
        self.refused += not taken

    def close(self) -> None:
        """Export once more, and end."""
        self._ended.set()
        self._thread.join(timeout=3 * _PATIENCE_S)
        self._exporter.shutdown()


def _data(families: Sequence[Family], began_ns: int, now_ns: int) -> MetricsData:
    metrics = [
        Metric(family.name, family.help, family.unit, _points(family, began_ns, now_ns))
        for family in families
    ]
    scope = ScopeMetrics(InstrumentationScope("nephoscope"), metrics, "")
    return MetricsData([ResourceMetrics(Resource({"service.name": "nephoscope"}), [scope], "")])


def _points(family: Family, began_ns: int, now_ns: int) -> Sum | Gauge | Histogram:
    if family.kind == "histogram":
        found = [
            _histogram(dict(labels), value, began_ns, now_ns)
            for labels, value in family.values.items()
            if isinstance(value, Distribution)
        ]
        return Histogram(found, _CUMULATIVE)
    points = [
        NumberDataPoint(dict(labels), began_ns, now_ns, value)
        for labels, value in family.values.items()
        if not isinstance(value, Distribution)
    ]
    return Gauge(points) if family.kind == "gauge" else Sum(points, _CUMULATIVE, is_monotonic=True)


def _histogram(labels: dict[str, str], value: Distribution, began_ns: int, now_ns: int) -> HistogramDataPoint:
    # A bucket of OTLP counts what lies in it alone.
    steps = (0, *value.up_to, value.count)
    counts = [after - before for before, after in pairwise(steps)]
    return HistogramDataPoint(
        labels, began_ns, now_ns, value.count, value.sum, counts, BOUNDS_S, value.min, value.max
    )
