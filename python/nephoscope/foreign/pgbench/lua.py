"""Writes scripts of pgbench as a workload: a Lua file each, whose commands stand on the lines of the script.

So an error while a transaction runs names the script's own line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.foreign.base import lua_text, mix_lines
from nephoscope.foreign.pgbench.script import OWN, Script, texts, write_expression
from nephoscope.foreign.statements import border_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from nephoscope.foreign.scanning import Command, Sql

RUNTIME = "pgbench_runtime"
_SLEEP = "sleep_on_the_server"


class _Writer:
    """The Lua of one script, and its statements."""

    def __init__(self, script: Script, wanted: set[str], texty: set[str], kept: set[str]) -> None:
        self._script = script
        self._wanted = wanted
        self._texty = texty
        """Variables that may hold a text, which an expression has to read."""
        self._kept = kept
        """Variables whose value goes from one transaction of a session to the next."""
        self._lines: dict[int, list[str]] = defaultdict(list)
        self.statements: dict[str, str] = {}
        self._pipelined = False
        self._makes = any(
            sql.words[:1] == ["CREATE"] for command in script.commands for sql in command.statements
        )
        """Whether it makes tables: what uses them cannot be prepared before."""
        self._joined = any(len(command.statements) > 1 for command in script.commands)

    def file(self) -> str:
        """Write the file."""
        for at, command in enumerate(self._script.commands):
            if command.kind == "sql":
                following = self._script.commands[at + 1 : at + 2]
                self._write_sql(command, following[0] if following else None)
            else:
                self._write_meta(command)
        names = sorted(self._script.assigned | set(self._script.used) | self._stored())
        first = [f'local P = require "{RUNTIME}" return function(tx, pick, v) local NULL = tx.null']
        first += [f"local v_{name} = v.{name}" for name in names]
        if self._joined:
            first.append("local open = false")
        last = [f"v.{name} = v_{name}" for name in names if name in self._kept]
        length = max(self._lines)
        self._lines[1] = first + self._lines[1]
        self._lines[length] += [*last, "end"]
        return "".join(" ".join(self._lines[line]) + "\n" for line in range(1, length + 1))

    def _stored(self) -> set[str]:
        return {
            name for prefix in self._script.prefixes for name in self._script.stored(prefix, self._wanted)
        }

    def _variable(self, name: str) -> str:
        return f"P.value(v_{name}, {lua_text(name)})" if name in self._texty else f"v_{name}"

    def _put(self, line: int, lua: str) -> None:
        self._lines[line].append(lua)

    def _write_meta(self, command: Command) -> None:
        file, line = self._script.file, command.line
        match command.meta:
            case "set":
                name = command.rest.split()[0]
                self._put(line, f"v_{name} = {write_expression(file, command, self._variable)}")
            case "if":
                self._put(line, f"if P.truth({write_expression(file, command, self._variable)}) then")
            case "elif":
                self._put(line, f"elseif P.truth({write_expression(file, command, self._variable)}) then")
            case "else":
                self._put(line, "else")
            case "endif":
                self._put(line, "end")
            case "sleep":
                self._put(line, f'tx:exec("{_SLEEP}", {write_expression(file, command, self._variable)})')
            case "startpipeline":
                self._pipelined = True
            case "endpipeline":
                self._pipelined = False

    def _write_sql(self, command: Command, following: Command | None) -> None:
        store = following if following is not None and following.meta in ("gset", "aset") else None
        sqls = command.statements
        borders = [border_of(sql.text) for sql in sqls]
        # What is sent together is one transaction where none is open.
        alone = len(sqls) > 1 and not any(borders)
        if alone:
            self._put(command.line, "local within = open if not within then tx:begin() end")
            self._lines[command.line].insert(-1, "do")
        waits = not self._pipelined or (following is not None and following.meta == "endpipeline")
        for at, (sql, border) in enumerate(zip(sqls, borders, strict=True)):
            last = at == len(sqls) - 1
            if border is not None:
                self._write_border(sql, border.word, border.modes)
            elif store is not None and (last or store.meta == "aset"):
                self._write_store(sql, store)
            else:
                word = "exec" if waits and last else "queue"
                self._put(sql.line, f"tx:{word}({self._call(sql)})")
        if alone:
            self._put(max(self._last_line(sqls), command.line), "if not within then tx:commit() end end")

    @staticmethod
    def _last_line(sqls: Sequence[Sql]) -> int:
        return sqls[-1].line

    def _write_border(self, sql: Sql, word: str, modes: str) -> None:
        self._put(sql.line, f"tx:{word}()")
        if self._joined:
            self._put(sql.line, f"open = {'true' if word == 'begin' else 'false'}")
        if modes:
            self._put(sql.line, f"tx:queue({self._call(sql, f'SET TRANSACTION {modes}')})")

    def _write_store(self, sql: Sql, store: Command) -> None:
        what = lua_text(f"\\{store.meta} in line {store.line}")
        only = "true" if store.meta == "gset" else "false"
        lua = f"do local row = P.row(tx:rows({self._call(sql)}), {what}, {only})"
        if store.meta == "aset":
            lua += " if row then"
        lua += " local found, value"
        for name in self._script.stored(store.rest, self._wanted):
            column = lua_text(name.removeprefix(store.rest))
            lua += f" found, value = P.column(row, {column}) if found then v_{name} = value end"
        self._put(sql.line, lua + (" end" if store.meta == "aset" else "") + " end")

    @staticmethod
    def _filled(text: str, known: Collection[str]) -> str:
        """Write a text in Lua whose variables have been replaced, in quotation marks as well."""
        parts: list[str] = []
        at = 0
        for found in _VARIABLE.finditer(text):
            if found[1] in known:
                parts += [lua_text(text[at : found.start()]), f"P.text(v_{found[1]}, {lua_text(found[1])})"]
                at = found.end()
        return " .. ".join([*parts, lua_text(text[at:])])

    def _call(self, sql: Sql, text: str | None = None) -> str:
        """Name a statement and its parameters; or put values into its text, where no parameter may stand."""
        known = self._wanted | self._script.assigned
        if text is None and (self._makes or sql.glued or known & set(sql.quoted) or _is_utility(sql)):
            return f"tx:query({self._filled(sql.text.strip(), known)})"
        name = f"{self._script.name}_{sql.line}"
        while name in self.statements:
            name += "_"
        self.statements[name] = text or sql.text.strip()
        values = [f"P.sql(v_{variable}, {lua_text(variable)}, NULL)" for variable in sql.variables]
        return ", ".join([lua_text(name), *values])


_VARIABLE = re.compile(r"(?<!:):([A-Za-z_]\w*)", re.ASCII)
_WITH_PARAMETERS = {"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "VALUES", "WITH", "TABLE", "EXPLAIN"}


def _is_utility(sql: Sql) -> bool:
    """Tell whether a statement has variables and is none of those that take parameters."""
    return bool(sql.variables) and not _WITH_PARAMETERS & set(sql.words[:1])


def _unsure(script: Script) -> set[str]:
    """Name the variables that a script may want before it has set them."""
    sure: set[str] = set()
    found: set[str] = set()
    depth = 0

    def want(name: str) -> str:
        if name not in sure:
            found.add(name)
        return "0LL"

    for command in script.commands:
        if command.meta in ("set", "if", "elif", "sleep"):
            write_expression(script.file, command, want)
        for sql in command.statements:
            for name in sql.variables:
                want(name)
        depth += (command.meta == "if") - (command.meta == "endif")
        if command.meta == "set" and depth == 0:
            sure.add(command.rest.split()[0])
    return found


def write_workload(
    scripts: Sequence[Script], weights: Mapping[str, int], extended: Mapping[str, int]
) -> dict[str, str]:
    """Write the files of the workload's folder; ``extended`` has the weights of transactions of ``tpcb``.

    Raises ``InputError`` with a script's file and line.
    """
    used = texts(scripts)
    wanted = set(used)
    assigned = {name for script in scripts for name in script.assigned}
    stored = {
        name for script in scripts for prefix in script.prefixes for name in script.stored(prefix, wanted)
    }
    unsure = {name for script in scripts for name in _unsure(script)}
    options = {
        name: line if name not in assigned | stored else 0
        for name, line in used.items()
        if name not in OWN and (name in unsure or name not in assigned | stored)
    }
    kept = unsure & (assigned | stored)
    texty = stored | set(options) | (unsure - set(OWN))
    statements: dict[str, str] = {}
    files: dict[str, str] = {f"{RUNTIME}.lua": (Path(__file__).parent / "runtime.lua").read_text()}
    if any(command.meta == "sleep" for script in scripts for command in script.commands):
        # A session itself does not pause within a transaction.
        statements[_SLEEP] = "SELECT pg_sleep(:seconds)"
    for script in scripts:
        writer = _Writer(script, wanted, texty, kept)
        files[f"{script.name}.lua"] = writer.file()
        statements |= writer.statements
    reading = {script.name for script in scripts if script.reads_only} | ({"select_only"} & set(extended))
    files["workload.lua"] = "\n".join(
        [
            *_head(scripts, options, {name for name in OWN if name in wanted}, extended),
            *(f"w:statement({lua_text(name)}, {lua_text(sql)})" for name, sql in statements.items()),
            *map(_transaction, scripts),
            *mix_lines({**weights, **extended}, reading),
            "",
        ]
    )
    return files


def _head(
    scripts: Sequence[Script], options: Mapping[str, int], own: set[str], extended: Mapping[str, int]
) -> list[str]:
    file = scripts[0].file
    lines = ['local w = workload "pgbench"', 'w:describe "scripts of pgbench"', "local given = {}"]
    if extended:
        lines.insert(2, 'w:extends "tpcb"')
    lines.append(f'local P = require "{RUNTIME}"')
    for name, line in options.items():
        # Without a line the script may set it before it is wanted.
        lacking = f"error({lua_text(_lacking(file, line, name))}, 0)" if line else f"given.{name} = nil"
        lines += [
            f'given.{name} = w:option("{name}", "text", "", "the variable :{name}, pgbench\'s -D", {{ data = false }})',
            f'if given.{name} == "" then {lacking} end',
        ]
    for name, meaning in _OWN_OPTIONS.items():
        if name in own:
            lines.append(f'given.{name} = w:option("{name}", "integer", 0, "{meaning}", {{ data = false }})')
            lines.append(f"given.{name} = 0LL + given.{name}")
    if "scale" in own:
        lines.append('if w.scale % 1 ~= 0 then error(":scale must be a whole number", 0) end')
        lines.append("given.scale = 0LL + w.scale")
    lines += [
        "w:session(function(tx)",
        "  local v = {}",
        "  for name, value in pairs(given) do v[name] = value end",
        *(["  v.client_id = 0LL + (tx.session - 1)"] if "client_id" in own else []),
        "  return v",
        "end)",
    ]
    return lines


_OWN_OPTIONS = {
    "default_seed": "the variable :default_seed, of hash functions and permutations",
    "random_seed": "the variable :random_seed",
}


def _lacking(file: str, line: int, name: str) -> str:
    return (
        f"{Path(file).name}:{line}: :{name} is never set; -D {name}=VALUE or workload.options.{name} sets it"
    )


def _transaction(script: Script) -> str:
    settings = f"read_only = {'true' if script.reads_only else 'false'}"
    return f'w:transaction("{script.name}", {{ {settings} }}, require "{script.name}")'
