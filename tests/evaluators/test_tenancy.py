"""The evaluator ``tenancy``: what it reads of tenants is what was planted."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from databases import Server, running_server
from nephoscope.evaluators.tenancy.patterns import PATTERNS, contended, pattern_of
from nephoscope.scoring.prices import cost, load_price_book
from nephoscope.settings.resources import Resources
from nephoscope.statistics import jain_index
from nephoscope.store import StoredRun
from sample_studies import RESOURCES, Tables, sim_study, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVICE_S = 0.02
PER_MINUTE = cost(Resources.model_validate(RESOURCES), load_price_book()).per_minute


def tenancy(**settings: Any) -> Tables:
    return {"evaluator": "tenancy", "mix": "SELECT", "patterns": [], "warmup": "500ms", **settings}


def measured(folder: Path, tables: Tables) -> dict[str, Any]:
    study = write_study(folder, tables)
    ended = call("run", study, "--out", folder / "runs")
    assert (ended.code, ended.err) == (0, "")
    scores: dict[str, Any] = json.loads((folder / "runs" / "latest" / "scores.json").read_text())
    assert ("T-Score: TPS per $/min" if "T" in scores["scores"] else "no T-Score: the tenants'") in ended.out
    for name, pattern in scores["details"]["tenancy"]["patterns"].items():
        lines = [line for line in ended.out.splitlines() if line.startswith(f"{name}  ")]
        for line, (tenant, entry) in zip(lines, pattern["tenants"].items(), strict=True):
            assert line.split()[1:3] == [tenant, f"{entry['tps']:,.0f}"]
    return scores


# --- patterns


def test_the_patterns_of_three_tenants_are_the_papers() -> None:
    assert {name: pattern_of(name, 3) for name in PATTERNS} == {
        "high_contention": [[264, 264, 264], [99, 99, 99], [33, 33, 33]],
        "low_contention": [[40, 40, 40], [30, 30, 30], [10, 10, 10]],
        "staggered_high": [[363, 0, 0], [0, 429, 0], [0, 0, 396]],
        "staggered_low": [[10, 0, 0], [0, 20, 0], [0, 0, 30]],
    }


@pytest.mark.parametrize("tenants", [2, 3, 5, 8])
@pytest.mark.parametrize("tau", [20, 330])
def test_contention_stays_above_or_below_saturation_with_any_number_of_tenants(
    tenants: int, tau: int
) -> None:
    high, low = (
        sum(tenant[0] for tenant in pattern_of(name, tenants, tau))
        for name in ("high_contention", "low_contention")
    )
    assert low < tau < high
    assert high == pytest.approx(1.2 * tau, abs=tenants)
    for name in PATTERNS:
        pattern = pattern_of(name, tenants, tau)
        assert len(pattern) == tenants
        assert all(max(tenant) >= 1 for tenant in pattern)
        assert contended(pattern) == ([] if "staggered" in name else [0, 1, 2])


# --- planted truth


def shared_capacity() -> Tables:
    """One database that serves six at a time; it gives each tenant by its share of those who wait."""
    study = sim_study(
        tenancy(custom={"both": [[24], [12]]}, slot="3s"),
        planted=f"latency=constant({SERVICE_S * 1000:g}ms)&capacity=6",
    )
    study["system"]["rw"] = study["system"]["rw"].replace("sim://", "sim://shared")
    study["tenants"] = {"number": 2}
    return study


@pytest.mark.light
def test_two_tenants_of_one_capacity_show_interference_and_unfairness(tmp_path: Path) -> None:
    most = 6 / SERVICE_S
    shares = [2 / 3, 1 / 3]
    faults: list[str] = []
    # Once more where somebody else took the machine: what is planted would be read again.
    for attempt in ("first", "second"):
        folder = tmp_path / attempt
        folder.mkdir()
        scores = measured(folder, shared_capacity())
        found = scores["details"]["tenancy"]["patterns"]["both"]
        expected: dict[str, float] = {"jain": jain_index(shares), "t": math.sqrt(200 * 100) / PER_MINUTE}
        read = {"jain": found["jain"], "t": scores["scores"]["T"]["value"]}
        for tenant, share in zip(("tenant1", "tenant2"), shares, strict=True):
            expected |= {f"{tenant} share": share, f"{tenant} tps": share * most}
            entry = found["tenants"][tenant]
            read |= {f"{tenant} share": entry["share"], f"{tenant} tps": entry["tps"]}
            assert entry["interference"] == pytest.approx(1 - entry["share"])
        faults = [f"{name}: {read[name]}, planted {value}" for name, value in expected.items()
                  if abs(read[name] / value - 1) > 0.03]  # fmt: skip
        if not faults:
            break
    assert not faults
    assert found["sessions"] == [[24], [12]]
    assert scores["scores"]["T"]["detail"]["patterns"] == pytest.approx({"both": read["t"]})
    low, high = scores["scores"]["T"]["ci95"]
    assert low <= read["t"] <= high
    page = (folder / "runs" / "latest" / "report.html").read_text()
    assert re.search(
        r"Beside the others tenant2 keeps 3[2-4]\.?\d* % of the throughput that it has alone", page
    )
    assert "Jain&#39;s fairness index there is 0." in page
    # Latency is each tenant's own: a session gets its turn every 36 / 6 service times.
    assert found["tenants"]["tenant2"]["latency_ms"]["p50"] == pytest.approx(1000 * 6 * SERVICE_S, rel=0.1)


@pytest.mark.light
def test_the_patterns_are_shares_of_a_saturation_that_is_searched_for(tmp_path: Path) -> None:
    searched = {
        "saturation": "search",
        "search": {"most": 8, "duration": "400ms"},
        "slot": "400ms",
        "alone": False,
    }
    study = sim_study(tenancy(patterns=["staggered_high"], **searched))
    study["system"]["rw"] = f"sim://?latency=constant({SERVICE_S * 1000:g}ms)"
    study["tenants"] = {"number": 2, "share": "schema"}
    scores = measured(tmp_path, study)
    found = scores["details"]["tenancy"]
    # Nothing limits it but the search itself.
    assert found["saturation"]["concurrency"] == 8
    assert found["patterns"]["staggered_high"]["sessions"] == [[9, 0], [0, 10]]
    run = StoredRun(tmp_path / "runs" / "latest")
    rows = run.system_metrics.to_pylist()
    ends = [phase.end_s for phase in run.phases if phase.kind == "measure" and phase.labels.get("slot")]
    connected = [row["value"] for row in rows if row["metric"] == "connected" and row["time_s"] in ends]
    assert connected == [9, 10], "who is not loaded gives his places to the others"


@pytest.mark.light
def test_t_is_the_formula_of_planted_tps_and_of_each_servers_cost(tmp_path: Path) -> None:
    def url(places: int) -> str:
        return f"sim://?latency=constant({SERVICE_S * 1000:g}ms)&capacity={places}"

    large = {"vcores": 8, "memory_gb": 32, "storage_gb": 10}
    study = sim_study(
        tenancy(custom={"apart": [[8, 8], [16, 0]], "once": [[0, 8], [16, 0]]}, slot="2s", alone=False)
    )
    study["system"]["rw"] = url(2)
    study["tenants"] = {"number": 2, "share": "server", "servers": [{"rw": url(4), "resources": large}]}
    scores = measured(tmp_path, study)
    first, second = 2 / SERVICE_S, 4 / SERVICE_S
    total = PER_MINUTE + cost(Resources.model_validate(large), load_price_book()).per_minute
    # A tenant's mean is over all slots, those in which it rests included.
    apart = math.sqrt(first * second / 2) / total
    once = math.sqrt(first / 2 * second / 2) / total
    score = scores["scores"]["T"]
    assert score["detail"]["cost_per_minute"] == pytest.approx(total)
    assert score["detail"]["patterns"] == pytest.approx({"apart": apart, "once": once}, rel=0.05)
    assert score["value"] == pytest.approx((apart + once) / 2, rel=0.05)
    found = scores["details"]["tenancy"]["patterns"]["apart"]["tenants"]["tenant2"]
    assert found["slots"][0] == pytest.approx(second, rel=0.05)
    # The sixteen that were in flight at the end of a slot end in the next.
    assert found["slots"][1] * 2 <= 16
    assert (found["share"], scores["details"]["tenancy"]["patterns"]["apart"]["jain"]) == (None, None)


def test_repetitions_are_told_apart_and_evaluators_before_leave_nothing_behind(tmp_path: Path) -> None:
    study = sim_study(
        {"evaluator": "load", "phases": [{"duration": "500ms", "mix": "SELECT", "rate": 200}]},
        tenancy(custom={"mine": [[2], [2]]}, slot="500ms", warmup=0, alone=False, repetitions=3),
        {"evaluator": "load", "phases": [{"duration": "500ms", "mix": "SELECT", "concurrency": 1}]},
        planted="latency=constant(10ms)",
    )
    study["tenants"] = {"number": 2}
    scores = measured(tmp_path, study)
    score = scores["scores"]["T"]
    assert (score["repetitions"], len(scores["points"])) == (3, 5)
    assert score["ci95"] is not None
    run = StoredRun((tmp_path / "runs" / "latest").resolve())
    last = [phase.number for phase in run.phases if phase.kind == "measure"][-1]
    rows = zip(
        *(run.intervals.column(name).to_pylist() for name in ("phase", "tenant", "committed")), strict=True
    )
    by_tenant = {"tenant1": 0, "tenant2": 0}
    for phase, tenant, committed in rows:
        if phase == last:
            by_tenant[tenant] += committed
    # What was in flight when the last evaluator began may still end in its phase.
    assert by_tenant["tenant1"] > 10
    assert by_tenant["tenant2"] <= 2


def test_t_is_absent_where_resources_are_not_known(tmp_path: Path) -> None:
    study = sim_study(tenancy(custom={"mine": [[1], [1]]}, slot="300ms", warmup=0, alone=False))
    del study["system"]["resources"]
    study["tenants"] = {"number": 2}
    scores = measured(tmp_path, study)
    assert "resources are not declared" in scores["absent"]["T"]
    assert scores["details"]["tenancy"]["patterns"]["mine"]["t"] is None


# --- what is wrong


@pytest.mark.parametrize(
    ("settings", "number", "message"),
    [
        ({}, 2, "measure.0: it needs at least one pattern"),
        (
            {"custom": {"mine": [[1]]}},
            1,
            "measure.0: tenancy needs two tenants at least; tenants.number is 1",
        ),
        (
            {"custom": {"mine": [[1], [1], [1]]}},
            2,
            "measure.0.custom.mine: it has 3 tenants, and tenants.number is 2",
        ),
        ({"custom": {"mine": [[1], [1, 2]]}}, 2, "every tenant of mine needs the same number of slots"),
        ({"custom": {"mine": [[0], [0]]}}, 2, "nobody has a session in mine"),
        ({"custom": {"low_contention": [[1], [1]]}}, 2, "low_contention is the name of a pattern"),
        ({"patterns": ["contention"]}, 2, "measure.0.patterns.0: input should be 'high_contention'"),
        ({"patterns": ["low_contention"] * 2}, 2, "a pattern is there twice"),
        ({"patterns": ["low_contention"], "slot": 0}, 2, "a slot needs a length above 0"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_touched(
    tmp_path: Path, settings: dict[str, Any], number: int, message: str
) -> None:
    study = {**sim_study(tenancy(**settings)), "tenants": {"number": number}}
    ended = call("run", write_study(tmp_path, study), "--out", tmp_path / "runs")
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert not (tmp_path / "runs").exists()


# --- a real server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


@pytest.mark.parametrize("share", ["schema", "database"])
def test_tenants_of_a_real_server_are_measured_apart(server: Server, tmp_path: Path, share: str) -> None:
    study: Tables = {
        "study": {"name": "real"},
        "system": {"provider": "url", "rw": server.new_database(), "resources": RESOURCES},
        "tenants": {"number": 2, "share": share, "prefix": f"real_{share}"},
        "workload": {"name": "sales", "scale": 0.002},
        "load": {"interval": "100ms"},
        "measure": [tenancy(mix="RW", custom={"both": [[2, 2], [1, 0]]}, slot="1s")],
    }
    scores = measured(tmp_path, study)
    found = scores["details"]["tenancy"]["patterns"]["both"]
    first, second = found["tenants"]["tenant1"], found["tenants"]["tenant2"]
    assert first["tps"] > 0
    assert second["slots"][0] > 0
    # What was in flight at the end of a slot ends in the next.
    assert second["slots"][1] <= 2
    assert 0 < found["jain"] <= 1
    assert second["interference"] < 1
    t = scores["scores"]["T"]
    assert t["value"] == pytest.approx(math.sqrt(first["tps"] * second["tps"]) / PER_MINUTE)
    checked = json.loads(call("check", tmp_path / "study.toml", "--json").out)
    assert {one["tenant"] for one in checked} == {"tenant1", "tenant2"}
    assert all(one["verdict"] != "broken" for one in checked)
