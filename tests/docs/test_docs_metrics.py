"""docs/metrics.md and docs/run-directory.md against what is stored: a real run, read as the page says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from docs_pages import ROOT, blocks, prose

from nephoscope import _engine
from nephoscope.collectors import cassandra, mysql, postgres, sqlite
from nephoscope.evaluators.points import Latency, Point
from nephoscope.measuring.measurement import run_study
from nephoscope.measuring.silence import Silence
from nephoscope.scoring.definitions import DEFINITIONS
from nephoscope.scoring.prices import built_in_price_books
from nephoscope.store import FILES, StoredRun
from nephoscope.store.layout import INTERVALS, SYSTEM
from nephoscope.study.reading import make_study

if TYPE_CHECKING:
    from pathlib import Path

RUN_DIRECTORY = ROOT / "docs" / "run-directory.md"
METRICS = ROOT / "docs" / "metrics.md"
GLOSSARY = ROOT / "docs" / "glossary.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    tables = {
        "study": {"name": "documented"},
        "system": {"provider": "url", "rw": "sim://?latency=exponential(2ms)"},
        "workload": {"name": "tpcb"},
        "load": {"interval": "100ms"},
        "measure": [
            {
                "evaluator": "load",
                "phases": [{"name": "all", "duration": 2, "mix": "SELECT", "concurrency": 8}],
            },
            {"evaluator": "load", "phases": [{"name": "open", "duration": 1, "mix": "SELECT", "rate": 100}]},
        ],
    }
    outcome = run_study(make_study(tables, "documented"), tmp_path_factory.mktemp("docs") / "runs", Silence())
    assert outcome.status == "measured"
    return StoredRun(outcome.folder)


def lacking(page: Path, words: set[str]) -> list[str]:
    text = prose(page) + "".join(block.text for block in blocks(page))
    return sorted(word for word in words if f"`{word}`" not in text and f'"{word}"' not in text)


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys, value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list | tuple) else set()


def error_classes() -> set[str]:
    names = INTERVALS.names
    return set(names[names.index("serialization") : names.index("latency_mean_ms")])


def test_every_file_and_column_is_described() -> None:
    shown = set(vars(FILES).values()) | set(SYSTEM.names)
    # The classes of errors are named by the first and the last of them.
    shown |= {name for name in INTERVALS.names if name not in error_classes()}
    assert not lacking(RUN_DIRECTORY, shown)
    assert not lacking(METRICS, error_classes())


def test_every_metric_is_described(run: StoredRun, tmp_path: Path) -> None:
    metrics = {str(metric) for metric in run.system_metrics.column("metric").to_pylist()}
    assert {"cpu_busy", "lag_p99_us"} <= metrics
    for collector in (mysql, postgres):
        metrics |= {*(f"{name}_per_s" for name in collector._COUNTERS), *collector._LEVELS}
    metrics |= {"wal_mb_per_s", "cache_hit_ratio"}
    for tasks in cassandra._POOLS.values():
        metrics |= {f"{tasks}_active", f"{tasks}_pending", f"{tasks}_per_s"}
    metrics |= {
        f"{cache}_{what}_per_s" for cache in cassandra._CACHES.values() for what in ("requests", "hits")
    }
    admin = _engine.Admin(f"sqlite://{tmp_path / 'some.db'}?journal_mode=wal")
    admin.query("CREATE TABLE some (id integer)")
    reading = sqlite.read(admin)
    admin.close()
    metrics |= {*reading.levels, *(f"{name}_per_s" for name in reading.counters)}
    assert {"wal_frames", "process_read_bytes_per_s"} <= metrics
    assert not lacking(RUN_DIRECTORY, metrics)


def test_every_key_of_a_point_and_a_score_is_described() -> None:
    assert not lacking(METRICS, {*Point.model_fields, *Latency.model_fields, *built_in_price_books()})
    assert all(f"{name}" in prose(METRICS) for name in DEFINITIONS)


def test_the_glossary_has_every_score_and_stands_in_the_order_of_its_terms() -> None:
    rows = [line.split("|")[1].strip() for line in prose(GLOSSARY).splitlines() if line.startswith("| ")]
    terms = [re.sub(r"[^a-z0-9]", "", term.casefold()) for term in rows[1:]]
    assert terms == sorted(terms)
    assert set(DEFINITIONS) <= set(rows)


def test_the_manifest_has_no_key_that_is_not_shown(run: StoredRun) -> None:
    manifest = {key: value for key, value in run.manifest.items() if key != "system"}
    manifest["workload"] = {**manifest["workload"], "options": {}, "files": {}}
    # A price book is shown elsewhere, and the weights of a mix are by the workload's own names.
    inputs = manifest["inputs"]
    mixes = [{**mix, "weights": {}} for mix in inputs["workload"]["mixes"]]
    prices = dict.fromkeys(inputs["prices"])
    manifest["inputs"] = {"workload": {**inputs["workload"], "mixes": mixes}, "prices": prices}
    found = keys(manifest) | set(run.manifest["system"])
    assert not lacking(RUN_DIRECTORY, found)


def test_a_run_can_be_read_as_the_page_says(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.folder.parents[1])
    names: dict[str, Any] = {}
    for block in blocks(RUN_DIRECTORY):
        if block.language == "python":
            exec(compile(block.text, str(block), "exec"), names)  # noqa: S102 - our own page
    points = (run.scores or {})["points"]
    assert names["tps"] == pytest.approx({"all": points[0]["tps"], "open": points[1]["tps"]})
    whole = run.merged()
    assert names["latency"].total() == whole.count
    for share in (0.01, 0.5, 0.9, 0.99, 1.0):
        assert names["quantile"](share) == whole.quantile(share)
