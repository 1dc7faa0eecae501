"""`nephoscope score`: the paper's tables from their figures, and what becomes of figures that are wrong or missing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from test_outputs import check_golden, printed

from commands import call

FIGURES = Path(__file__).parents[2] / "docs" / "figures"

# Table V: the cost per minute, and P of RO, RW, WO and their mean, as printed.
TABLE_V = {
    "AWS RDS": ("0.0437", (505538, 283350, 346174, 378354)),
    "CDB1": ("0.0512", (383837, 123620, 174070, 227176)),
    "CDB2": ("0.0538", (189939, 109292, 142282, 147238)),
    "CDB3": ("0.0443", (403273, 213922, 285425, 300873)),
    "CDB4": ("0.0797", (464181, 173773, 284335, 307429)),
}
# Table VII: T of the patterns (a) to (d) and their mean, as printed, where its columns are not rounded harder.
TABLE_VII = {
    "AWS RDS": ("0.0849", (158702, 79673, 62611, 21488, 80619)),
    "CDB1": ("0.0961", (101991, 58412, 33515, 16903, 52705)),
    "CDB4": ("0.1762", (116365, 109770, 40253, 34831, 75305)),
}
# Table IX: O and O* as printed. Those of CDB1 (13.48, 11.53) and CDB4 (17.70, 15.87) do not follow from its own inputs.
TABLE_IX = {"AWS RDS": (15.82, 8.18), "CDB2": (13.64, 10.17), "CDB3": (15.92, 16.19)}
TABLE_IX_INPUTS_SAY = {"CDB1": 13.54, "CDB4": 17.85, "AWS RDS": 15.84}
TABLE_IX_INPUTS_SAY_OF_STARS = {"CDB1": 11.59, "CDB4": 16.02}

ALL = """
[method]
delta = 500
[cost]
starred = "example-minimum-billing"
[[system]]
name = "one"
resources = { vcores = 4, memory_gb = 16, storage_gb = 100, iops = 3000, network_gbps = 10 }
held = "1m"
throughput = [
  { mix = "RO", concurrency = 10, tps = [900, 1100] }, { mix = "RO", concurrency = 20, tps = [1900, 2100] },
  { mix = "RW", concurrency = 10, tps = [400, 600] },
]
elasticity = [{ slot_tps = [0, 900, 0], allocation = [
  { duration = "1m", vcores = 1, memory_gb = 2, storage_gb = 0 },
  { duration = "9m", vcores = 4, memory_gb = 8, storage_gb = 0, iops = 1000 },
] }]
failures = [{ role = "rw", failover = "2s", recovery = "3s" }, { role = "ro", failover = "500ms", recovery = 0 }]
tps_by_nodes = [1000, 1800, 2200]
lag = { insert = "1ms", update = "2ms", delete = "3ms", replicas = 2 }
tenants.resources = [
  { vcores = 2, memory_gb = 4, storage_gb = 10 }, { vcores = 1, memory_gb = 2, storage_gb = 10 },
]
tenancy = [{ tps = [100, 400] }]
"""


def scored(file: Path) -> dict[str, dict[str, Any]]:
    systems: list[dict[str, Any]] = json.loads(printed(call("score", file, "--json")))
    return {system["name"]: system for system in systems}


def written(folder: Path, text: str) -> Path:
    file = folder / "figures.toml"
    file.write_text(text)
    return file


# --- the paper's tables


def test_table_v_is_reproduced() -> None:
    found = scored(FIGURES / "cloudybench-table-5.toml")
    assert list(found) == list(TABLE_V)
    for name, (cost, (*mixes, mean)) in TABLE_V.items():
        system = found[name]
        assert f"{system['cost']['per_minute']:.4f}" == cost
        score = system["scores"]["P"]
        # A cost of three digits leaves 0.00005 / 0.0437 open.
        assert [mix["p"] for mix in score["detail"]["mixes"].values()] == pytest.approx(mixes, rel=1.2e-3)
        assert score["value"] == pytest.approx(mean, rel=1.2e-3)


def test_table_vii_is_reproduced() -> None:
    found = scored(FIGURES / "cloudybench-table-7.toml")
    costs = {name: system["scores"]["T"]["detail"]["cost_per_minute"] for name, system in found.items()}
    for name, (cost, (*patterns, mean)) in TABLE_VII.items():
        score = found[name]["scores"]["T"]
        assert f"{costs[name]:.4f}" == cost
        assert list(score["detail"]["patterns"].values()) == pytest.approx(patterns, rel=3e-3)
        assert score["value"] == pytest.approx(mean, rel=3e-3)
    assert (f"{costs['CDB2']:.2f}", f"{costs['CDB3']:.3f}") == ("0.06", "0.058")


def test_table_ix_is_reproduced_where_its_own_inputs_give_it() -> None:
    found = scored(FIGURES / "cloudybench-table-9.toml")
    for name, printed_values in TABLE_IX.items():
        values = [found[name]["scores"]["O"]["value"], found[name]["starred"]["scores"]["O"]["value"]]
        assert values == pytest.approx(printed_values, abs=0.021)
    for name, value in TABLE_IX_INPUTS_SAY.items():
        assert round(found[name]["scores"]["O"]["value"], 2) == value
    for name, value in TABLE_IX_INPUTS_SAY_OF_STARS.items():
        assert round(found[name]["starred"]["scores"]["O"]["value"], 2) == value
    # Table VIII: means over the failures of RW and RO.
    times = {name: (one["scores"]["F"]["value"], one["scores"]["R"]["value"]) for name, one in found.items()}
    assert times == {
        "AWS RDS": (15, 24),
        "CDB1": (6, 9),
        "CDB2": (6, 27),
        "CDB3": (9, 18),
        "CDB4": (2.5, 3.5),
    }


def test_the_same_system_has_starred_scores_by_every_vendors_prices() -> None:
    found = scored(FIGURES / "vendors.toml")
    assert len(found) == 8
    plain = {json.dumps(system["scores"]) for system in found.values()}
    assert len(plain) == 1, "unit costs are the same for all"
    for system in found.values():
        assert set(system["starred"]["scores"]) == {"P", "E1", "T", "O"}
        assert "check before use" in system["starred"]["notice"]
    # Two db.m6g.xlarge at 0.318, 84 GB at 0.115 a month; a large, a 2xlarge and a large for ten minutes each; 12 vCores
    # in the 16 of a db.m6g.4xlarge at 1.272, and 126 GB.
    rds = {name: score["value"] for name, score in found["RDS"]["starred"]["scores"].items()}
    assert rds["P"] == pytest.approx(15000 / ((2 * 0.318 + 84 * 0.115 / 730) / 60))
    assert rds["E1"] == pytest.approx(3000 / ((0.159 + 0.636 + 0.159) / 6))
    assert rds["T"] == pytest.approx(3000 / ((1.272 + 126 * 0.115 / 730) / 60))
    # An hour of 8 vCores; half an hour of 8 vCores is one, and so is one of 12.
    pool = {
        name: score["value"] for name, score in found["Azure SQL, elastic pool"]["starred"]["scores"].items()
    }
    storage = 0.25 / 730 / 60
    assert pool["E1"] == pytest.approx(3000 / (8 * 0.42))
    assert pool["P"] == pytest.approx(15000 / (8 * 0.42 / 30 + 42 * storage))
    assert pool["T"] == pytest.approx(3000 / (12 * 0.42 / 30 + 126 * storage))


def test_golden_scores_by_vendors_prices() -> None:
    check_golden("score-vendors", printed(call("score", FIGURES / "vendors.toml")))


def test_what_is_used_has_to_be_said(tmp_path: Path) -> None:
    text = (FIGURES / "vendors.toml").read_text().replace("usage = { transfer_gb_per_hour = 0 }\n", "")
    found = scored(written(tmp_path, text))
    assert "nobody has said how much is used" in found["RDS"]["starred"]["absent"]["P"]
    assert "P" in found["Aurora, serverless"]["starred"]["scores"]


@pytest.mark.parametrize("table", [5, 7, 9])
def test_golden_tables_of_the_paper(table: int) -> None:
    file = FIGURES / f"cloudybench-table-{table}.toml"
    check_golden(f"score-table-{table}", printed(call("score", file)))


def test_golden_markdown() -> None:
    file = FIGURES / "cloudybench-table-9.toml"
    check_golden("score-markdown", printed(call("score", file, "--format", "markdown")))


# --- all the figures of a system


def test_every_score_is_made_of_its_figures(tmp_path: Path) -> None:
    system = scored(written(tmp_path, ALL))["one"]
    scores = {name: score["value"] for name, score in system["scores"].items()}
    assert (system["absent"], system["starred"]["absent"]) == ({}, {})
    minute = (4 * 0.1847 + 16 * 0.0095 + 100 * 0.000853 + 30 * 0.00015 + 10 * 0.07696) / 60
    assert scores["P"] == pytest.approx((1500 + 500) / 2 / minute)
    window = (1 * 0.1847 + 2 * 0.0095) / 60 + (4 * 0.1847 + 8 * 0.0095 + 10 * 0.00015) * 9 / 60
    assert scores["E1"] == pytest.approx(300 / window)
    assert (scores["F"], scores["R"]) == (1.25, 1.5)
    assert (scores["E2"], scores["C"]) == pytest.approx((1.2, 0.003))
    tenants = (3 * 0.1847 + 6 * 0.0095 + 20 * 0.000853) / 60
    assert scores["T"] == pytest.approx(200 / tenants)
    product = scores["P"] * scores["T"] * scores["E1"] * scores["E2"]
    assert scores["O"] == pytest.approx(math.log10(product / (1.5 * 1.25 * 0.003)))
    assert system["scores"]["P"]["repetitions"] == 2
    assert system["scores"]["P"]["ci95"] is not None


def test_starred_scores_bill_for_minimum_periods(tmp_path: Path) -> None:
    system = scored(written(tmp_path, ALL))["one"]
    starred = {name: score["value"] for name, score in system["starred"]["scores"].items()}
    assert set(starred) == {"P", "E1", "T", "O"}
    # One minute is billed as ten, storage as sixty, the network as it is.
    ten, hour = 10 / 60, 1.0
    bill = (4 * 0.1847 + 16 * 0.0095 + 30 * 0.00015) * ten + 100 * 0.000853 * hour + 10 * 0.07696 / 60
    assert starred["P"] == pytest.approx(1000 / bill)
    tenants = (3 * 0.1847 + 6 * 0.0095) * ten + 20 * 0.000853 * hour
    assert starred["T"] == pytest.approx(200 / tenants)
    # Each stretch of the allocation is billed for ten minutes, and of IOPS there is one stretch with any.
    window = (5 * 0.1847 + 10 * 0.0095 + 10 * 0.00015) * ten
    assert starred["E1"] == pytest.approx(300 / window)


def test_peak_takes_the_best_concurrency(tmp_path: Path) -> None:
    text = ALL.replace("delta = 500", 'delta = 500\np = "peak"')
    mixes = scored(written(tmp_path, text))["one"]["scores"]["P"]["detail"]["mixes"]
    assert {mix: entry["tps"] for mix, entry in mixes.items()} == {"RO": 2000, "RW": 500}


def test_costs_may_be_given_in_place_of_resources(tmp_path: Path) -> None:
    text = """
    [[system]]
    name = "given"
    cost_per_minute = 0.5
    starred_cost_per_minute = 2
    throughput = [{ tps = 100 }]
    elasticity = [{ slot_tps = [30, 90], cost = 2, starred_cost = 4 }]
    tenants = { costs_per_minute = [0.1, 0.3], starred_costs_per_minute = [8] }
    tenancy = [{ pattern = "a", tps = [4, 16] }, { pattern = "b", tps = [16, 16] }]
    """
    system = scored(written(tmp_path, text))["given"]
    values = {name: score["value"] for name, score in system["scores"].items()}
    assert values == pytest.approx({"P": 200, "E1": 30, "T": 30})
    starred = {name: score["value"] for name, score in system["starred"]["scores"].items()}
    assert starred == pytest.approx({"P": 50, "E1": 15, "T": 1.5})


def test_given_intervals_reach_o(tmp_path: Path) -> None:
    entries = ", ".join(
        f"{name} = {{ value = 1, ci95 = [0.5, 2] }}" for name in ("P", "E1", "R", "F", "E2", "C", "T")
    )
    text = f'[method.weights]\nP = 2\n[[system]]\nname = "x"\nscores = {{ {entries} }}\n'
    score = scored(written(tmp_path, text))["x"]["scores"]["O"]
    # Where nothing is known of how the seven go together, the ends add up; P counts twice.
    half = math.log10(2) * (6 + 2)
    assert (score["value"], *score["ci95"]) == pytest.approx((0, -half, half))


# --- what is missing


def test_golden_absent_scores_keep_their_reasons(tmp_path: Path) -> None:
    text = """
    [cost]
    starred = "example-minimum-billing"
    [[system]]
    name = "bare"
    absent = { T = "the offer has one tenant" }
    [[system]]
    name = "crashed"
    resources = { vcores = 1, memory_gb = 1, storage_gb = 1 }
    throughput = [{ tps = 100 }]
    failures = [{ role = "rw", failover = "2s", recovery = "never" }, { role = "ro", failover = "never" }]
    tps_by_nodes = [100]
    tenants.costs_per_minute = [1]
    tenancy = [{ tps = [100] }]
    """
    check_golden("score-absent", printed(call("score", written(tmp_path, text))))


def test_r_is_absent_where_no_recovery_was_taken(tmp_path: Path) -> None:
    text = '[[system]]\nname = "x"\nfailures = [{ failover = "2s" }]'
    system = scored(written(tmp_path, text))["x"]
    assert system["scores"]["F"]["value"] == 2
    assert system["absent"]["R"] == "the file does not have the recovery of every failure"


# --- what is wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tps = 1", ".tps: there is no such key; allowed are name, resources"),
        (
            "throughput = [{ tps = -1 }]",
            ".throughput.0.tps.0: input should be greater than or equal to 0; it is -1",
        ),
        (
            "throughput = [{ tps = 'fast' }]",
            ".throughput.0.tps.0: input should be a valid number; it is 'fast'",
        ),
        ("throughput = [{ tps = [1, 2] }, { tps = 1 }]", ": every entry of throughput needs the same number"),
        ("lag = { insert = '1 parsec', update = 0, delete = 0 }", ".lag.insert: expected a length of time"),
        ("failures = [{ failover = 'soon' }]", ".failures.0.failover: expected a length of time"),
        ("elasticity = [{ slot_tps = [1] }]", ".elasticity.0: it needs cost or allocation, and not both"),
        ("scores.P = 1\nthroughput = [{ tps = 1 }]", ": scores.P and the figures that P is made of exclude"),
        ("scores.P = 'much'", ".scores.P.value: input should be a valid number; it is 'much'"),
        ("scores.C = { value = 1, ci95 = [2, 1] }", ".scores.C.ci95: the low end stands first"),
        ("absent.P = 'why'\nscores.P = 1", ": absent.P says that there is no P"),
        (
            "tenants.costs_per_minute = [1, 2]\ntenancy = [{ tps = [1, 2, 3] }]",
            ": tenants.costs_per_minute has 2 entries for 3 tenants",
        ),
    ],
)
def test_a_wrong_figure_is_one_message(tmp_path: Path, text: str, message: str) -> None:
    ended = call("score", written(tmp_path, f"[[system]]\nname = 'x'\n{text}"))
    assert (ended.code, ended.out) == (2, "")
    assert f"figures.toml: system.0{message}" in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "this is not TOML"),
        ("", "system: it needs at least one [[system]]"),
        ("[study]\n[[system]]\nname = 'x'", "study: there is no such table; tables are cost, method, system"),
        ("[[system]]", "system.0.name: it is missing"),
        ("[[system]]\nname = 'x'\n[[system]]\nname = 'x'", "system: 'x' is there more than once"),
        ("[method]\nweights = { Q = 1 }\n[[system]]\nname = 'x'", "method.weights.Q"),
        ("[cost]\nprice_book = 'none'\n[[system]]\nname = 'x'", "price book 'none': not built in"),
        ("[cost]\nstarred = './none.toml'\n[[system]]\nname = 'x'", "none.toml: cannot be read"),
    ],
)
def test_a_wrong_file_is_one_message(tmp_path: Path, text: str, message: str) -> None:
    ended = call("score", written(tmp_path, text))
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.startswith("nephoscope: ")
    assert len(ended.err.splitlines()) == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = call("score", tmp_path / "none.toml")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"nephoscope: {tmp_path}/none.toml: No such file or directory\n"
