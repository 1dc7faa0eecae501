"""A run's figures as a receiver of OpenTelemetry gets them."""

from __future__ import annotations

import gzip
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from commands import call
from http_servers import handling
from nephoscope.publishing.figures import BOUNDS_S
from nephoscope.store import StoredRun
from nephoscope.systems.cluster.server import free_port
from sample_studies import sim_study, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Receiver:
    """What a receiver got: OpenTelemetry's own messages decode it."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.paths: list[str] = []
        self.headers: list[Any] = []
        self.requests: list[ExportMetricsServiceRequest] = []

    @property
    def newest(self) -> dict[str, Any]:
        """The metrics of the last request, by name."""
        (resource,) = self.requests[-1].resource_metrics
        (scope,) = resource.scope_metrics
        return {metric.name: metric for metric in scope.metrics}


@contextmanager
def receiving(status: int = 200) -> Iterator[tuple[str, Receiver]]:
    receiver = Receiver(status)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            receiver.paths.append(self.path)
            receiver.headers.append(self.headers)
            receiver.requests.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(receiver.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportMetricsServiceResponse().SerializeToString())

        def log_message(self, *_: Any) -> None: ...

    with handling(Handler) as url:
        yield url, receiver


def test_a_receiver_has_the_whole_run_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20token")
    with receiving() as (url, receiver):
        ended = call("run", write_study(tmp_path, sim_study()), "--out", tmp_path, "--otlp", url)
    assert (ended.code, ended.err) == (0, "")
    assert set(receiver.paths) == {"/v1/metrics"}
    assert receiver.headers[-1]["authorization"] == "Bearer token"
    metrics = receiver.newest
    run = StoredRun(tmp_path / "latest")
    committed = int(run.intervals["committed"].to_numpy().sum())
    told = metrics["nephoscope.transactions"]
    assert (told.unit, told.sum.is_monotonic, told.sum.aggregation_temporality) == ("{transaction}", True, 2)
    of_outcome = {
        attribute.value.string_value: point.as_double
        for point in told.sum.data_points
        for attribute in point.attributes
        if attribute.key == "outcome"
    }
    assert of_outcome["committed"] == committed > 0
    (latency,) = metrics["nephoscope.transaction.latency"].histogram.data_points
    assert tuple(latency.explicit_bounds) == BOUNDS_S
    assert sum(latency.bucket_counts) == latency.count == committed
    assert latency.min <= latency.sum / latency.count <= latency.max
    (sessions,) = metrics["nephoscope.sessions"].gauge.data_points
    assert sessions.as_double == 0, "the load has ended"


@pytest.mark.parametrize("status", [400, None])
def test_a_receiver_that_takes_nothing_is_told_of_once(tmp_path: Path, status: int | None) -> None:
    study = write_study(tmp_path, sim_study())
    if status is None:
        url = f"http://user:secret@127.0.0.1:{free_port()}"
        ended = call("run", study, "--out", tmp_path, "--otlp", url)
    else:
        with receiving(status) as (url, _):
            ended = call("run", study, "--out", tmp_path, "--otlp", url)
    assert ended.code == 0
    (line,) = ended.err.splitlines()
    assert line.startswith("warning: the receiver at http://")
    assert line.endswith(" did not take 1 of 1 exports")
    assert "secret" not in ended.err


@pytest.mark.parametrize(
    "url", ["127.0.0.1:4318", "ftp://127.0.0.1", "http://", "http://127.0.0.1:0", "http://[::1"]
)
def test_what_is_no_url_is_refused_before_anything_is_touched(tmp_path: Path, url: str) -> None:
    ended = call("run", write_study(tmp_path, sim_study()), "--out", tmp_path, "--otlp", url)
    assert ended.code == 2
    assert "allowed is a URL such as http://127.0.0.1:4318" in ended.err
    assert list(tmp_path.iterdir()) == [tmp_path / "study.toml"]


@pytest.mark.parametrize(("option", "value"), [("otlp", "http://127.0.0.1:4318"), ("prometheus", "0")])
def test_without_its_library_an_option_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: str
) -> None:
    monkeypatch.setattr("nephoscope.publishing.find_spec", lambda _: None)
    ended = call("run", write_study(tmp_path, sim_study()), "--out", tmp_path, f"--{option}", value)
    assert ended.code == 2
    assert f"pip install 'nephoscope[{option}]'" in ended.err
