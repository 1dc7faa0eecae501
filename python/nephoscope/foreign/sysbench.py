"""sysbench: its scripts, unmodified, and its command line.

A. Kopytov, sysbench 1.0: the options and the functions of scripts are those of its manual page, of ``sysbench --help``
and of the scripts of Debian's package. What a script finds is in ``crates/script/src/sysbench``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.files import is_file
from nephoscope.foreign.base import Asked, Meant, NamedFile, Tool, lua_text, positive, text_of, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PACKAGED = Path("/usr/share/sysbench")
"""Where the scripts of sysbench's package are."""

COMMAND = "command"
"""The option of the workload that says what is done: ``run``, ``prepare``, ``cleanup``, or a command of its own."""

_SECONDS = 10.0
"""How long sysbench runs unless it is told."""

_REQUIRE = re.compile(r"""\brequire\s*\(?\s*["']([^"'\n]+)["']""")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

_IGNORED_ERRORS = {"1213": "deadlock", "1205": "lock_timeout", "1020": "serialization", "1062": "constraint"}
"""MySQL's errors that can be tried again, and their classes."""

_SYSTEM = "the system is named by --url"
_REFUSED = {
    "config-file": "its options are given here one by one",
    "events": "a run ends by time: --time",
    "max-requests": "a run ends by time: --time",
    "report-checkpoints": "the report has every interval; load.interval says how long one is",
    "validate": "nephoscope check compares what was acknowledged, in workloads with invariants",
    "warmup-time": "a study has phases: the first one can be left out of the scores",
    "luajit-cmd": "the compiler of LuaJIT is off here",
    **{
        f"{driver}-{word}": _SYSTEM
        for driver in ("mysql", "pgsql")
        for word in ("host", "port", "socket", "user", "password", "db", "ssl", "ssl-cipher", "compression")
    },
    "mysql-dry-run": "--url noop:// runs a workload without a server",
}
_NOTED = {
    "histogram": "the report has every percentile",
    "percentile": "the report has every percentile",
    "verbosity": "--verbose before the command says more",
    "debug": "--verbose before the command says more",
    "db-debug": "--verbose before the command says more",
    "mysql-debug": "--verbose before the command says more",
    "thread-stack-size": "sessions have no threads of their own",
    "forced-shutdown": "load.drain_timeout says how long transactions in flight are waited for",
    "db-driver": _SYSTEM,
}
_OLDER = {"num-threads": "threads", "max-time": "time", "tx-rate": "rate"}


class Sysbench(Tool):
    """sysbench's scripts."""

    name: ClassVar[str] = "sysbench"
    ending: ClassVar[str] = ".lua"
    needs_url: ClassVar[str] = "the command prepare makes the tables of a script, in a system that is there"

    def asked(self, files: Sequence[str], words: Sequence[str]) -> Asked:
        """Read sysbench's command line."""
        wanted = _Wanted()
        for word in words:
            wanted.read(word)
        return Asked(
            parts=[NamedFile(file) for file in files],
            workload={"external": True, "options": wanted.options},
            measure={"mixes": ["ALL"], "mix": "ALL"},
            load=wanted.load,
            phase=wanted.phase,
            seed=wanted.seed,
            notes=wanted.notes,
        )

    def meant(self, parts: Sequence[NamedFile]) -> Meant:  # noqa: ARG002 - the same for all scripts
        """Say that the script has made its tables."""
        return Meant(workload={"external": True})

    def made(self, parts: Sequence[NamedFile]) -> Mapping[str, str]:
        """Make the folder: the script, what it requires, and the line that declares it."""
        if len(parts) != 1:
            raise InputError("sysbench: one script is run at a time")
        path = _found(Path(parts[0].name))
        files: dict[str, str] = {}
        module = _module(path.stem)
        _collect(path, module, files)
        files["workload.lua"] = (
            f"-- Made of the script {path.name} of sysbench.\n"
            f"local w = workload {lua_text(module)}\nw:sysbench {lua_text(module)}\n"
        )
        return files


class _Wanted:
    """What a command line of sysbench says."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {COMMAND: "run"}
        self.load: dict[str, Any] = {
            "retry": {
                "attempts": 1000,
                "classes": ["serialization", "deadlock", "lock_timeout", "shutting_down"],
            }
        }
        self.phase: dict[str, Any] = {"concurrency": 1, "duration": _SECONDS}
        self.seed: int | None = None
        self.notes: list[str] = []
        self._has_command = False

    def read(self, word: str) -> None:
        """Read a word. Raises ``InputError``."""
        if not word.startswith("--"):
            if word.startswith("-") or self._has_command:
                raise InputError(f"sysbench {word}: expected --NAME=VALUE, or one command behind the options")
            self.options[COMMAND], self._has_command = word, True
            return
        name, equals, value = word[2:].replace("_", "-").partition("=")
        value = word.partition("=")[2]
        name = _OLDER.get(name, name)
        value = value if equals else "on"
        if name in _REFUSED and value not in {"off", "0"}:
            raise InputError(f"sysbench --{name}: {_REFUSED[name]}")
        if name in _REFUSED:
            return
        if name in _NOTED:
            self.notes.append(f"sysbench --{name}: {_NOTED[name]}")
            return
        take = getattr(self, f"_take_{name.replace('-', '_')}", None)
        if take is not None:
            take(value)
        else:
            self.options[name.replace("-", "_")] = value

    def _take_threads(self, value: str) -> None:
        number = whole("sysbench", "--threads", value)
        self.options["threads"] = number
        if "rate" in self.phase:
            self.load["sessions"] = number
        else:
            self.phase["concurrency"] = number

    def _take_time(self, value: str) -> None:
        if value == "0":
            raise InputError("sysbench --time: 0 has no end; say how many seconds")
        self.phase["duration"] = positive("sysbench", "--time", value)

    def _take_rate(self, value: str) -> None:
        if value != "0":
            self.phase["rate"] = positive("sysbench", "--rate", value)
            self.load["sessions"] = self.phase.pop("concurrency", self.load.get("sessions", 1))

    def _take_report_interval(self, value: str) -> None:
        if value != "0":
            self.load["interval"] = positive("sysbench", "--report-interval", value)

    def _take_rand_seed(self, value: str) -> None:
        self.seed = whole("sysbench", "--rand-seed", value, 0) or None

    def _take_db_ps_mode(self, value: str) -> None:
        modes = {"auto": "prepared", "disable": "simple"}
        if value not in modes:
            raise InputError(f"sysbench --db-ps-mode: {value!r}; allowed are {', '.join(modes)}")
        self.load["statement_mode"] = modes[value]

    def _take_mysql_ignore_errors(self, value: str) -> None:
        codes = [code for code in value.split(",") if code]
        if stray := [code for code in codes if code not in {*_IGNORED_ERRORS, "all"}]:
            known = ", ".join([*_IGNORED_ERRORS, "all"])
            raise InputError(
                f"sysbench --mysql-ignore-errors: {stray[0]!r}; those with a class here are {known}"
            )
        classes = (
            list(_engine.error_classes()) if "all" in codes else [_IGNORED_ERRORS[code] for code in codes]
        )
        self.load["retry"]["classes"] = classes


def _found(path: Path) -> Path:
    """Find a script by its file, or by its name in the package. Raises ``InputError``."""
    candidates = [
        path,
        path.with_name(f"{path.name}.lua"),
        PACKAGED / path.name,
        PACKAGED / f"{path.name}.lua",
    ]
    for candidate in candidates:
        if is_file(candidate):
            return candidate
    raise InputError(f"{path}: there is no such script, nor one of this name in {PACKAGED}")


def _collect(path: Path, module: str, files: dict[str, str]) -> None:
    """Add a script and what it requires, from beside it or from the package. Raises ``InputError``."""
    text = text_of(path)
    files[f"{module}.lua"] = text
    for line in text.splitlines():
        if line.lstrip().startswith("--"):
            continue
        for wanted in _REQUIRE.findall(line):
            named = wanted.replace("/", ".")
            if f"{named}.lua" in files:
                continue
            below = Path(*named.split(".")).with_suffix(".lua")
            places = [folder / below for folder in (path.parent, PACKAGED)]
            if there := next((place for place in places if is_file(place)), None):
                _collect(there, named, files)


def _module(stem: str) -> str:
    """Name a script's file as a workload may be named."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", stem)
    name = name if _NAME.fullmatch(name) else f"_{name}"
    return f"{name}_script" if name == "workload" else name
