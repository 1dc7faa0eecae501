"""What is written is read again: lengths of time, and whole studies as the run directory keeps them."""

from __future__ import annotations

import contextlib
import math
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephoscope.errors import InputError
from nephoscope.settings.units import format_duration, parse_duration
from nephoscope.study.packaged import find_study
from nephoscope.study.reading import make_study, read_study
from sample_studies import RESOURCES, Tables, sim_study, write_study

# --- lengths of time


@given(st.floats(0, 1e8, exclude_max=True))
def test_a_length_of_time_is_the_same_number_when_it_is_read_again(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.integers(0, 27000), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_the_parts_of_a_length_of_time_add_up(h: int, m: int, s: int, ms: int) -> None:
    total = (3600 * h + 60 * m + s) * 1000 + ms
    assert (
        parse_duration(f"{h}h{m}m{s}s{ms}ms")
        == parse_duration(f" {h} h {m}min {s}s {ms} ms ")
        == total / 1000
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250ms", 0.25), ("30s", 30), ("1.5m", 90), ("2h", 7200), ("10us", 1e-5), ("0s", 0), (7, 7), (0.5, 0.5)],
)
def test_lengths_of_time_are_read_as_they_are_written(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "s", "5 days", "-5s", "5s-", "1e3s", "٣s", "5 s s", "1..5s", True, [], {}, -1, 1e8, math.nan],
)
def test_what_is_no_length_of_time_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="length of time"):
        parse_duration(text)


@given(st.text())
def test_any_text_is_a_length_of_time_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert 0 <= parse_duration(text) < 1e8


# --- studies

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}", fullmatch=True)
times = st.floats(1e-3, 1e5)
counts = st.integers(1, 100)
levels = st.floats(0, 1e5) | st.fixed_dictionaries(
    {"from": st.floats(0, 1e5), "to": st.floats(0, 1e5)}, optional={"over": times}
)
mixes = (
    st.sampled_from(["SELECT", "15:5:80"])
    | st.dictionaries(names, st.floats(0, 1e12, exclude_max=True), max_size=4)
)  # fmt: skip
accesses = (
    st.sampled_from(
        ["uniform", "latest-10", "zipfian", "zipfian-0.5", "latest-zipfian-0.5", "hotspot-0.2-0.8"]
    )
    | st.fixed_dictionaries({"distribution": st.just("zipfian"), "theta": st.floats(0, 10)})
    | st.fixed_dictionaries({"distribution": st.just("latest"), "k": counts})
)
thinks = times | st.just("workload") | st.fixed_dictionaries({"law": st.just("exponential"), "time": times})
sweeps = st.fixed_dictionaries(
    {"evaluator": st.just("throughput")},
    optional={
        "mixes": st.lists(mixes, min_size=1, max_size=3, unique_by=repr),
        "concurrency": st.just("search") | st.lists(counts, min_size=1, max_size=4, unique=True),
        "search": st.fixed_dictionaries({}, optional={"gain": st.floats(0.001, 0.999), "duration": times}),
        "warmup": times,
        "duration": times,
        "repetitions": counts,
        "access": accesses,
        "think": thinks,
        "slo": times,
        "score": st.sampled_from(["peak", "mean"]),
    },
)


def phases_of(kind: str) -> st.SearchStrategy[list[Tables]]:
    """Phases of a closed or an open load."""
    only: dict[str, dict[str, st.SearchStrategy[Any]]] = {
        "concurrency": {"think": thinks},
        "rate": {"arrivals": st.sampled_from(["constant", "poisson"])},
    }
    own: dict[str, st.SearchStrategy[Any]] = {"access": accesses, "name": st.just("é phase"), **only[kind]}
    first = st.fixed_dictionaries({"duration": times, kind: levels, "mix": mixes}, optional=own)
    later = st.fixed_dictionaries({"duration": times}, optional={kind: levels, "mix": mixes, **own})
    courses = st.tuples(first, st.lists(later, max_size=2)).map(lambda both: [both[0], *both[1]])
    return courses.filter(lambda phases: any(_has_load(phase.get(kind)) for phase in phases))


def _has_load(level: float | Tables | None) -> bool:
    return max(level["from"], level["to"]) > 0 if isinstance(level, dict) else bool(level)


def streams_of(kind: str) -> st.SearchStrategy[Tables]:
    """Streams of a closed or an open load."""
    return phases_of(kind).map(lambda phases: _without(phases[0], "duration", "name"))


def _without(tables: Tables, *names: str) -> Tables:
    return {name: value for name, value in tables.items() if name not in names}


streams = st.lists(streams_of("concurrency") | streams_of("rate"), min_size=1, max_size=3).filter(
    lambda streams: any(_has_load(stream.get("concurrency", stream.get("rate"))) for stream in streams)
)
mixed = st.lists(st.fixed_dictionaries({"duration": times, "streams": streams}), min_size=1, max_size=2)
courses = st.fixed_dictionaries(
    {"evaluator": st.just("load"), "phases": phases_of("concurrency") | phases_of("rate") | mixed},
    optional={"repetitions": counts, "slo": times},
)
options = st.dictionaries(
    names, st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9) | st.text()
)
studies = st.fixed_dictionaries(
    {
        "study": st.fixed_dictionaries(
            {"name": names}, optional={"description": st.text(), "seed": st.integers(0, 2**63 - 1)}
        ),
        "system": st.fixed_dictionaries(
            {
                "provider": st.just("url"),
                "rw": st.sampled_from(
                    ["sim://", "${DATABASE_URL}", ["noop://", "postgresql://u:${PASSWORD}@h/d"]]
                ),
            },
            optional={"ro": st.just(["sim://ro"]), "resources": st.just(RESOURCES)},
        ),
        "measure": st.lists(sweeps | courses, min_size=1, max_size=3),
    },
    optional={
        "workload": st.fixed_dictionaries(
            {}, optional={"scale": st.floats(1e-3, 1e6), "options": options, "external": st.booleans()}
        ),
        "load": st.fixed_dictionaries(
            {},
            optional={
                "interval": st.floats(0.05, 3600),
                "statement_timeout": st.floats(0.001, 86400),
                "isolation": st.just("serializable"),
                "on_connect": st.lists(st.text(), max_size=2),
                "retry": st.fixed_dictionaries({}, optional={"backoff": times}),
            },
        ),
        "cost": st.just({"price_book": "example-minimum-billing"}),
    },
)


@settings(deadline=None, max_examples=200)
@given(studies)
def test_a_study_is_the_same_when_it_is_read_again(tables: Tables) -> None:
    study = make_study(tables, "first")
    text = study.to_toml()
    again = make_study(tomllib.loads(text), "second")
    assert again == study
    assert again.to_toml() == text


def test_a_stored_study_is_read_from_its_file(tmp_path: Path) -> None:
    study = read_study(write_study(tmp_path, sim_study()), ["load.threads=2", "study.description=a = 'b'"])
    kept = tmp_path / "kept.toml"
    kept.write_text(study.to_toml())
    assert read_study(kept) == study
    assert study.load.threads == 2
    assert study.study.description == "a = 'b'"


def test_the_studies_that_come_along_are_right() -> None:
    study = read_study(find_study("quickstart"))
    assert make_study(tomllib.loads(study.to_toml()), "again") == study


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=60))
def test_whatever_a_file_holds_is_a_study_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"study\.toml"):
            read_study(path)


# --- paths


def test_paths_are_relative_to_the_file_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "studies").mkdir()
    (tmp_path / "here").mkdir()
    study = write_study(tmp_path / "studies", sim_study(workload={"name": "../mine"}, cost={}))
    monkeypatch.chdir(tmp_path / "here")
    assert read_study(study).workload.name == str(tmp_path / "mine")
    # What stands on the command line is relative to where that is typed.
    overridden = read_study(study, ["workload.name=./mine", "cost.price_book=mine.toml"])
    assert overridden.workload.name == str(tmp_path / "here" / "mine")
    assert overridden.cost.price_book == str(tmp_path / "here" / "mine.toml")


def test_the_name_of_what_comes_along_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tpcb").mkdir()
    (tmp_path / "tpcb" / "workload.lua").write_text("")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "workload.lua").write_text("")
    monkeypatch.chdir(tmp_path)
    assert read_study(write_study(tmp_path, sim_study())).workload.name == "tpcb"
    own = read_study(write_study(tmp_path, sim_study(workload={"name": "own"})))
    assert own.workload.name == str(tmp_path / "own")


# --- passwords


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("postgresql://u:geheim@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:${PASSWORD}@h/d", "postgresql://u:${PASSWORD}@h/d"),
        ("postgresql://u:x${PASSWORD}@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:${A}@h/d?password=abc", "postgresql://u:***@h/d?password=***"),
        ("${DATABASE_URL}", "${DATABASE_URL}"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
    ],
)
def test_a_stored_study_has_no_password_and_keeps_the_names_of_variables(url: str, kept: str) -> None:
    study = make_study(sim_study(system={"rw": url, "ro": [url]}), "study")
    tables = tomllib.loads(study.to_toml())
    assert tables["system"]["rw"] == tables["system"]["ro"] == [kept]


@pytest.mark.parametrize(
    ("entry", "key", "one"),
    [
        ({"evaluator": "throughput"}, "concurrency", 64),
        ({"evaluator": "throughput"}, "mixes", "RW"),
        ({"evaluator": "elasticity"}, "patterns", "single-peak"),
        ({"evaluator": "elasticity"}, "mixes", "RO"),
        ({"evaluator": "scaleout"}, "mixes", "RO"),
        ({"evaluator": "sweep", "parameter": "work_mem"}, "values", "8MB"),
        ({"evaluator": "sweep", "parameter": "work_mem", "values": [1]}, "concurrency", 8),
        ({"evaluator": "sweep", "parameter": "work_mem", "values": [1]}, "mixes", "RO"),
        ({"evaluator": "tenancy"}, "patterns", "high_contention"),
        ({"evaluator": "failover"}, "roles", "rw"),
    ],
)
def test_one_needs_no_brackets(entry: dict[str, Any], key: str, one: object) -> None:
    with_one, with_list = (
        make_study(sim_study({**entry, key: given}), "study").measure[0] for given in (one, [one])
    )
    assert with_one == with_list
    assert list(getattr(with_one, key)) == [one]


def test_what_is_no_list_is_told_with_what_is_allowed() -> None:
    with pytest.raises(
        InputError, match="concurrency: input should be 'search' or a valid list; it is 'serach'"
    ):
        make_study(sim_study({"evaluator": "throughput", "concurrency": "serach"}), "study")
    with pytest.raises(InputError, match="concurrency: input should be 'search' or a valid list; it is True"):
        make_study(sim_study({"evaluator": "throughput", "concurrency": True}), "study")
