"""YCSB's property files become options of the workload ``ycsb``, a mix and an access distribution."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.foreign.ycsb import read_properties
from nephoscope.study.borrowed import Given
from nephoscope.study.reading import read_study

if TYPE_CHECKING:
    from pathlib import Path

# As the workloads of YCSB's distribution are written.
FILE = """# Workload D: Read latest workload
recordcount=2000
operationcount=1000
workload=site.ycsb.workloads.CoreWorkload

readallfields=true
readproportion = 0.95
updateproportion:0
scanproportion 0
insertproportion=0.\\
  05
requestdistribution=latest
"""


def study_of(file: Path, *words: str) -> dict[str, Any]:
    study = read_study(None, (), None, Given("noop://", "ycsb", [str(file)], words))
    return tomllib.loads(study.to_toml())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "workloadd.properties"
    path.write_text(FILE)
    return path


def test_a_property_file_is_a_study(file: Path) -> None:
    words = ["-p", "fieldlength=20", "-p", "maxexecutiontime=5", "-threads", "8", "-s"]
    study = study_of(file, *words)
    assert (study["workload"]["name"], study["workload"]["scale"]) == ("ycsb", 2.0)
    assert study["workload"]["options"] == {
        "fields": 10,
        "field_length": 20,
        "field_length_distribution": "constant",
        "insert_order": "hashed",
        "max_scan_length": 1000,
        "read_all_fields": True,
        "write_all_fields": False,
    }
    (phase,) = study["measure"][0]["phases"]
    assert phase["mix"] == {"read": 0.95, "insert": 0.05}
    assert phase["access"] == {"distribution": "latest-zipfian", "theta": 0.99}
    assert (phase["concurrency"], phase["duration"]) == (8, "5s")


def test_a_target_is_a_rate(file: Path) -> None:
    study = study_of(file, "-target", "300", "-threads", "8", "-p", "requestdistribution=hotspot")
    (phase,) = study["measure"][0]["phases"]
    assert (phase["rate"], phase["arrivals"], study["load"]["sessions"]) == (300, "constant", 8)
    assert phase["access"] == {"distribution": "hotspot", "keys": 0.2, "accesses": 0.8}


def test_a_study_keeps_what_it_says_itself(file: Path) -> None:
    study = file.with_name("study.toml")
    study.write_text(
        'study.name = "mine"\n[system]\nprovider = "url"\nrw = "noop://"\n[workload]\nname = "workloadd.properties"\n'
        'options = { fields = 3 }\n[[measure]]\nevaluator = "throughput"\nmixes = ["A"]\n'
        '[[measure]]\nevaluator = "throughput"\naccess = "uniform"\n'
    )
    found = read_study(study)
    assert (found.workload.name, found.workload.options["fields"]) == ("ycsb", 3)
    one, other = (entry.model_dump() for entry in found.measure)
    assert (one["mixes"], one["access"]["distribution"]) == (["A"], "latest-zipfian")
    assert (other["mixes"], other["access"]["distribution"]) == ([{"read": 0.95, "insert": 0.05}], "uniform")


def test_it_is_loaded_run_and_checked(file: Path, tmp_path: Path) -> None:
    words = ["--ycsb", str(file), "-p", "fieldlength=5", "--url", f"sqlite://{tmp_path}/ycsb.db"]
    ended = call("run", *words, "-p", "maxexecutiontime=1", "--out", tmp_path / "runs")
    assert ended.code == 0, ended.err
    assert "operationcount is not used: a run ends by time" in ended.err
    assert call("check", *words).code == 0


WRONG = {
    "requestdistribution=exponential": ":1: requestdistribution=exponential: allowed are uniform, zipfian, latest",
    "\n\nfieldcount=many": ":3: fieldcount=many: it must be a number from 1 on",
    "fieldcount=1.5": ":1: fieldcount=1.5: it must be a whole number",
    "table=mine": ":1: table=mine: allowed are usertable",
    "fieldlengthdistribution=histogram": ":1: fieldlengthdistribution=histogram: allowed are constant, uniform",
    "dataintegrity=true": ":1: dataintegrity=true: allowed are false",
    "workload=my.Own": ":1: workload=my.Own: allowed are site.ycsb.workloads.CoreWorkload",
    "db.passwd=secret": ":1: db.passwd: not known here; known are ",
    "=3": ":1: expected NAME=VALUE",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_has_no_counterpart_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.properties"
    path.write_text(text)
    ended = call("run", "--ycsb", path, "--url", "noop://")
    assert (ended.code, ended.out) == (2, "")
    assert f"wrong.properties{WRONG[text]}" in ended.err
    assert "secret" not in ended.err


def test_properties_are_read_as_java_writes_them() -> None:
    text = "! a comment\n a = b c \nd:e\nf g\nh\ni=j\\\n   k\n"
    found = read_properties("x", text)
    assert {name: (one.value, one.line) for name, one in found.items()} == {
        "a": ("b c", 2),
        "d": ("e", 3),
        "f": ("g", 4),
        "h": ("", 5),
        "i": ("jk", 6),
    }
