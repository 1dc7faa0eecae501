"""The services of ``load.service`` as a part of docs/systems.md."""

from __future__ import annotations

import json

from nephoscope.study.services import service, service_names


def services() -> str:
    """Write a row for each service: its settings over the defaults, and its limits."""
    rows = ["| `load.service` | is | sets | limits |", "|---|---|---|---|"]
    for name in service_names():
        one = service(name)
        sets = ", ".join(f"`{entry.key} = {json.dumps(entry.value)}`" for entry in one.setting)
        limits = " ".join(entry.what for entry in one.limit)
        rows.append(f"| `{name}` | {one.product} ({one.date}: {one.notice}) | {sets} | {limits} |")
    return "\n".join(rows) + "\n"
