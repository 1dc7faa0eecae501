"""Who may know whom, in the package and in the crates: a newcomer's map, kept true by reading every import."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import nephoscope
from nephoscope import registry

PACKAGE = Path(nephoscope.__file__).parent

# What is against the rules still, and why. A ratchet: entries go, and none comes.
EXCEPTIONS = {
    # The store refuses at its door what no run writes. A second description of these tables would drift from the first.
    "store.schema -> scoring.prices": "the price books of a manifest have the type that scores read them with",
    "store.schema -> settings.resources": "so have the resources of a manifest and of an event",
}
GROUND = {"", "__version__", "errors", "masking", "visible", "files", "interrupts", "registry", "_engine"}
"""What everybody may know."""

ROOMS: dict[str, set[str]] = {
    "": {"results"},
    "statistics": set(),
    "dialects": set(),
    "settings": set(),
    "store": set(),
    "scoring": {"settings", "statistics"},
    "tables": {"scoring", "store.protocol"},
    "foreign": set(),
    "study": {"settings", "scoring", "foreign"},
    "systems": {"settings", "dialects", "systems.machine", "systems.cluster"},
    "systems.machine": set(),
    "systems.cluster": {"systems.machine", "systems", "settings"},
    "systems.postgres": {"systems.machine", "systems.cluster", "systems", "settings", "dialects"},
    "systems.mariadb": {"systems.machine", "systems.cluster", "systems", "settings", "dialects"},
    "systems.redis": {"systems.machine", "systems.cluster", "systems", "settings", "dialects"},
    "systems.cassandra": {"systems.machine", "systems.cluster", "systems", "settings", "dialects"},
    "collectors": {"store", "dialects"},
    "engine": {"settings", "study", "dialects", "store", "collectors", "systems.base"},
    "publishing": {"settings"},
    "report": {"store", "tables", "scoring", "statistics", "report.kit"},
    "report.kit": {"store", "tables", "scoring", "statistics"},
    "evaluators": {
        "engine", "systems.base", "study", "settings", "store", "scoring", "statistics", "tables", "report.kit",
    },
    "storage": {"settings", "statistics", "store", "tables", "report.kit"},
    "traces": {"settings", "tables", "foreign"},
    "results": {
        "evaluators", "report", "report.kit", "tables", "scoring", "statistics", "store", "study", "settings",
        "dialects",
    },
    "measuring": {
        "results", "evaluators", "report", "report.kit", "tables", "scoring", "statistics", "store", "study",
        "settings", "dialects", "engine", "collectors", "systems", "systems.machine",
    },
    "cards": {
        "results", "report.kit", "tables", "scoring", "statistics", "store", "settings",
    },
    "experiments": {
        "measuring", "results", "report.kit", "tables", "scoring", "statistics", "store", "study", "settings",
        "systems.shell", "systems.around", "systems.base",
    },
}  # fmt: skip
"""A room, and the rooms that it may know besides itself. A module's name in place of a room's allows that one alone."""

EVERYTHING = {"cli", "calibration", "extend"}
"""These may know all of the others, and cli these two as well; nobody else knows them."""

HALVES = {
    "settings": {"settings", "scoring"},
    "reading": {"store", "scoring", "statistics", "settings"},
    "paper": {"settings", "scoring", "study"},
    "tables": {"tables", "report.kit", "scoring", "settings", "store.protocol"},
    "section": {"tables", "report.kit", "scoring", "settings", "store.protocol"},
}
"""The files of a measurement's own room that may know less than the others."""


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


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
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "nephoscope":
            base = (node.module or "").removeprefix("nephoscope").lstrip(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".lstrip(".")
                found.add(full if full in MODULES else base or full)
    return found


def allowed(module: str, target: str) -> bool:
    ours, theirs = room_of(module), room_of(target)
    if target in GROUND or ours == "cli":
        return True
    if theirs in EVERYTHING:
        return theirs == ours
    if ours in EVERYTHING:
        return True
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


def test_no_packages_know_each_other_in_a_circle() -> None:
    known: dict[str, set[str]] = {}
    for module, file in MODULES.items():
        known.setdefault(module.split(".")[0], set()).update(
            target.split(".")[0] for target in imports(file) if target not in GROUND
        )
    # What knows none of the rest goes, and then what knows none but those.
    while ends := {package for package, others in known.items() if not others - {package} & known.keys()}:
        known = {package: others for package, others in known.items() if package not in ends}
    assert known == {}


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
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, set()).add(room_of(module))
    assert {name: len(rooms) for name, rooms in places.items() if len(rooms) > 1} == NAMESAKES


GENERIC = ("store", "study", "settings", "tables", "report", "results", "measuring", "cli")
"""Rooms that know evaluators by the registry alone."""

ALSO_WORDS = {"availability", "load", "lag", "capture", "consistency", "isolation", "steady"}
"""Evaluators whose names mean more: a table of studies, probes, a command, keys of the load, a verdict."""


def test_no_generic_room_knows_an_evaluator_by_name() -> None:
    names = set(registry.names("evaluators")) - ALSO_WORDS
    folders = {
        module.split(".")[1] for module in MODULES if re.fullmatch(r"evaluators\.\w+\.evaluator", module)
    }
    assert names <= folders
    found = []
    for module, file in MODULES.items():
        if module.split(".")[0] in GENERIC:
            told = {target.split(".")[1] for target in imports(file) if target.startswith("evaluators.")}
            told &= folders
            told |= {
                node.value
                for node in ast.walk(parsed(file))
                if isinstance(node, ast.Constant) and node.value in names
            }
            found += [f"{module}: {name}" for name in told]
    assert found == []


PRODUCTS = re.compile(r"postgres|pg_|mariadb|mysql|cassandra", re.IGNORECASE)

OF_A_PRODUCT = re.compile(
    r"(systems|dialects|collectors)\.(postgres|mariadb|mysql|cassandra)\b|foreign\.(pgbench|sysbench)\b|calibration\b"
)
"""Where a product's name may stand."""

NAMED = {
    "cli.commands.measuring": "the user chooses a product for the quickstart",
    "cli.printing": "a text shown to users: an example of a study",
    "collectors.monitor": "the table of collectors, by dialect",
    "dialects": "the table of dialects",
    "systems.cache": "what embedded servers have left in the cache",
    "systems.machine.account": "the account that a package of the distribution makes, and a text shown to users",
    "systems.url": "whose parameters can be read, and a text shown to users",
}
"""Modules that name a product all the same, and why. A ratchet: entries go, and none comes."""


def literals(file: Path) -> set[str]:
    """Give the texts of a module; docstrings are none of them."""
    tree = parsed(file)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in told)
    return {node.value for node in texts if isinstance(node.value, str)}


def test_a_product_is_named_in_its_own_files_alone() -> None:
    found = {
        module
        for module, file in MODULES.items()
        if not OF_A_PRODUCT.match(module) and any(map(PRODUCTS.search, literals(file)))
    }
    assert found == set(NAMED)


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
        "worker": {"spec", "worker.course", "worker.session", "worker.watchdog"},
        "worker.session": {"spec", "worker", "worker.course", "worker.watchdog"},
        "worker.course": {"spec", "worker", "worker.watchdog"},
        "worker.watchdog": set(),
        "run": {"spec", "worker", "worker.watchdog"},
        "probes": {"spec"},
        "replay": set(),
        "loading": {"worker.watchdog"},
    },
    "histories": {"check": set(), "forms": set()},
    "script": {"vm": set(), "define": {"vm"}},
    "storage": {
        "capture": set(),
        "execute": set(),
        "generate": set(),
        "reuse": set(),
        "trace": set(),
        "wal": {"capture"},
    },
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


@cache
def crate_code(file: Path) -> str:
    """Give a file's code without its tests and comments."""
    return re.sub(r"//[^\n]*", "", file.read_text().split("#[cfg(test)]\nmod tests {")[0])


def crate_imports(file: Path) -> set[str]:
    """List the paths within its crate that a file names, those in its tests and in comments left out."""
    code = crate_code(file)
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


def test_a_driver_is_a_room_of_its_own_and_a_line_in_the_table() -> None:
    source = CRATES / "drivers" / "src"
    drivers = set(crate_rooms("drivers")) - set(CRATE_ROOMS["drivers"]) - {"open"}
    assert drivers == {
        "postgres",
        "mysql",
        "redis",
        "cassandra",
        "dynamodb",
        "s3",
        "simpledb",
        "hbase",
        "mongodb",
        "sqlite",
        "noop",
        "sim",
    }
    for driver in drivers:
        named = []
        for file in source.rglob("*.rs"):
            room = file.relative_to(source).parts[0].removesuffix(".rs")
            if room != driver and f"drivers: {room} -> {driver}" not in CRATE_EXCEPTIONS:
                lines = re.findall(rf".*\b(?:crate::{driver}|mod {driver})\b.*", crate_code(file))
                named += [f"{room}: {line.strip()}" for line in lines]
        assert sorted(named) == [f"lib: pub mod {driver};", f"open: &crate::{driver}::ENTRY,"], driver
