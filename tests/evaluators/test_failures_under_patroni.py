"""The example study for Patroni, run for real: its own hooks on a cluster of two nodes, etcd and HAProxy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from patroni_lab import TTL_S, PatroniLab, patroni_cluster

from commands import finish, start
from nephoscope.store import FILES, StoredRun

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "patroni.toml"
AFTER_S = 35.0
"""Longer than the leader's key lives, an election takes, and HAProxy needs to see it."""
BRIEF = {
    "workload.scale": "0.002",
    "measure.0.loads": '[{name = "idle"}, {name = "busy", mix = "IUD"}]',
    "measure.0.duration": "2s",
    "measure.0.warmup": "500ms",
    "measure.1.after": f"{AFTER_S:g}s",
    "measure.2.after": "10s",
    **{f"measure.{entry}.repetitions": "1" for entry in range(3)},
    **{f"measure.{entry}.concurrency": "2" for entry in range(3)},
    **{f"measure.{entry}.before": "2s" for entry in (1, 2)},
    **{f"measure.{entry}.warmup": "1s" for entry in (1, 2)},
}
"""What makes the example short enough for a test: lengths and sizes, and nothing else."""


def measured(folder: Path, cluster: PatroniLab) -> StoredRun:
    overrides = [word for key, value in BRIEF.items() for word in ("--set", f"{key}={value}")]
    with start("run", EXAMPLE, *overrides, cwd=folder, environment=cluster.environment) as process:
        ended = finish(process, 180)
    assert ended.code == 0, f"{ended.err}\n{cluster.logs()}"
    # Each kind of failure is told, though only the first gives the scores.
    assert {"node-loss of rw 1", "promote of rw 1"} <= set(re.findall(r"[\w-]+ of rw \d", ended.out))
    return StoredRun(folder / "runs" / "latest")


def the_failure(scores: dict[str, Any], entry: int) -> dict[str, Any]:
    (failure,) = scores["details"]["failover"][str(entry)]["failures"]
    assert failure["interrupted"]
    assert failure["acknowledged"] > 300
    assert failure["lost"] is not None
    assert failure["indeterminate"] is not None
    return {**failure, "outage_s": failure["service_back_s"] - failure["last_success_s"]}


@pytest.mark.survives(
    part="actions",
    fault="a node that crashes under Patroni: it and PostgreSQL are killed together, on the node that takes writes",
    promise="the automatic fail-over is read as long as it is, some 20 s by the cluster's `ttl`; acknowledged commits"
    " are looked for; the run goes on to its end",
    on="a Patroni cluster behind HAProxy",
)
def test_patronis_switchover_and_crash_are_read_as_they_are(tmp_path: Path) -> None:
    with patroni_cluster() as cluster:
        run = measured(tmp_path, cluster)
    scores = json.loads((run.folder / FILES.scores).read_text())
    assert {"F", "C"} <= scores["scores"].keys()
    # How fast a small machine that also runs the cluster is again, is not known beforehand.
    assert "R" in scores["scores"] or "the TPS did not come back" in scores["absent"]["R"]

    # A crash is found out only when the leader's key is over, of which up to a loop of 5 s has passed already.
    crash = the_failure(scores, 1)
    assert crash["failed_probes"] > 100
    assert TTL_S / 2 < crash["outage_s"] <= scores["scores"]["F"]["value"] < AFTER_S

    # A switchover ends connections, and takes seconds; nothing is lost.
    switchover = the_failure(scores, 2)
    assert 0.2 < switchover["outage_s"] < 12
    assert switchover["lost"] == 0
    done = [e["action"] for e in run.events if e["event"] in ("fault", "action")]
    assert done == ["kill", "start", "promote"]

    # Lag is that of streaming replication on one machine, as the read-only front shows it.
    lags = scores["scores"]["C"]["detail"]["lag_ms"]
    for load in ("idle", "busy"):
        for kind in ("insert", "update", "delete"):
            assert lags[load][kind]["unseen"] == 0
            assert 0 < lags[load][kind]["p50"] < 1000
    # One reading of the allocation at least, from Patroni's own list.
    assert run.manifest["system"]["resources"]["nodes"] == 2
