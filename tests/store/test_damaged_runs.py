"""Run directories that were damaged or forged, one value at a time: a report and scores, or one message."""

from __future__ import annotations

import json
import random
import shutil
import tomllib
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w

from nephoscope.errors import NephoscopeError
from nephoscope.measuring.measurement import page_of
from nephoscope.results.scores import scores_of, scores_text
from nephoscope.results.tables import tables_of
from nephoscope.store import FILES, StoredRun
from nephoscope.tables.columns import RunFigures
from sample_studies import RESOURCES, sim_study, throughput
from stored_runs import INTERVAL_S, Step, begin_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.long

SELECT = {"mix": "SELECT", "concurrency": 2}
INTERVALS_EACH = 6
MEASURE = (
    throughput(duration="600ms"),
    {"evaluator": "failover", "before": "200ms", "after": "300ms", "hold": "100ms", "mix": "SELECT"},
    {"evaluator": "lag", "loads": [{"name": "busy", "mix": "SELECT"}], "duration": "600ms"},
    {"evaluator": "scaleout", "mixes": ["SELECT"], "nodes": 1, "duration": "600ms"},
    {"evaluator": "sweep", "parameter": "work_mem", "values": ["4MB", "8MB"], "mixes": ["SELECT"]},
    {"evaluator": "elasticity", "patterns": ["single-peak"], "mixes": ["SELECT"], "tau": 2, "slot": "600ms"},
    {"evaluator": "tenancy", "patterns": ["low_contention"], "mix": "SELECT", "slot": "600ms"},
)


def labelled() -> Iterator[dict[str, Any]]:
    """Label a phase of each kind, as the evaluators do."""
    yield {"measure": 0, "repetition": 1}
    yield {"measure": 1, "repetition": 1, "role": "rw", "fault": "restart"}
    yield {"measure": 2, "repetition": 1, "load": "busy"}
    for nodes in (0, 1):
        yield {"measure": 3, "repetition": 1, "of_mix": "SELECT", "nodes": nodes}
    yield {
        "measure": 4,
        "repetition": 1,
        "of_mix": "SELECT",
        "place": 0,
        "parameter": "work_mem",
        "value": "4MB",
    }
    for slot in (1, 2):
        yield {"measure": 5, "repetition": 1, "pattern": "single-peak", "slot": slot, "sessions": 2, "tau": 2}
    yield {"measure": 5, "repetition": 1, "pattern": "single-peak", "tau": 2}
    yield {"measure": 6, "repetition": 1, "pattern": "low_contention", "slot": 1, "sessions": "2 + 1"}
    yield {"measure": 6, "repetition": 1, "alone": "tenant1", "sessions": "2"}
    yield {"measure": 0, "repetition": 1, "concurrency": 1, "search": True}


def probe(kind: str, at_s: float, number: int) -> str:
    lag = kind == "lag"
    row = {
        "time_s": at_s,
        "probe": kind,
        "kind": ("insert", "update", "delete")[number % 3] if lag else "write",
    }
    row |= {"role": "ro" if lag else "rw", "node": "ro" if lag else "rw", "number": number, "sent_s": at_s}
    row |= {"end_s": at_s + 0.01, "outcome": "timeout" if number == 7 else "ok", "polls": 1}
    return json.dumps(row | {"lower_ms": 1.0 if lag else None, "upper_ms": 2.0 if lag else None}) + "\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plant a run with something for every evaluator and every section of the report."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    steps = [
        Step({**SELECT, **labels}, [10 + place % 2] * INTERVALS_EACH, [2.0] * INTERVALS_EACH)
        for place, labels in enumerate(labelled())
    ]
    tenants = [{"name": f"tenant{n}", "rw": ["sim://"], "ro": [], "resources": RESOURCES} for n in (1, 2)]
    system = {"provider": "url", "endpoints": {"rw": ["sim://"], "ro": ["sim://"]}, "resources": RESOURCES}
    system |= {"facts": {"version": "1"}, "tenants": {"share": "schema", "each": tenants}}
    study = sim_study(*MEASURE) | {"tenants": {"number": 2}, "score": {"weights": {"P": 1}}}
    study |= {"cost": {"starred": "example-minimum-billing"}}
    writer = begin_run(folder, study, steps, {"system": system})
    phase_s = INTERVALS_EACH * INTERVAL_S
    of_failure = {"measure": 1, "role": "rw", "repetition": 1}
    writer.event(phase_s * 1.4, "fault", **of_failure, action="restart", node="rw", took_s=0.1)
    writer.event(phase_s * 1.5, "action", **of_failure, action="start", node="rw", took_s=0.1)
    writer.event(phase_s * 1.6, "durability", **of_failure, acknowledged=5, lost=0, indeterminate=1)
    error = {"class": "connection", "code": "08006", "message": "gone", "transaction": "select_only"}
    writer.event(phase_s * 1.5, "error", **error, tenant="default", role="rw", count=3)
    writer.event(phase_s * 1.5, "connection", state="lost", tenant="default", count=2)
    writer.event(phase_s * 1.5, "dropped", count=4, tenant="default")
    came = {
        "node": "ro1",
        "nodes": 1,
        "took_s": 0.1,
        "routed_s": 0.1,
        "reached_s": phase_s * 4,
        "serve_s": 0.1,
    }
    writer.event(phase_s * 3.9, "scaling", measure=3, repetition=1, action="add_node", **came)
    writer.event(
        phase_s * 4.9, "setting", measure=4, place=0, parameter="work_mem", held="4MB", before=1, took_s=0.1
    )
    writer.event(0.0, "allocation", resources=RESOURCES)
    writer.event(phase_s * 6.5, "woken", phase=6, tenant="default", waited_s=0.1)
    writer.event(phase_s * 6.5, "gap", stopped_s=0.1, suspended_s=0.0, message="stood still")
    writer.event(phase_s * 6.5, "warning", message="careful")
    for number in range(24):
        writer.probes(probe("lag", phase_s * 2 + number * 0.02, number))
        writer.probes(probe("availability", phase_s + number * 0.02, number))
    writer.metrics(phase_s, "replica:ro", [("bytes_behind", 10.0)])
    writer.event(len(steps) * phase_s, "end", status="measured", reason=None)
    totals = {"started": 126, "committed": 126, "aborted": 0, "failed": 0, "in_flight": 0, "dropped": 4}
    writer.finish("measured", None, totals)
    writer.text(FILES.scores, scores_text(scores_of(StoredRun(folder))))
    return folder


def shown(folder: Path) -> str | None:
    """Compute everything that the commands show of a run; gives why it is refused, or None."""
    try:
        run = StoredRun(folder)
        scores = scores_of(run)
        assert "</html>" in page_of(run, scores)
        tables_of([RunFigures(run.name, run, scores)])
    except NephoscopeError as error:
        return str(error) or "an error without a message"
    return None


def test_the_run_that_is_damaged_has_something_for_everybody(whole: Path) -> None:
    assert shown(whole) is None
    scores = scores_of(StoredRun(whole))
    assert sorted(scores["details"]) == ["failover", "scaleout", "sweep", "tenancy"]
    assert {"P", "F", "C", "T", "E1", "E2"} <= set(scores["scores"]), scores["absent"]


# --- mutations

GONE = object()
HOSTILE: tuple[Any, ...] = (
    GONE,
    None,
    True,
    -1,
    0,
    2**40,
    10**30,
    1e308,
    1e-308,
    float("nan"),
    float("inf"),
    "",
    "nonsense",
    "\ud800",
    "9" * 2_000_000,
    [],
    {},
    [[["deep"]]],
    {"a": {"b": [1]}},
)


def leaves(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """List the places of everything in a tree; of a list only the first and the last entry are looked into."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for place in sorted({0, len(value) - 1} if value else ()):
            yield from leaves(value[place], (*path, place))


def changed(tree: Any, path: tuple[Any, ...], value: object) -> Any:
    """Copy a tree with another value in a place, or without it."""
    copy = json.loads(json.dumps(tree))
    place = copy
    for key in path[:-1]:
        place = place[key]
    if value is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy


def dealt(paths: list[tuple[Any, ...]], each: int) -> Iterator[tuple[tuple[Any, ...], object]]:
    """Deal the hostile values out: so many to each place, all of them in turn."""
    for at, path in enumerate(paths):
        for turn in range(each):
            yield path, HOSTILE[(at * each + turn) % len(HOSTILE)]


def of_json(folder: Path) -> Iterator[Any]:
    manifest = json.loads((folder / FILES.manifest).read_text())
    for path, value in dealt(list(leaves(manifest)), 4):
        yield FILES.manifest, path, value, json.dumps(changed(manifest, path, value)).encode()


def of_toml(folder: Path) -> Iterator[Any]:
    study = tomllib.loads((folder / FILES.study).read_text())
    for path, value in dealt(list(leaves(study)), 2):
        if value is not None and value != "\ud800":
            yield FILES.study, path, value, tomli_w.dumps(changed(study, path, value)).encode()


def of_events(folder: Path) -> Iterator[Any]:
    events = [json.loads(line) for line in (folder / FILES.events).read_text().splitlines()]
    places = [(number, path) for number, event in enumerate(events) for path in leaves(event)]
    for (number, path), value in dealt(places, 1):
        mutated = [*events[:number], changed(events[number], path, value), *events[number + 1 :]]
        yield (
            FILES.events,
            (number, *path),
            value,
            "".join(json.dumps(event) + "\n" for event in mutated).encode(),
        )


def of_tables(folder: Path) -> Iterator[Any]:
    for name in (FILES.intervals, FILES.system, FILES.probes):
        table = pq.read_table(folder / name)
        for place, field in enumerate(table.schema):
            dropped = table.drop_columns([field.name])
            yield name, field.name, "gone", dropped
            for value in (None, -1, 2**31 - 1, 2**60, 1e308, float("nan"), float("-inf"), "", "x" * 5000):
                column = table.column(place).to_pylist()
                column[len(column) // 2] = value
                try:
                    damaged = pa.array(column, field.type)
                except (pa.ArrowException, TypeError, OverflowError):
                    continue
                yield name, field.name, value, table.set_column(place, field, damaged)
            lists = pa.array([[1, 2]] * table.num_rows)
            yield name, field.name, "lists", table.set_column(place, field.name, lists)
            texts = pa.array(["text"] * table.num_rows)
            yield name, field.name, "texts", table.set_column(place, field.name, texts)


def of_histograms(folder: Path) -> Iterator[Any]:
    lines = (folder / FILES.histograms).read_text().splitlines(keepends=True)
    at = len(lines) // 2
    parts = lines[at].rstrip("\n").split(",")
    hostile = (
        "",
        "nan",
        "-1",
        "1e308",
        "x" * 100_000,
        "Tag=latency|a|b|c",
        "HISTFAAAAEV42pNpmSzMwMDAzAABMJoRTM2YzmD/AQA=",
    )
    for place in range(len(parts)):
        for value in hostile:
            line = ",".join([*parts[:place], value, *parts[place + 1 :]]) + "\n"
            yield FILES.histograms, place, value, "".join([*lines[:at], line, *lines[at + 1 :]]).encode()


def of_bytes(folder: Path) -> Iterator[Any]:
    """Change some bytes of each file that is read, drawn by a seed."""
    drawn = random.Random(7)  # noqa: S311 - no secret
    read = (name for name in vars(FILES).values() if name not in (FILES.scores, FILES.report))
    for name in (name for name in read if (folder / name).exists()):
        for number in range(10):
            content = bytearray((folder / name).read_bytes())
            for _ in range(number % 4 + 1):
                content[drawn.randrange(len(content))] = drawn.randrange(256)
            yield name, number, "bytes", bytes(content)


@pytest.mark.parametrize("mutations", [of_json, of_toml, of_events, of_tables, of_histograms, of_bytes])
def test_a_mutation_gives_a_report_or_a_message(
    whole: Path, tmp_path: Path, mutations: Callable[[Path], Iterator[Any]]
) -> None:
    refused, taken = tried(shutil.copytree(whole, tmp_path / "run"), mutations(whole))
    assert refused > taken / 20
    assert refused + taken > 30


@pytest.mark.parametrize("mutations", [of_events, of_histograms])
def test_a_mutation_of_a_run_that_was_killed_gives_a_report(
    whole: Path, tmp_path: Path, mutations: Callable[[Path], Iterator[Any]]
) -> None:
    """What a killed run has damaged is left out, and the rest is read."""
    killed = shutil.copytree(whole, tmp_path / "killed")
    manifest = json.loads((whole / FILES.manifest).read_text())
    (killed / FILES.manifest).write_text(json.dumps({**manifest, "status": "running"}))
    refused, taken = tried(shutil.copytree(killed, tmp_path / "run"), mutations(killed))
    assert taken > 30 * refused


def tried(folder: Path, mutations: Iterator[Any]) -> tuple[int, int]:
    """Write each mutation into a run, which is whole again afterwards; gives how many were refused, and taken."""
    refused, taken, found = 0, 0, []
    for name, path, value, content in mutations:
        before = (folder / name).read_bytes()
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            pq.write_table(content, folder / name)
        try:
            if shown(folder) is None:
                taken += 1
            else:
                refused += 1
        except Exception as error:  # noqa: BLE001 - that there is none is what this is about
            found.append(f"{name} {path} {str(value)[:40]!r}: {error!r}")
        (folder / name).write_bytes(before)
    assert not found, f"{len(found)} of {refused + taken + len(found)}:\n" + "\n".join(found)
    return refused, taken
