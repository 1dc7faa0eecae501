"""Who may know whom, in the package and in the crates: a newcomer's map, kept true by reading every import."""

from __future__ import annotations

import ast
import re
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
    "systems.cluster.autoscaler -> systems.postgres.cluster": "until a second product has a cluster",
    "systems.url -> systems.postgres.parameters": "until a second product has parameters",
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


CRATES = Path(__file__).parent.parent / "crates"

CRATE_ROOMS: dict[str, dict[str, set[str]]] = {
    "datagen": {
        "plan": set(),
        "dataset": {"plan"},
        "generate": {"plan", "dataset"},
        "resolve": {"plan", "dataset"},
        "load": {"dataset", "generate"},
    },
    "drivers": {"contract": set(), "net": {"contract"}, "echo": {"contract"}},
    "engine": {
        "spec": set(),
        "worker": {"spec", "worker.course", "worker.session"},
        "worker.session": {"spec", "worker", "worker.course"},
        "worker.course": {"spec", "worker"},
        "run": {"spec", "worker"},
        "probes": {"spec"},
    },
    "script": {"vm": set(), "define": {"vm"}},
}
"""A crate's rooms, and the rooms that each may know besides itself. All may know the files that are no rooms."""

OF_A_DRIVER = {"contract", "net", "echo"}
"""What the other rooms of the drivers' crate, which are drivers, may know. Only ``open`` knows drivers."""

CRATE_EXCEPTIONS = {"drivers: sim -> noop": "both refuse set-up connections in the same words"}


def crate_rooms(crate: str) -> dict[str, set[str]]:
    rooms = dict(CRATE_ROOMS[crate])
    if crate == "drivers":
        names = {file.stem for file in (CRATES / crate / "src").iterdir()} - {"lib", "open"}
        rooms.update(dict.fromkeys(names - set(rooms), OF_A_DRIVER), open=names)
    return rooms


def crate_imports(file: Path) -> set[str]:
    """List the paths within its crate that a file names, those in its tests and in comments left out."""
    code = re.sub(r"//[^\n]*", "", file.read_text().split("#[cfg(test)]\nmod tests {")[0])
    found = re.findall(r"\bcrate::(\w[\w:]*)", code)
    for group in re.findall(r"\bcrate::\{([^;]*)\};", code):
        found += re.findall(r"(?:^|,)\s*(\w[\w:]*)", group)
    return {path.replace("::", ".") for path in found}


def crate_room(path: str, rooms: dict[str, set[str]]) -> str:
    return max((room for room in rooms if path == room or path.startswith(f"{room}.")), key=len, default="")


def against_the_house(crate: str) -> set[str]:
    source, rooms = CRATES / crate / "src", crate_rooms(crate)
    found = set()
    for file in source.rglob("*.rs"):
        parts = file.relative_to(source).with_suffix("").parts
        if {"tests", "fuzzing"} & set(parts):
            continue
        ours = crate_room(".".join(parts[:-1] if parts[-1] == "mod" else parts), rooms)
        for target in crate_imports(file):
            theirs = crate_room(target, rooms)
            if ours and theirs and theirs != ours and theirs not in rooms[ours]:
                found.add(f"{crate}: {ours} -> {theirs}")
    return found


def test_each_room_of_a_crate_knows_those_below_it_alone() -> None:
    found = {entry for crate in CRATE_ROOMS for entry in against_the_house(crate)}
    assert found - set(CRATE_EXCEPTIONS) == set()
    assert set(CRATE_EXCEPTIONS) - found == set(), "these are in order now: take them out of the list"
