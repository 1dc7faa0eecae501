"""The tables of stored runs: as they are shown, as Markdown, and what a notebook reads from their files."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from report_evaluated import FAILURES
from report_pages import html, run

from nephoscope import _engine
from nephoscope.cli.printing import run_markdown
from nephoscope.errors import InputError
from nephoscope.results import side_by_side
from nephoscope.results.tables import tables_of
from nephoscope.tables.columns import RunFigures
from nephoscope.tables.model import Column, Table, arrow, check_folder, markdown, terminal, write_tables
from nephoscope.tables.numbers import MINUS

if TYPE_CHECKING:
    from collections.abc import Mapping

GOLDEN = Path(__file__).parent / "golden"


def figures(name: str, **more: Any) -> RunFigures:
    given = run(name)
    return RunFigures(name, given, {**(given.scores or {}), **more})


def tables(*runs: RunFigures) -> Mapping[str, Table]:
    return {table.name: table for table in tables_of(runs)}


@pytest.mark.parametrize("name", ["failover", "lag", "scaleout", "parameters"])
def test_golden_markdown(name: str) -> None:
    text = run_markdown(figures(name))
    file = GOLDEN / f"{name}.md"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["lag", "scaleout", "parameters"])
def test_an_interval_is_the_same_on_a_terminal_in_markdown_and_in_the_report(name: str) -> None:
    shown = figures(name)
    table = tables(shown)["scores"] if name != "parameters" else tables(shown)["sweeps"]
    place = [column.name for column in table.shown].index("value" if name != "parameters" else "tps")
    cells = [row[place] for row in table.cells]
    told = [cell.partition(" ")[2] for cell in cells if "±" in cell or "…" in cell]
    assert told
    written = run_markdown(shown)
    report = html(name).replace(MINUS, "-")
    for one in told:
        assert f" {one} |" in written
        assert f">{one}<" in report


def test_failures_have_their_times_and_errors_by_class() -> None:
    found = tables(figures("failover"))["failures"]
    first, unnoticed, endless = arrow(found).to_pylist()
    assert (first["outage_s"], first["recovery_s"], first["lost"]) == (2.0, 3.0, 0)
    assert (first["errors_connection_lost"], first["errors_read_only"], first["errors_deadlock"]) == (
        40,
        3,
        0,
    )
    assert (unnoticed["outage_s"], unnoticed["interrupted"]) == (0.0, False)
    assert (endless["outage_s"], endless["recovery_s"], endless["lost"]) == (None, None, None)
    assert [row[1] for row in found.cells] == ["2 s", "no interruption", "did not end"]
    assert {f"errors_{name}" for name in _engine.error_classes()} <= set(first)


def test_stale_reads_have_a_row_for_each_time() -> None:
    rows = arrow(tables(figures("lag"))["stale_reads"]).to_pylist()
    shares = {(row["load"], row["after_ms"]): row["stale"] for row in rows}
    assert shares["even", 10.0] == pytest.approx(0.9)
    assert shares["idle", 2.0] == pytest.approx(0.1)
    assert all(row["stale_ci95_low"] <= row["stale"] <= row["stale_ci95_high"] for row in rows)


def test_rows_of_several_runs_stand_in_one_table() -> None:
    both = tables(figures("failover"), figures("lag"))
    assert {row["run"] for row in both["scores"].rows} == {"failover", "lag"}
    assert both["failures"].headings[0] == "run"
    assert tables(figures("lag"))["lags"].headings[0] == "beside"
    assert "failures" not in tables(figures("lag"))


def test_every_table_can_be_read_again(tmp_path: Path) -> None:
    made = tables_of([figures("failover"), figures("lag")])
    files = write_tables(made, tmp_path / "kept")
    assert sorted(file.name for file in files) == sorted(
        f"{table.name}.{form}" for table in made for form in ("csv", "parquet")
    )
    for table in made:
        parquet = pq.read_table(tmp_path / "kept" / f"{table.name}.parquet")
        assert parquet.equals(arrow(table))
        with (tmp_path / "kept" / f"{table.name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == parquet.column_names
        assert len(rows) == parquet.num_rows
        for kept, row in zip(rows, parquet.to_pylist(), strict=True):
            for column in table.columns:
                value = row[column.name]
                if column.kind == "number" and value is not None:
                    assert float(kept[column.name]) == value
                elif value is None:
                    assert kept[column.name] == ""


@pytest.mark.parametrize("name", ["failover", "lag", "scaleout", "parameters"])
def test_every_column_says_what_it_means(name: str) -> None:
    for table in tables_of([figures(name)]):
        names = [column.name for column in table.columns]
        assert len(names) == len(set(names))
        for field in arrow(table).schema:
            assert (field.metadata or {})[b"meaning"].endswith(b"."), (table.name, field.name)


def test_markdown_keeps_texts_from_meaning_anything() -> None:
    table = Table("x", "a|b", [Column("c", "text", heading="P*")], [{"c": "<b>\n|"}])
    assert markdown([table], ["*"]) == "**a\\|b**\n\n| P\\* |\n|---|\n| \\<b> \\| |\n\n- \\*\n"


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="it is no folder"):
        check_folder(tmp_path / "file")
    with pytest.raises(InputError, match="tables cannot be written"):
        write_tables([], tmp_path / "file" / "below")


def test_the_terminal_has_the_foot_below_the_rows() -> None:
    columns = [Column("c", "text", heading="c"), Column("n", heading="n")]
    made = terminal(Table("x", "[why]", columns, [{"c": "a", "n": 1234.5}], ["mean", "2"]))
    assert made.title == "[why]"
    assert [[str(cell) for cell in row] for row in made.rows] == [["a", "1,234"], ["mean", "2"]]


def test_fail_over_is_summed_up_by_run_and_failure() -> None:
    details = {"failover": {"0": {"fault": "kill", "late_s": 0.1, "failures": [FAILURES[0], FAILURES[1]]}}}
    good = figures("failover", details=details)
    table = tables(good, figures("failover"), figures("lag"))["failover"]
    assert table.headings == ["run", "failure", "times", "F", "median F", "R", "median R", "lost commits"]
    assert table.cells == [
        ["failover", "kill of rw", "2", "1 (0 … 14) s", "1 s", "1.5 (0 … 21) s", "1.5 s", "2"],
        ["failover", "crash of rw", "3", "not seen in 1", "–", "not seen in 1", "–", "2"],  # noqa: RUF001
    ]


def test_a_recovery_that_is_not_told_apart_is_less_than_its_resolution() -> None:
    told = [{**FAILURES[0], "tps_back_s": back, "recovery_resolution_s": 0.5} for back in (14.2, 14.0, 15.5)]
    found = tables(figures("failover", details={"failover": {"0": {"fault": "kill", "failures": told}}}))
    assert [row[2] for row in found["failures"].cells] == ["< 500 ms", "< 500 ms", "1.5 s"]
    # Two lie between 0 and half a second: the middle counts, and the width is in the interval.
    (summed,) = found["failover"].rows
    assert summed["r_s"] == pytest.approx(2 / 3)
    assert summed["r_s_ci95_high"] > 1.5


def test_what_interrupted_the_service_later_has_a_table_of_its_own() -> None:
    later = {"node": "rw1", "began_s": 17.0, "back_s": 19.5, "failed_probes": 500, "late_probes": 1}
    told = [{**FAILURES[0], "later": [later]}, FAILURES[1]]
    found = tables(figures("failover", details={"failover": {"0": {"fault": "kill", "failures": told}}}))
    assert found["interruptions"].cells == [["kill of rw 1", "rw1", "5 s", "2.5 s", "500", "1"]]
    assert [row["later"] for row in found["failures"].rows] == [1, 0]
    assert "interruptions" not in tables(figures("failover"))


def test_tables_of_several_runs_stand_in_the_order_of_the_paper() -> None:
    tenancy = {
        "tenants": ["a"],
        "share": "schema",
        "patterns": {
            "mine": {
                "t": None,
                "jain": None,
                "tenants": {"a": {"tps": 5.0, "share": None, "latency_ms": None}},
            }
        },
    }
    runs = [figures("failover", details={"tenancy": tenancy}), figures("lag")]
    assert [table.name for table in side_by_side.paper_tables(runs)] == ["tenants", "lags", "overall"]
