"""pgbench itself, beside which scripts run here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from nephoscope.foreign.naming import folder_of, named
from nephoscope.foreign.pgbench.expressions import ExpressionError, expression
from nephoscope.foreign.pgbench.lua import RUNTIME
from nephoscope.study.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HAS_PGBENCH = shutil.which("pgbench") is not None


@dataclass(frozen=True)
class Result:
    """A value as pgbench's function debug shows it; of an error, what it says."""

    kind: str
    text: str


def pgbench(url: str, script: Path, *options: str) -> subprocess.CompletedProcess[str]:
    parts = urlsplit(url)
    environment = {
        **os.environ,
        "PGHOST": parts.hostname or "",
        "PGPORT": str(parts.port),
        "PGUSER": parts.username or "",
        "PGPASSWORD": parts.password or "",
        "PGDATABASE": parts.path.strip("/"),
    }
    command = ["pgbench", "-n", *options, "-f", str(script)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def theirs(url: str, folder: Path, expressions: Sequence[str], variables: Mapping[str, str]) -> list[Result]:
    """The values that pgbench computes; an error ends the list."""
    script = folder / "expressions.sql"
    script.write_text("".join(f"\\set x debug({text})\n" for text in expressions) + "SELECT 1;\n")
    defined = [word for name, value in variables.items() for word in ("-D", f"{name}={value}")]
    ended = pgbench(url, script, "-t", "1", *defined)
    found = re.findall(r"debug\(script=0,command=\d+\): (\w+)(?: (\S+))?", ended.stderr)
    results = [Result(kind, text) for kind, text in found]
    if len(results) < len(expressions):
        wrong = re.search(r"pgbench: error: (?!client)(.*)", ended.stderr)
        assert wrong, ended.stderr
        results.append(Result("error", wrong[1]))
    return results


def ours(folder: Path, expressions: Sequence[str], variables: Mapping[str, str]) -> list[Result]:
    """The values that the same expressions have here, by a workload that describes itself with them."""
    folder.mkdir(exist_ok=True)
    runtime = folder_of_runtime(folder)
    lines = [f'local P = require "{RUNTIME}"', 'local w = workload "expressions"', _SHOW]
    for name, value in variables.items():
        lines.append(f'local v_{name} = P.value("{value}", "{name}")')
    for text in expressions:
        try:
            lua = expression(text, lambda name: f"v_{name}")
        except ExpressionError as error:
            lua = f'error("{str(error)!r}", 0)'
        lines.append(f"out[#out + 1] = show(pcall(function() return {lua} end))")
    lines += ['w:describe(table.concat(out, "\\n"))', 'w:statement("one", "SELECT 1")']
    lines += ['w:transaction("one", function(tx) tx:exec("one") end)']
    (folder / "workload.lua").write_text("\n".join(lines))
    workload = Workload(folder, 1.0, 7, {}, "noop://")
    assert runtime
    shown = str(workload.description["description"]).split("\n")
    return [Result(*line.split(" ", 1)) if " " in line else Result(line, "") for line in shown]


def folder_of_runtime(folder: Path) -> Path:
    """Put the runtime of scripts into a folder."""
    script = folder / "any.sql"
    script.write_text("SELECT 1;")
    found = named(f"pgbench:{script}")
    assert found
    return Path(shutil.copy(folder_of(found) / f"{RUNTIME}.lua", folder))


_SHOW = """
local out = {}
local function show(worked, value)
  if not worked then return "error " .. tostring(value) end
  if value == P.NULL then return "null" end
  if type(value) == "cdata" then return "int " .. tostring(value):gsub("LL$", "") end
  if type(value) == "number" then return "double " .. ("%.17g"):format(value) end
  return type(value) .. " " .. tostring(value)
end
"""
