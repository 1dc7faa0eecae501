"""Studies for tests: of the simulated database, whose truth is planted, and of a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tomli_w

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RESOURCES = {"vcores": 4, "memory_gb": 16, "storage_gb": 100, "iops": 3000, "network_gbps": 10}

Tables = dict[str, Any]

_SHORT_QUICKSTART: Tables = {
    "workload.scale": 0.002,
    "measure.0": {"concurrency": "[1,2]", "repetitions": 2, "warmup": "100ms", "duration": "500ms"},
    "measure.1": {"patterns": '["zero-valley"]', "tau": 2, "slot": "1200ms", "window": "5s"},
    "measure.2": {"concurrency": 1, "duration": "1s", "warmup": "100ms"},
    "measure.3": {"patterns": '["high_contention"]', "alone": "false", "slot": "600ms", "warmup": "600ms"},
    "measure.4": {"concurrency": 4, "warmup": "200ms", "duration": "1200ms", "rounds": 1},
    "measure.5": {
        "utilization": 0.3,
        "repetitions": 1,
        "before": "1s",
        "after": "5s",
    },
}
BRIEF_QUICKSTART = [
    word
    for key, value in _SHORT_QUICKSTART.items()
    for name, shorter in (value.items() if isinstance(value, dict) else [("", value)])
    for word in ("--set", f"{key}.{name}={shorter}" if name else f"{key}={shorter}")
]
"""Options that let ``nephoscope quickstart`` measure everything in half a minute."""


def throughput(**settings: Any) -> Tables:
    brief = {"mixes": ["SELECT"], "concurrency": [2], "warmup": "200ms", "duration": "1s", "repetitions": 1}
    return {"evaluator": "throughput", **brief, **settings}


def phases(*entries: Mapping[str, Any], **settings: Any) -> Tables:
    """A course of load; what its first phase lacks is filled in."""
    first, *others = entries
    defaults = {"duration": "1s", "mix": "SELECT"}
    return {"evaluator": "load", "phases": [{**defaults, **first}, *others], **settings}


def sim_study(
    *measure: Tables, planted: str = "latency=constant(2ms)", **tables: Mapping[str, Any]
) -> Tables:
    """A study of the simulated database."""
    return {
        "study": {"name": "planted", **tables.get("study", {})},
        "system": {
            "provider": "url",
            "rw": f"sim://?{planted}",
            "resources": RESOURCES,
            **tables.get("system", {}),
        },
        "workload": {"name": "tpcb", **tables.get("workload", {})},
        "load": {"interval": "100ms", **tables.get("load", {})},
        "measure": list(measure) or [throughput()],
    }


def workload_study(url: str, workload: str, measure: Tables, **table: Any) -> Tables:
    """A study of a built-in workload in a database; ``table`` is the rest of ``[workload]``."""
    return {
        "study": {"name": workload},
        "system": {"provider": "url", "rw": url},
        "workload": {"name": workload, **table},
        "measure": [measure],
    }


def write_study(folder: Path, tables: Mapping[str, Any], name: str = "study.toml") -> Path:
    path = folder / name
    path.write_text(tomli_w.dumps(tables), encoding="utf-8")
    return path


def one_table_workload(folder: Path, **sections: str) -> Path:
    """Write a workload of one table, with its schema's sections."""
    place = folder / "tickets"
    place.mkdir()
    (place / "workload.lua").write_text(
        'local w = workload "tickets"\n'
        'w:option("note", "text", [[a "quoted" back\\slash]], "any")\n'
        'w:table("ticket", { rows = function() return 5 end, columns = { { "id", serial() } } })\n'
        'w:transaction("look", { read_only = true, help = "looks" }, function(tx, pick) '
        'tx:one("look", pick.ticket()) end)\n'
        'w:mix("ALL", { look = 1 })\n'
    )
    (place / "statements.sql").write_text("-- name: look\nSELECT id FROM ticket WHERE id = :id\n")
    given = {
        "create": "CREATE TABLE ticket (id bigint)",
        "keys": "CREATE UNIQUE INDEX ticket_id ON ticket (id)",
        "drop": "DROP TABLE IF EXISTS ticket",
        **sections,
    }
    (place / "schema.sql").write_text("\n".join(f"-- name: {name}\n{sql};" for name, sql in given.items()))
    return place
