"""Who may know whom in the Python package: a newcomer's map, kept true by reading every import, types included."""

from __future__ import annotations

import ast
from pathlib import Path

import nephoscope

PACKAGE = Path(nephoscope.__file__).parent

# What is against the rules still, and why. A ratchet: entries go, and none comes.
EXCEPTIONS = {
    "engine.loadrun -> evaluators.connected": "a load is watched for sessions without a connection while it runs",
    "evaluators.base -> systems.tenants": "the endpoints of a tenant's load",
    "results.inputs -> engine.workload": "a stored run's workload is read to describe it",
    "store.schema -> scoring.prices": "the price book of a manifest",
    "store.schema -> settings.resources": "the resources of a manifest",
}
GROUND = {"", "__version__", "errors", "masking", "visible", "files", "interrupts", "registry", "_engine"}
"""What everybody may know."""

ROOMS: dict[str, set[str]] = {
    "statistics": set(),
    "dialects": set(),
    "settings": set(),
    "store": set(),
    "scoring": {"settings", "statistics"},
    "tables": {"scoring", "store.protocol"},
    "study": {"settings", "scoring"},
    "systems": {"settings", "dialects", "systems.machine", "systems.cluster"},
    "systems.machine": set(),
    "systems.cluster": {"systems.machine", "systems", "settings"},
    "systems.postgres": {"systems.machine", "systems.cluster", "systems", "settings", "dialects"},
    "systems.mariadb": {"systems.machine", "systems.cluster", "systems", "settings", "dialects"},
    "collectors": {"store", "dialects"},
    "engine": {"settings", "study", "dialects", "store", "collectors", "systems.base"},
    "report": {"store", "tables", "scoring", "statistics", "report.kit"},
    "report.kit": {"store", "tables", "scoring", "statistics"},
    "evaluators": {
        "engine", "systems.base", "study", "settings", "store", "scoring", "statistics", "tables", "report.kit",
    },
    "results": {
        "evaluators", "report", "report.kit", "tables", "scoring", "statistics", "store", "study", "settings",
        "dialects",
    },
    "measuring": {
        "results", "evaluators", "report", "report.kit", "tables", "scoring", "statistics", "store", "study",
        "settings", "dialects", "engine", "collectors", "systems", "systems.machine",
    },
}  # fmt: skip
"""A room, and the rooms that it may know besides itself. A module's name in place of a room's allows that one alone."""

EVERYTHING = {"cli", "calibration", "extend"}
"""These may know all of the others; nobody knows them."""

HALVES = {
    "settings": {"settings", "scoring"},
    "reading": {"store", "scoring", "statistics", "settings"},
    "tables": {"tables", "report.kit", "scoring", "settings", "store.protocol"},
    "section": {"tables", "report.kit", "scoring", "settings", "store.protocol"},
}
"""The files of a measurement's own room that may know less than the others."""


def module_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str:
    known = [*ROOMS, *EVERYTHING]
    found = [room for room in known if module == room or module.startswith(f"{room}.")]
    return max(found, key=len, default=module)


def imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "nephoscope":
            base = (node.module or "").removeprefix("nephoscope").lstrip(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".lstrip(".")
                found.add(full if full in MODULES else base or full)
    return found


def allowed(module: str, target: str) -> bool:
    ours, theirs = room_of(module), room_of(target)
    if target in GROUND or ours in EVERYTHING:
        return True
    if theirs in EVERYTHING:
        return False
    half = HALVES.get(module.rsplit(".", 1)[-1]) if module.count(".") >= 2 and ours == "evaluators" else None
    if ours == theirs:
        folders = {name.split(".")[1] for name in (module, target) if name.count(".") >= 2}
        return ours != "evaluators" or len(folders) < 2
    may = half if half is not None else ROOMS.get(ours, set())
    return theirs in may or target in may


def test_each_room_knows_those_below_it_alone() -> None:
    found = {
        f"{module} -> {target}"
        for module, file in MODULES.items()
        for target in imports(file)
        if not allowed(module, target)
    }
    assert found - set(EXCEPTIONS) == set()
    assert set(EXCEPTIONS) - found == set(), "these are in order now: take them out of the list"


def test_the_package_has_few_files_at_its_top() -> None:
    top = {
        module for module, file in MODULES.items() if file.parent == PACKAGE and file.name != "__init__.py"
    }
    assert top == {"extend", *GROUND} - {"", "__version__", "_engine"}


# Classes of one name in two packages, still. A ratchet: entries go, and none comes.
NAMESAKES: dict[str, int] = {}


def test_no_two_packages_have_classes_of_one_name() -> None:
    places: dict[str, set[str]] = {}
    for module, file in MODULES.items():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, set()).add(room_of(module))
    assert {name: len(rooms) for name, rooms in places.items() if len(rooms) > 1} == NAMESAKES
