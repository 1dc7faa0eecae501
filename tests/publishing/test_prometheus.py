"""A run's figures as a real Prometheus reads them, and what is refused of addresses."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import urllib.parse
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from http_servers import fetched, running
from nephoscope.publishing.figures import LiveFigures
from nephoscope.publishing.prometheus import serving
from nephoscope.store import StoredRun
from nephoscope.systems.cluster.server import free_port
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SECONDS = 6


class Prometheus:
    """A real one that asks one address five times a second."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/query"

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """Give the series that an expression has now."""
        words = urllib.parse.urlencode({"query": expression})
        found = json.loads(fetched(f"{self._url}?{words}"))
        assert found["status"] == "success"
        series: list[dict[str, Any]] = found["data"]["result"]
        return series

    def numbers(self, expression: str) -> dict[str, float]:
        """Give the values of an expression by the first label of each."""
        found = self.ask(expression)
        return {next(iter(one["metric"].values()), ""): float(one["value"][1]) for one in found}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, StoredRun]]:
    server = shutil.which("prometheus")
    if server is None:
        pytest.skip("prometheus is not installed")
    folder = tmp_path_factory.mktemp("prometheus")
    address = f"127.0.0.1:{free_port()}"
    job: dict[str, Any] = {"job_name": "run", "scrape_interval": "200ms", "scrape_timeout": "200ms"}
    job["static_configs"] = [{"targets": [address]}]
    (folder / "asks.yml").write_text(json.dumps({"scrape_configs": [job]}))
    port = free_port()
    words = [server, f"--config.file={folder}/asks.yml", f"--storage.tsdb.path={folder}/data"]
    planted = "latency=constant(2ms)&error=deadlock:0.02"
    course = phases({"rate": 400, "duration": f"{SECONDS}s", "mix": "TPCB"})
    study = write_study(folder, sim_study(course, planted=planted))
    with running([*words, f"--web.listen-address=127.0.0.1:{port}"], port):
        ended = call("run", study, "--out", folder, "--prometheus", address)
        assert ended.code == 0, ended.err
        assert f"prometheus: http://{address}/metrics\n" in ended.err
        yield Prometheus(port), StoredRun(folder / "latest")


def test_each_scrape_has_what_the_run_had_counted_by_then(measured: tuple[Prometheus, StoredRun]) -> None:
    prometheus, run = measured
    by_interval: dict[float, int] = {}
    ends, counts = (run.intervals[name].to_numpy() for name in ("end_s", "committed"))
    for end, committed in zip(ends, counts, strict=True):
        by_interval[end] = by_interval.get(end, 0) + committed
    totals = set(accumulate(by_interval[end] for end in sorted(by_interval)))
    (series,) = prometheus.ask('sum(nephoscope_transactions_total{outcome="committed"})[5m:200ms]')
    seen = {int(float(value)) for _, value in series["values"]}
    assert len(seen) >= SECONDS, "it was asked five times a second"
    assert seen <= totals | {0}


def test_the_buckets_hold_the_planted_latency(measured: tuple[Prometheus, StoredRun]) -> None:
    prometheus, _ = measured
    last = "sum by (le) (max_over_time(nephoscope_transaction_latency_seconds_bucket[5m]))"
    counts = prometheus.numbers(last)
    assert counts["0.001"] == 0, "2 ms are planted"
    assert counts["50.0"] == counts["+Inf"] > 0


def test_every_panel_of_the_dashboard_has_figures(measured: tuple[Prometheus, StoredRun]) -> None:
    prometheus, _ = measured
    dashboard = json.loads((ROOT / "docs" / "grafana.json").read_text())
    idle = set()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "1m")
            if not prometheus.ask(f"last_over_time(({expression})[5m:1s])"):
                idle.add(expression)
    # Nothing stops the client in a test.
    assert idle == {"rate(nephoscope_gaps_time_seconds_total[1m])"}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("here", "allowed is HOST:PORT, [HOST]:PORT for IPv6, or a PORT of this machine alone"),
        ("127.0.0.1:65536", "allowed is HOST:PORT"),
        ("127.0.0.1:", "allowed is HOST:PORT"),
        ("256.0.0.1:9464", "--prometheus 256.0.0.1:9464: "),
    ],
)
def test_what_is_no_address_is_refused_before_anything_is_touched(
    tmp_path: Path, address: str, said: str
) -> None:
    ended = call("run", write_study(tmp_path, sim_study()), "--out", tmp_path, "--prometheus", address)
    assert ended.code == 2
    assert said in ended.err
    assert list(tmp_path.iterdir()) == [tmp_path / "study.toml"]


def test_an_address_that_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = call("run", write_study(tmp_path, sim_study()), "--out", tmp_path, "--prometheus", address)
    assert (ended.code, "Address already in use" in ended.err) == (2, True)


def test_nothing_is_left_listening_afterwards() -> None:
    before = threading.active_count()
    with serving(LiveFigures("study", "1"), "0") as url:
        assert fetched(url) == b""
    assert threading.active_count() == before
    with pytest.raises(OSError, match="refused"):
        fetched(url)
