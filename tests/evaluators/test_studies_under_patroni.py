"""The example study for Patroni and ``perfect``, run for real: on two nodes and a spare one, etcd and HAProxy."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from patroni_lab import TTL_S, PatroniLab, patroni_cluster

from commands import finish, start
from nephoscope.store import FILES, StoredRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.long

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "patroni.toml"
AFTER_S = 35.0
"""Longer than the leader's key lives, an election takes, and HAProxy needs to see it."""
# What makes the studies short enough for a test: lengths and sizes, and besides only the first kind of failure of the
# example, for the crash is that of ``perfect``.
BRIEF_EXAMPLE = {
    "workload.scale": "0.002",
    "measure.0.loads": '[{name = "idle"}, {name = "busy", mix = "IUD"}]',
    "measure.0.duration": "2s",
    "measure.0.warmup": "500ms",
    "measure.1.fault": "restart",
    **{f"measure.{entry}.repetitions": "1" for entry in range(3)},
    **{f"measure.{entry}.concurrency": "2" for entry in range(3)},
    **{f"measure.{entry}.after": "10s" for entry in (1, 2)},
    **{f"measure.{entry}.before": "2s" for entry in (1, 2)},
    **{f"measure.{entry}.warmup": "1s" for entry in (1, 2)},
}
BRIEF_PERFECT = {
    "workload.scale": "0.002",
    "measure.0.concurrency": "[2]",
    "measure.1.tau": "2",
    "measure.1.slot": "1s",
    "measure.1.window": "4s",
    "measure.1.rest": "500ms",
    "measure.2.fault": "node-loss",
    "measure.2.concurrency": "2",
    "measure.2.utilization": "0.2",
    "measure.2.before": "2s",
    "measure.2.after": f"{AFTER_S:g}s",
    "measure.3.loads": '[{name = "busy", mix = "IUD"}]',
    "measure.4.saturation": "4",
    "measure.4.slot": "1s",
    "measure.5.nodes": "1",
    "measure.5.concurrency": "4",
    **{f"measure.{entry}.warmup": "500ms" for entry in (0, 2, 3, 4, 5)},
    **{f"measure.{entry}.duration": "1s" for entry in (0, 3, 5)},
    **{f"measure.{entry}.repetitions": "1" for entry in (0, 2, 3)},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[PatroniLab]:
    with patroni_cluster() as cluster:
        yield cluster


def measured(
    folder: Path, cluster: PatroniLab, study: Path | str, settings: Mapping[str, str]
) -> tuple[StoredRun, str]:
    overrides = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    with start("run", study, *overrides, cwd=folder, environment=cluster.environment) as process:
        ended = finish(process, 240)
    assert ended.code == 0, f"{ended.out}{ended.err}\n{cluster.logs()}"
    return StoredRun(folder / "runs" / "latest"), ended.out


def the_failure(scores: Mapping[str, Any], entry: int) -> dict[str, Any]:
    (failure,) = scores["details"]["failover"][str(entry)]["failures"]
    assert failure["interrupted"]
    assert failure["acknowledged"] > 300
    assert failure["lost"] is not None
    assert failure["indeterminate"] is not None
    return {**failure, "outage_s": failure["service_back_s"] - failure["last_success_s"]}


def actions_of(run: StoredRun) -> list[str]:
    return [event["action"] for event in run.events if event["event"] in ("fault", "action")]


def scores_of(run: StoredRun) -> Mapping[str, Any]:
    assert run.scores is not None
    return run.scores


def test_patronis_restart_and_switchover_are_read_as_they_are(tmp_path: Path, cluster: PatroniLab) -> None:
    run, said = measured(tmp_path, cluster, EXAMPLE, BRIEF_EXAMPLE)
    scores = scores_of(run)
    assert {"F", "C"} <= scores["scores"].keys()
    # Each kind of failure is told, though only the first gives the scores.
    assert {"restart of rw 1", "promote of rw 1"} <= set(re.findall(r"[\w-]+ of rw \d", said))
    assert actions_of(run) == ["restart", "promote"]
    assert the_failure(scores, 1)["lost"] == 0

    # A switchover ends connections; nothing is lost. How long it takes, a fifth of a second or some, is Patroni's.
    switchover = the_failure(scores, 2)
    assert 0 < switchover["outage_s"] < 12
    assert switchover["lost"] == 0

    # Lag is that of streaming replication on one machine, as the read-only front shows it.
    lags = scores["scores"]["C"]["detail"]["lag_ms"]
    for load in ("idle", "busy"):
        for kind in ("insert", "update", "delete"):
            assert lags[load][kind]["unseen"] == 0
            assert lags[load][kind]["count"] > 3
            # It is 0 where a client that waits for a processor hears of its commit after the replica showed it.
            assert 0 <= lags[load][kind]["p50"] < 1000
    assert scores["scores"]["C"]["value"] > 0
    # One reading of the allocation at least, from Patroni's own list.
    assert run.manifest["system"]["resources"]["nodes"] == 2


@pytest.mark.alone
@pytest.mark.survives(
    part="actions",
    fault="a node that crashes under Patroni: it and PostgreSQL are killed together, on the node that takes writes",
    promise="the automatic fail-over is read as long as it is, some 20 s by the cluster's `ttl`; acknowledged commits"
    " are looked for; the run goes on to its end",
    on="a Patroni cluster behind HAProxy",
)
def test_perfect_measures_all_of_a_patroni_cluster(tmp_path: Path, cluster: PatroniLab) -> None:
    hooks = tomllib.loads(EXAMPLE.read_text())["system"]["hooks"]
    settings = {f"system.hooks.{name}": json.dumps(command) for name, command in hooks.items()}
    run, said = measured(tmp_path, cluster, "perfect", {**settings, **BRIEF_PERFECT})
    scores = scores_of(run)
    assert {"P", "E1", "F", "E2", "C", "T"} <= scores["scores"].keys()
    # How fast a small machine that also runs the cluster is again, is not known beforehand.
    assert "R" in scores["scores"] or "the backlog did not drain" in scores["absent"]["R"]
    assert "node-loss of rw 1" in said
    assert actions_of(run) == ["kill", "start"]

    # A crash is found out only when the leader's key is over, of which up to a loop of 5 s has passed already.
    crash = the_failure(scores, 2)
    # How many probes see it is HAProxy's: it refuses them, or it lets one wait and then there is no other meanwhile.
    assert crash["failed_probes"] > 0
    assert TTL_S / 2 < crash["outage_s"] <= scores["scores"]["F"]["value"] < AFTER_S

    # The spare member came, served, and has gone again.
    (added,) = scores["details"]["scaleout"]["5"]["added"]
    assert added["node"] == cluster.environment["CLUSTER_SPARE"]
    assert added["serve_s"] > 0
    assert not (cluster.folder / added["node"] / "patroni.pid").exists()
    assert (run.folder / FILES.report).exists()
