"""Which figures may be set beside the paper's tables: by what a study says, and by no figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.results.beside_paper import reasons, verdicts
from nephoscope.scoring.definitions import PERFECT
from nephoscope.settings.resources import Resources
from nephoscope.study.packaged import find_study
from nephoscope.study.reading import make_study, read_study
from sample_studies import sim_study, throughput, write_study

if TYPE_CHECKING:
    from pathlib import Path

ONE = Resources(vcores=4, memory_gb=16, storage_gb=42)
TWO = ONE.model_copy(update={"nodes": 2})

PAPER: dict[str, dict[str, Any]] = {
    "throughput": {"concurrency": [50, 100, 150, 200], "score": "mean"},
    "elasticity": {"mixes": ["RO", "RW", "WO"], "tau": 110},
    "failover": {"roles": ["rw", "ro"], "concurrency": 150},
    "lag": {},
    "tenancy": {},
    "scaleout": {"nodes": 1},
}


def study_of(measure: dict[str, dict[str, Any]], **tables: Any) -> Any:
    given = {
        "study": {"name": "beside"},
        "system": {"provider": "url", "rw": "sim://"},
        "tenants": {"number": 3, "share": "server", "servers": [{"rw": ["sim://"]}] * 2},
        "score": {"beside_paper": True},
        "measure": [{"evaluator": name, **settings} for name, settings in measure.items()],
    }
    return make_study(given | tables, "test")


def against(
    measure: dict[str, dict[str, Any]], resources: Resources | None = TWO, **tables: Any
) -> dict[str, list[str]]:
    study = study_of(measure, **tables)
    return {name: found for name in PERFECT if (found := reasons(name, study, resources)) is not None}


def test_the_papers_own_procedure_may_be_set_beside_its_tables() -> None:
    found = against(PAPER)
    assert found.pop("E2") == ["the paper says neither the mix nor the concurrency"]
    assert found == {name: [] for name in PERFECT if name != "E2"}


@pytest.mark.parametrize(
    ("evaluator", "changed", "scores", "said"),
    [
        ("throughput", {"score": "peak"}, "P", "best concurrency"),
        ("throughput", {"concurrency": "search"}, "P", "not from 50 to 200"),
        ("throughput", {"concurrency": [50, 100]}, "P", "not from 50 to 200"),
        ("throughput", {"mixes": ["RO"]}, "P", "the mixes are not"),
        ("elasticity", {"tau": "search"}, "E1", "τ is not 110"),
        ("elasticity", {"mixes": ["RW"]}, "E1", "the mixes are not"),
        ("elasticity", {"slot": "30s"}, "E1", "slots are not a minute long"),
        ("elasticity", {"patterns": ["single-peak"]}, "E1", "paper's four"),
        ("failover", {"rate": 500}, "RF", "150 closed sessions"),
        ("failover", {"utilization": 0.6}, "RF", "150 closed sessions"),
        ("failover", {"roles": ["rw"]}, "RF", "not both"),
        ("failover", {"fault": "kill"}, "RF", "the fault is a kill"),
        ("lag", {"loads": [{"name": "idle"}]}, "C", "the loads are not"),
        ("tenancy", {"saturation": 64}, "T", "the patterns are not"),
        ("scaleout", {"nodes": 2}, ["E2"], "more than one read-only node"),
    ],
)
def test_each_difference_from_it_is_told(
    evaluator: str, changed: dict[str, Any], scores: Any, said: str
) -> None:
    found = against(PAPER | {evaluator: PAPER[evaluator] | changed})
    for name in ["E1"] if scores == "E1" else scores:
        assert any(said in reason for reason in found[name]), found[name]
    others = {name for name, why in found.items() if why} - {"E2"}
    assert others == ({"E1"} if scores == "E1" else set(scores)) - {"E2"}


def test_what_all_scores_share_is_told_of_each() -> None:
    found = against(PAPER, workload={"name": "sales", "scale": 10})
    assert {name for name, why in found.items() if why} == {"E1", "E2"}
    found = against(PAPER, workload={"name": "tpcb"})
    assert all(any("the workload is tpcb" in reason for reason in why) for why in found.values())
    found = against(PAPER, cost={"price_book": "example-minimum-billing"})
    assert {name for name, why in found.items() if why} == {"P", "E1", "T", "E2"}
    assert against(PAPER, ONE)["P"] == ["the cost is not of two nodes"]
    shared = {"number": 3, "share": "schema"}
    assert any("all nodes" in reason for reason in against(PAPER, tenants=shared)["T"])
    assert against(PAPER, ONE, tenants=shared)["T"] == []


def test_it_is_told_where_the_study_asks_for_it() -> None:
    fitting, others = verdicts(study_of(PAPER), TWO, PERFECT)
    assert "may be set beside" in fitting["verdict"]
    assert fitting["detail"].startswith("P (Table V), E1 (Figure 6), R (Table VIII)")
    assert others["detail"].startswith("E2 (Table IX): ")
    assert verdicts(study_of(PAPER, score={}), TWO, PERFECT) == []
    # Of what was not measured there is nothing to set beside anything.
    (only,) = verdicts(study_of(PAPER), TWO, ["F", "O"])
    assert only["detail"] == "F (Table VIII)"


def test_perfect_says_what_is_not_the_papers() -> None:
    study = read_study(find_study("perfect"))
    told = {one["verdict"]: one["detail"] for one in verdicts(study, study.system.resources, PERFECT)}
    (others,) = (detail for verdict, detail in told.items() if "not to be set" in verdict)
    for name in (
        "P (Table V)",
        "E1 (Figure 6)",
        "F (Table VIII)",
        "R (Table VIII)",
        "E2 (Table IX)",
        "T (Table VII)",
    ):
        assert name in others
    assert [detail for verdict, detail in told.items() if "may be" in verdict] == ["C (section III-F)"]


def test_a_run_says_it_wherever_its_verdicts_are(tmp_path: Path) -> None:
    study = sim_study(throughput(duration="300ms")) | {"score": {"beside_paper": True}}
    ended = call("run", write_study(tmp_path, study), "--out", tmp_path / "runs")
    assert ended.code == 0
    run = tmp_path / "runs" / "latest"
    texts = (ended.out, (run / "report.html").read_text(), call("report", run, "--format", "markdown").out)
    for text in texts:
        assert "not to be set beside its tables" in text
        assert "the workload is tpcb" in " ".join(text.split())
