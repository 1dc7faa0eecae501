"""Workloads and studies that come with nephoscope."""

from __future__ import annotations

from pathlib import Path

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.files import is_file, is_there, packaged, packaged_folder, packaged_folders
from nephoscope.foreign.naming import folder_of, named

PACKAGED = Path(__file__).parent.parent / "workloads"
"""The workloads that come with nephoscope, a folder each."""


def packaged_workloads() -> list[str]:
    """List the names of the workloads that come with nephoscope."""
    return packaged_folders("workloads", "workload.lua")


def packaged_workload(name: str) -> Path | None:
    """Find the folder of a workload that comes with nephoscope; None where there is none of this name."""
    return packaged_folder("workloads", name, "workload.lua")


def find_workload(name: str) -> Path:
    """Find the folder of a workload, by its name or its path; it is made where another tool's files describe it.

    Raises ``InputError``.
    """
    if folder := packaged_workload(name):
        return folder
    if is_file(Path(name) / "workload.lua"):
        return Path(name).resolve()
    if found := named(name):
        return folder_of(found)
    known = ", ".join(packaged_workloads())
    shown = _engine.redact(name) if "://" in name else name
    raise InputError(
        f"workload.name: {shown!r} is no workload and no folder with a workload.lua; workloads are {known}"
    )


def source_of(name: str) -> str:
    """Say where a workload's text is: its folder, or the other tool's files, whose folder is a temporary one.

    Raises ``InputError``.
    """
    folder = find_workload(name)
    is_made = not packaged_workload(name) and not is_file(Path(name) / "workload.lua")
    return str(named(name)) if is_made else str(folder)


def find_study(name: str) -> Path:
    """Find a study by its path, or by the name of one that comes with nephoscope.

    Raises ``InputError``.
    """
    path = Path(name)
    if is_there(path):
        return path
    studies = packaged("studies")
    if name in studies:
        return studies[name]
    shown = _engine.redact(name) if "://" in name else name
    raise InputError(f"{shown}: there is no such file, and no such study; studies are {', '.join(studies)}")
