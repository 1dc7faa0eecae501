"""Studies for tests: of the simulated database, whose truth is planted, and of a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tomli_w

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RESOURCES = {"vcores": 4, "memory_gb": 16, "storage_gb": 100, "iops": 3000, "network_gbps": 10}

Tables = dict[str, Any]


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


def write_study(folder: Path, tables: Mapping[str, Any], name: str = "study.toml") -> Path:
    path = folder / name
    path.write_text(tomli_w.dumps(tables), encoding="utf-8")
    return path
