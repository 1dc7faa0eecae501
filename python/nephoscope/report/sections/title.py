"""The head of the page: the subject, place and time of the run, and whether it is complete."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nephoscope.report.kit.parts import Fact
from nephoscope.report.view import Banner, Title
from nephoscope.store.protocol import tenant_of
from nephoscope.tables.numbers import ABSENT, count, duration, plain

if TYPE_CHECKING:
    from nephoscope.report.kit.run import Run

_BANNERS = {
    "failed": ("problem", "This measurement failed", "The figures below are what was recorded until then."),
    "interrupted": (
        "warning",
        "This measurement was interrupted",
        "The figures below cover what was measured until then; phases that were still to come are missing.",
    ),
    "killed": (
        "problem",
        "This measurement was killed",
        "The process died or the machine stopped. The figures below cover what was kept until then.",
    ),
    "running": (
        "warning",
        "This measurement is still running",
        "The figures below are what was recorded when this report was written.",
    ),
}


def build(run: Run) -> Title:
    """Return the title block and, unless the run was measured to its end, its banner."""
    manifest = run.manifest
    status = str(manifest.get("status") or "unknown")
    return Title(
        study=str(manifest.get("study") or run.reader.name),
        status=status,
        banner=_banner(run, status),
        facts=tuple(Fact(label=label, value=value) for label, value in _facts(run) if value),
    )


def parse_time(text: object) -> datetime | None:
    """Return a time stamp of the manifest; None where it is absent or unreadable."""
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return None


def _banner(run: Run, status: str) -> Banner | None:
    if status == "measured":
        return None
    level, heading, text = _BANNERS.get(
        status,
        ("warning", f"The status of this measurement is “{status}”", "It was not measured to its end."),
    )
    reason = str(run.manifest.get("reason") or "").strip()
    if reason:
        text = f"Reason: {reason.rstrip('.')}. {text}"
    if run.phases and run.nothing_measured:
        text += " No measured phase began: only warm-up was recorded."
    return Banner.model_validate({"level": level, "heading": heading, "text": text})


def _facts(run: Run) -> list[tuple[str, str]]:
    return [
        ("System", _system(run)),
        ("Workload", _workload(run)),
        ("Measured", _when(run)),
        ("Duration", _duration(run)),
        ("Load", _load(run)),
    ]


def _system(run: Run) -> str:
    system = run.table("system")
    facts = run.table("system", "facts")
    version = facts.get("server_version") or facts.get("version")
    endpoints = run.table("system", "endpoints")
    nodes = [
        f"{len(urls)} {role.upper()}" for role, urls in endpoints.items() if isinstance(urls, list) and urls
    ]
    parts = [system.get("provider"), f"version {version}" if version else None, ", ".join(nodes)]
    return _joined(parts)


def _workload(run: Run) -> str:
    workload = run.table("workload")
    scale = workload.get("scale")
    scaled = None if scale is None else f"scale {plain(scale)}"
    tenants = len({tenant_of(name) for name in run.tenants})
    return _joined([workload.get("name"), scaled, f"{tenants} tenants" if tenants > 1 else None])


def _when(run: Run) -> str:
    begun = parse_time(run.table("clock").get("origin"))
    return "" if begun is None else f"{begun.day} {begun:%B %Y, %H:%M:%S} UTC"


def _duration(run: Run) -> str:
    measured = sum(phase.end_s - phase.start_s for phase in run.phases if phase.measured)
    if not run.phases:
        return ABSENT
    return (
        f"{duration(run.end_s)}, of which {duration(measured)} measured" if measured else duration(run.end_s)
    )


def _load(run: Run) -> str:
    load = run.table("load")
    threads = load.get("threads")
    parts: list[Any] = [
        None if threads is None else f"{count(threads)} {'thread' if threads == 1 else 'threads'}",
        f"pinned to processors {', '.join(map(str, cpus))}" if (cpus := load.get("cpus")) else None,
        None if load.get("statement_mode") is None else f"{load['statement_mode']} statements",
        {True: "pipelined", False: "pipelined where a transaction says so"}.get(load.get("pipeline", "")),
        load.get("io"),
    ]
    return _joined(parts)


def _joined(parts: list[Any]) -> str:
    return " · ".join(str(part) for part in parts if part)
