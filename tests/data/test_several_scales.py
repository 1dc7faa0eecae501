"""Several scale factors on one real database: each run has the data of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commands import call
from databases import query, running_server, study_of
from nephoscope.store import StoredRun
from sample_studies import phases, write_study

if TYPE_CHECKING:
    from pathlib import Path

CUSTOMERS = 300_000
SCALES = (0.002, 0.001)


def rows_loaded(run: Path) -> Any:
    return StoredRun(run).manifest["workload"]["scale"] * CUSTOMERS


def test_each_run_loads_the_data_of_its_scale_factor(tmp_path: Path) -> None:
    measure = phases({"duration": "500ms", "mix": "RO", "concurrency": 2})
    with running_server() as server:
        url = server.new_database()
        study = study_of(url, measure, scales=list(SCALES), load="always")
        del study["workload"]["scale"]
        file = write_study(tmp_path, study)
        ended = call("run", file, "--out", tmp_path / "runs")
        assert (ended.code, ended.err) == (0, "")
        runs = [run for run in sorted((tmp_path / "runs").iterdir()) if not run.is_symlink()]
        assert [StoredRun(run).manifest["workload"]["scale"] for run in runs] == list(SCALES)
        assert query(url, "SELECT count(*) FROM customer") == [[str(round(rows_loaded(runs[-1])))]]
        # The data is that of the last: the first alone is measured again, and loads its own.
        (runs[0] / "study.toml").write_text("")
        again = call("run", file, "--out", tmp_path / "runs", "--resume")
        assert again.code == 0
        assert again.err.startswith("real-sf0.001 has been measured already")
        assert query(url, "SELECT count(*) FROM customer") == [["600"]]
