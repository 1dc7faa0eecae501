"""A script of pgbench: what its commands are, and what they do with variables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nephoscope.foreign.base import refuse
from nephoscope.foreign.pgbench.expressions import ExpressionError, expression
from nephoscope.foreign.scanning import Command, commands
from nephoscope.foreign.statements import border_of, reads_only

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

OWN = ("client_id", "default_seed", "random_seed", "scale")
"""Variables that pgbench sets itself."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFUSED = {
    "setshell": "runs a program, and a workload has none",
    "shell": "runs a program, and a workload has none",
    "syncpipeline": "is not supported; \\endpipeline and \\startpipeline have its effect, and wait for the answers",
}
_KNOWN = ("set", "sleep", "if", "elif", "else", "endif", "gset", "aset", "startpipeline", "endpipeline")
_MOST_VARIABLES = 150
"""Lua takes 200 local variables in a function."""

_NO_STATEMENT = re.compile(
    r"(COMMIT|END|ROLLBACK|ABORT)\b(?!\s+(WORK\s+|TRANSACTION\s+)?TO\b)|PREPARE\s+TRANSACTION\b",
    re.IGNORECASE,
)


@dataclass
class Script:
    """A script that has been read."""

    file: str
    name: str
    """The name of its transaction."""
    commands: Sequence[Command]
    assigned: set[str] = field(default_factory=set)
    r"""Variables that ``\set`` sets."""
    prefixes: set[str] = field(default_factory=set)
    r"""What the names of variables begin with that ``\gset`` and ``\aset`` set."""
    used: dict[str, int] = field(default_factory=dict)
    """Variables whose value is wanted, and the line that wants it first."""

    @property
    def reads_only(self) -> bool:
        """Whether no statement is known to write or to lock."""
        return reads_only(sql for command in self.commands for sql in command.statements)

    def stored(self, prefix: str, wanted: set[str]) -> list[str]:
        r"""Name the variables that ``\gset`` with a prefix may set, of those whose value is wanted anywhere."""
        return sorted(name for name in wanted if name.startswith(prefix) and name != prefix)


def read_script(file: str, name: str, text: str) -> Script:
    """Read a script. Raises ``InputError`` with file and line."""
    script = Script(file, name, commands(file, text))
    if not any(command.statements for command in script.commands):
        refuse(file, 1, "the script has no SQL")
    blocks = _Blocks(file)
    for at, command in enumerate(script.commands):
        if command.kind == "sql":
            _read_sql(script, command)
            continue
        _check_known(file, command)
        blocks.take(command)
        if command.meta in ("gset", "aset"):
            _store(script, command, at, blocks.pipeline)
        _use_expression(script, command)
    blocks.end()
    if len(script.assigned | set(script.used)) > _MOST_VARIABLES:
        refuse(file, 1, f"the script has more than {_MOST_VARIABLES} variables")
    return script


def _check_known(file: str, command: Command) -> None:
    if command.meta in _REFUSED:
        refuse(file, command.line, f"\\{command.meta} {_REFUSED[command.meta]}")
    if command.meta not in _KNOWN:
        known = ", ".join(f"\\{word}" for word in _KNOWN)
        refuse(file, command.line, f"\\{command.meta} is not known; meta commands are {known}")
    if command.meta in ("else", "endif", "startpipeline", "endpipeline") and command.rest:
        refuse(file, command.line, f"\\{command.meta} takes nothing; {command.rest!r} is one too many")


def _read_sql(script: Script, command: Command) -> None:
    for sql in command.statements:
        if border_of(sql.text) is None and _NO_STATEMENT.match(sql.text.strip()):
            words = " ".join(sql.text.split())[:60]
            refuse(
                script.file, sql.line, f"{words}: transactions end by COMMIT, END, ROLLBACK or ABORT alone"
            )
        for name in sql.variables:
            if not _NAME.fullmatch(name):
                refuse(
                    script.file, sql.line, f":{name}: a variable's name has letters A to Z, digits and _ here"
                )
            script.used.setdefault(name, sql.line)


class _Blocks:
    r"""What is open: each ``\if``, and a pipeline."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._opened: list[tuple[int, str]] = []
        self.pipeline = 0
        """The line in which it has begun; 0 for none."""

    def take(self, command: Command) -> None:
        if command.meta in ("if", "elif", "else", "endif"):
            self._branch(command)
        elif command.meta in ("startpipeline", "endpipeline"):
            if (command.meta == "startpipeline") == bool(self.pipeline):
                where = f"one has begun in line {self.pipeline}" if self.pipeline else "none has begun"
                refuse(self._file, command.line, f"\\{command.meta}: {where}")
            self.pipeline = 0 if self.pipeline else command.line

    def _branch(self, command: Command) -> None:
        if command.meta == "if":
            self._opened.append((command.line, "if"))
            return
        if not self._opened:
            refuse(self._file, command.line, f"\\{command.meta} without an \\if")
        line, last = self._opened.pop()
        if command.meta != "endif":
            if last == "else":
                refuse(self._file, command.line, f"\\{command.meta} behind the \\else")
            self._opened.append((line, command.meta))

    def end(self) -> None:
        if self._opened:
            refuse(self._file, self._opened[-1][0], "the \\if has no \\endif")
        if self.pipeline:
            refuse(self._file, self.pipeline, "the \\startpipeline has no \\endpipeline")


def _store(script: Script, command: Command, at: int, pipeline: int) -> None:
    before = script.commands[at - 1] if at else None
    if before is None or not before.statements:
        refuse(script.file, command.line, f"\\{command.meta} follows a statement, whose row it stores")
    if pipeline:
        refuse(
            script.file,
            command.line,
            f"\\{command.meta} is not allowed between \\startpipeline and \\endpipeline",
        )
    if command.rest and not _NAME.fullmatch(command.rest):
        refuse(script.file, command.line, f"\\{command.meta}: {command.rest!r} must be a prefix of names")
    if any(border_of(sql.text) for sql in before.statements):
        refuse(
            script.file,
            command.line,
            f"\\{command.meta}: BEGIN and COMMIT give no row; end them with a semicolon",
        )
    script.prefixes.add(command.rest)


def _use_expression(script: Script, command: Command) -> None:
    """See which variables an expression wants, and whether it is one."""

    def want(name: str) -> str:
        script.used.setdefault(name, command.line)
        return "0LL"

    if command.meta in ("set", "if", "elif", "sleep"):
        write_expression(script.file, command, want)
    if command.meta == "set":
        script.assigned.add(target_of(script.file, command)[0])


def target_of(file: str, command: Command) -> tuple[str, str]:
    r"""Take a ``\set`` apart: the variable, and the expression."""
    name, _, text = command.rest.replace("\t", " ").partition(" ")
    if not _NAME.fullmatch(name) or not text.strip():
        refuse(file, command.line, "expected \\set NAME EXPRESSION; a name has letters A to Z, digits and _")
    return name, text


_SLEEP = re.compile(r"(?P<number>\d+|:[A-Za-z_]\w*)(?:\s*(?P<unit>us|ms|s))?", re.ASCII)
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, None: 1.0}


def write_expression(file: str, command: Command, variable: Callable[[str], str]) -> str:
    """Write the expression of a meta command as Lua. Raises ``InputError`` with file and line."""
    text = command.rest
    factor = None
    if command.meta == "set":
        text = target_of(file, command)[1]
    elif command.meta == "sleep":
        found = _SLEEP.fullmatch(text)
        if found is None:
            refuse(file, command.line, "expected \\sleep NUMBER, and us, ms or s behind it")
        text, factor = found["number"], _UNITS[found["unit"]]
    try:
        lua = expression(text, variable)
    except ExpressionError as error:
        refuse(file, command.line, f"\\{command.meta} {command.rest}: {error}")
    return lua if factor is None else f"P.seconds({lua}, {factor!r})"


def texts(scripts: Sequence[Script]) -> Mapping[str, int]:
    """Gather which variables are wanted in any script, with a line each."""
    wanted: dict[str, int] = {}
    for script in scripts:
        for name, line in script.used.items():
            wanted.setdefault(name, line)
    return wanted
