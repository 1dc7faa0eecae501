"""Metrics of other machines: what is read of Prometheus's text format, and a real node_exporter beside our own look."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import call
from http_servers import handling, running
from nephoscope.collectors.endpoint import Exposition, figures
from nephoscope.store import StoredRun
from nephoscope.systems.cluster.server import free_port
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST = """# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{{cpu="0",mode="idle"}} {idle}
node_cpu_seconds_total{{cpu="0",mode="iowait"}} 10
node_cpu_seconds_total{{cpu="1",mode="user"}} {user}
node_cpu_seconds_total{{cpu="1",mode="steal"}} {stolen}
# TYPE node_load1 gauge
node_load1 2.5
# TYPE node_memory_MemTotal_bytes gauge
node_memory_MemTotal_bytes 8.388608e+06
# TYPE node_memory_MemAvailable_bytes gauge
node_memory_MemAvailable_bytes 2.097152e+06
# TYPE node_disk_written_bytes_total counter
node_disk_written_bytes_total{{device="sda"}} {written}
node_disk_written_bytes_total{{device="dm-0"}} {written}
# TYPE node_network_receive_bytes_total counter
node_network_receive_bytes_total{{device="lo"}} {written}
node_network_receive_bytes_total{{device="eth0"}} 0
# TYPE waiting gauge
waiting{{pool="a\\"b"}} 3
# TYPE queries_total counter
queries_total {queries}
# TYPE other gauge
other 1
"""
BEFORE = HOST.format(idle=100, user=50, stolen=5, written=0, queries=1000)
AFTER = HOST.format(idle=101, user=52, stolen=6, written=4 << 20, queries=1500)
KEPT = ["waiting", "queries_total"]
WANTED = {
    *("node_cpu_seconds_total", "node_load1", "node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes"),
    *("node_disk_written_bytes_total", "node_network_receive_bytes_total", *KEPT),
}


def test_a_host_is_told_in_the_words_of_our_own() -> None:
    seen = figures(Exposition(BEFORE, WANTED), Exposition(AFTER, WANTED), 2.0, KEPT)
    assert seen == {
        "cpu_busy": pytest.approx(0.75),
        "cpu_io_wait": 0,
        "cpu_stolen": pytest.approx(0.25),
        "load_average": 2.5,
        "memory_used_mb": 6.0,
        "disk_written_mb_per_s": 2.0,
        "network_received_mb_per_s": 0.0,
        'waiting{pool="a"b"}': 3.0,
        "queries_total_per_s": 250.0,
    }


def test_a_counter_that_fell_is_left_out() -> None:
    seen = figures(Exposition(AFTER, WANTED), Exposition(BEFORE, WANTED), 2.0, KEPT)
    assert seen.keys() & {"queries_total_per_s", "disk_written_mb_per_s"} == set()
    assert seen["load_average"] == 2.5


@given(st.text(max_size=200))
def test_foreign_text_is_read_or_refused(text: str) -> None:
    try:
        Exposition(f"{text}\nwaiting {text}\n", ["waiting"])
    except ValueError:
        return


@contextmanager
def showing(text: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None: ...

    with handling(Handler) as url:
        yield f"{url}/metrics"


def asking(folder: Path, **endpoint: object) -> Path:
    course = phases({"rate": 100, "duration": "5s", "mix": "TPCB"})
    return write_study(folder, sim_study(course, system={"metrics": {"db": endpoint}}))


def test_a_node_exporter_sees_what_we_see_of_this_machine(tmp_path: Path) -> None:
    server = shutil.which("prometheus-node-exporter")
    if server is None:
        pytest.skip("prometheus-node-exporter is not installed")
    port = free_port()
    with running([server, f"--web.listen-address=127.0.0.1:{port}"], port):
        url = f"http://127.0.0.1:{port}/metrics"
        ended = call("run", asking(tmp_path, url=url, keep=["process_cpu_seconds_total"]), "--out", tmp_path)
        assert ended.code == 0, ended.err
    table = StoredRun(tmp_path / "latest").system_metrics.to_pylist()
    found: dict[tuple[str, str], list[float]] = {}
    for row in table:
        found.setdefault((row["source"], row["metric"]), []).append(row["value"])
    assert len(found["host:db", "cpu_busy"]) >= 2
    (ours, theirs) = (np.mean(found[source, "memory_used_mb"]) for source in ("host", "host:db"))
    assert theirs == pytest.approx(ours, rel=0.1)
    for metric in ("cpu_busy", "cpu_io_wait", "cpu_stolen", "load_average", "disk_written_mb_per_s"):
        assert ("host:db", metric) in found
    assert found["host:db", "process_cpu_seconds_total_per_s"]


@pytest.mark.parametrize(
    ("text", "keep", "said"),
    [
        ("node_load1 much\n", [], "shows no metrics: "),
        ("other 1\n", [], "is no node_exporter; keep must name what of it to keep"),
        (BEFORE, ["missing"], "has no metric missing, which keep names"),
    ],
)
def test_an_endpoint_of_no_use_is_refused_before_anything_is_touched(
    tmp_path: Path, text: str, keep: list[str], said: str
) -> None:
    with showing(text) as url:
        ended = call("run", asking(tmp_path, url=url, keep=keep), "--out", tmp_path)
    assert ended.code == 2
    assert "system.metrics.db: http://127.0.0.1:" in ended.err
    assert said in ended.err
    assert list(tmp_path.iterdir()) == [tmp_path / "study.toml"]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:{port}/", "shows no metrics: "),
        ("file:///etc/passwd", "must be a URL such as http://10.0.0.5:9100/metrics"),
        ("http://me:secret@127.0.0.1/", "must be without user and password"),
    ],
)
def test_what_is_no_endpoint_is_refused(tmp_path: Path, url: str, said: str) -> None:
    ended = call("run", asking(tmp_path, url=url.format(port=free_port())), "--out", tmp_path)
    assert ended.code == 2
    assert said in ended.err
    assert "secret" not in ended.err
