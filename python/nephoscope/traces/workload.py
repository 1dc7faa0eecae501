"""A workload made of a trace: its transactions with the values that they had, its mix, and how they arrived."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.foreign.base import ALL, lua_text, mix_lines
from nephoscope.foreign.statements import border_of
from nephoscope.settings.units import format_duration
from nephoscope.traces.planning import plan_replay
from nephoscope.traces.trace import StoredTrace, shapes
from nephoscope.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from nephoscope.traces.planning import ReplayPlan

_SHAPES = 20
"""So many shapes of transactions have a name of their own; the rest share one."""
_EXAMPLES = (1, 10_000)
_SLOTS = 120
_EXAMPLE_BYTES = 16 << 20
_REST = "other"
_NAME = "trace"
"""Of the workload, its folder and the study."""
_SECOND_US = 1_000_000

_WRITES = re.compile(r"\b(for|into|nextval|setval)\b", re.IGNORECASE)
_PLAY = """-- Plays one of the transactions that were recorded.
return function(tx, pick, examples)
  for _, step in ipairs(examples[pick.integer(1, #examples)]) do
    if step == "begin" then tx:begin()
    elseif step == "commit" then tx:commit()
    elseif step == "rollback" then tx:rollback()
    else tx:exec(tx:query(step)) end
  end
end
"""


@dataclass(frozen=True)
class MadeWorkload:
    """What was made of a trace."""

    transactions: int
    """Of the trace, without those that it has a part of only."""
    shapes: int
    """Sequences of statements; the most frequent have a transaction each."""
    examples: int
    """Transactions that are in the workload with their values."""
    slots: int
    slot_s: float
    left_out: dict[str, int]
    """Transactions of the trace that are not in it: why, and how many."""


def make_workload(trace_file: Path, folder: Path, *, examples: int, slot_s: float | None) -> MadeWorkload:
    """Write a workload and a study that runs it into a new folder.

    Each of the most frequent shapes (sequences of statements) is a transaction; whoever runs it plays one of up to
    ``examples`` recorded ones, spread evenly over the trace. A phase of the study has the rate of one slot; without
    ``slot_s`` there are 120 slots at most, of whole seconds.

    Raises:
        InputError: it is no trace, nothing of it can be run, or the folder is there already.
        MeasurementError: the folder cannot be written.

    """
    if not _EXAMPLES[0] <= examples <= _EXAMPLES[1]:
        raise InputError(f"--examples {examples}: allowed are {_EXAMPLES[0]} to {_EXAMPLES[1]:,}")
    if os.path.lexists(folder):
        raise InputError(f"{folder} is there already (allowed: a new folder)")
    trace = StoredTrace(trace_file)
    try:
        made = _Maker(trace, plan_replay(trace), examples)
        files = made.files()
        slot_s = slot_s or max(1.0, float(np.ceil(made.length_s / _SLOTS)))
        rates = made.rates(slot_s)
    finally:
        trace.close()
    try:
        (folder / _NAME).mkdir(parents=True)
        (folder / "study.toml").write_text(_study(trace_file.name, folder.name, rates, slot_s))
        for name, text in files.items():
            (folder / _NAME / name).write_text(text)
    except OSError as error:
        raise MeasurementError(f"{folder} cannot be written: {error.strerror or error}") from None
    return MadeWorkload(
        transactions=made.transactions,
        shapes=made.shapes,
        examples=made.examples,
        slots=len(rates),
        slot_s=slot_s,
        left_out=made.left_out,
    )


class _Maker:
    """Chooses examples of the transactions of a trace, and writes them."""

    def __init__(self, trace: StoredTrace, plan: ReplayPlan, most: int) -> None:
        self._trace = trace
        self._plan = plan
        self.left_out = dict(plan.left_out)
        rows = np.flatnonzero(plan.is_sent)
        self._rows = rows[np.lexsort((trace.column("place")[rows], plan.transaction[rows]))]
        self._starts, self._sizes, shape = shapes(plan.transaction[self._rows], plan.fingerprint[self._rows])
        self._begun = plan.time_us[self._rows[self._starts]]
        self.transactions = len(self._starts)
        self.length_s = float(np.ptp(self._begun)) / _SECOND_US
        self.shapes = int(shape.max()) + 1
        of_name = {
            f"t{number + 1}" if number < _SHAPES else _REST: np.flatnonzero(
                shape == number if number < _SHAPES else shape >= _SHAPES
            )
            for number in range(min(self.shapes, _SHAPES + 1))
        }
        self._weights = {name: len(places) for name, places in of_name.items()}
        self._chosen = {name: _spread(places, most) for name, places in of_name.items()}
        self.examples = 0

    def files(self) -> dict[str, str]:
        """Write the workload's files by their names. Raises ``InputError`` where nothing is left."""
        steps = self._steps()
        written: dict[str, str] = {}
        weights, reading, left = {}, [], _EXAMPLE_BYTES
        for name, chosen in self._chosen.items():
            examples = [steps[int(at)] for at in chosen]
            lines = [f"  {{ {', '.join(map(lua_text, example))} }},\n" for example in examples]
            while sum(map(len, lines)) > left and len(lines) > 1:
                lines = lines[::2]
            left -= min(left, sum(map(len, lines)))
            written[f"{name}.lua"] = f"return {{\n{''.join(lines)}}}\n"
            weights[name] = self._weights[name]
            self.examples += len(lines)
            if all(_reads(step) for example in examples for step in example):
                reading.append(name)
        written["play.lua"] = _PLAY
        written["workload.lua"] = self._workload(weights, reading)
        return written

    def _workload(self, weights: dict[str, int], reading: Sequence[str]) -> str:
        lines = [
            "-- Made by `nephoscope trace workload`: the statements of the trace, with the values that they had.",
            f'local w = workload "{_NAME}"',
            f"w:describe {lua_text(f'{self.transactions} transactions of {self._trace.path.name}')}",
            'local play = require "play"',
        ]
        for name in weights:
            only = ", { read_only = true }" if name in reading else ""
            lines.append(
                f'local {name} = require "{name}"\n'
                f'w:transaction("{name}"{only}, function(tx, pick) play(tx, pick, {name}) end)'
            )
        return "\n".join([*lines, *mix_lines(weights, reading), ""])

    def _steps(self) -> dict[int, list[str]]:
        """Give the steps of each chosen transaction, with their values."""
        owner: dict[int, int] = {}
        for chosen in self._chosen.values():
            for at in chosen:
                start, size = self._starts[at], self._sizes[at]
                owner |= dict.fromkeys(self._rows[start : start + size].tolist(), int(at))
        texts: dict[int, str] = {}
        first = 0
        for batch in self._trace.batches(["statement", "kinds", "parameters"]):
            wanted = [row for row in range(first, first + batch.num_rows) if row in owner]
            taken: Any = batch.take(np.array(wanted, np.int64) - first)
            for row, found in zip(wanted, taken.to_pylist(), strict=True):
                texts[row] = self._step(row, found)
            first += batch.num_rows
        steps: dict[int, list[str]] = {}
        for row in self._rows.tolist():
            if row in owner:
                steps.setdefault(owner[row], []).append(texts[row])
        return steps

    def _step(self, row: int, found: dict[str, Any]) -> str:
        try:
            sql = _engine.filled_sql(
                found["statement"], found["kinds"], found["parameters"], self._trace.meta.dialect
            )
        except InputError as error:
            raise InputError(f"{self._trace.path}: row {row} (from 0): {error}") from None
        border = border_of(sql)
        return sql if border is None else border.word

    def rates(self, slot_s: float) -> list[float]:
        """Give the transactions a second of each slot."""
        slots = (self._begun - self._begun.min()) // round(slot_s * _SECOND_US)
        return [count / slot_s for count in np.bincount(slots.astype(np.int64)).tolist()]


def _spread(places: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Choose some places, evenly."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).astype(np.int64)]


def _reads(step: str) -> bool:
    """Tell whether a step is known to neither write nor lock."""
    words = step.lower().split(None, 1)
    return words[0] in {"begin", "commit", "rollback"} or (words[0] == "select" and not _WRITES.search(step))


def _study(trace: str, folder: str, rates: Sequence[float], slot_s: float) -> str:
    """Write a study whose phases have the rates of the slots; slots of the same rate are one phase."""
    phases: list[dict[str, Any]] = []
    for rate, slots in ((rate, len(list(of))) for rate, of in groupby(rates)):
        how = {"rate": rate, "arrivals": "poisson"} if rate else {"kind": "pause"}
        phases.append({"duration": format_duration(slots * slot_s), **how})
    # The first slot has the first transaction.
    phases[0]["mix"] = ALL
    head = (
        f"# The transactions of {visible(trace)} at the rates at which they arrived.\n#\n"
        f"#   export RW_URL=…\n#   nephoscope run {visible(folder)}/study.toml\n\n"
    )
    study = {
        "study": {"name": _NAME},
        "system": {"provider": "url", "rw": "${RW_URL}"},
        "workload": {"name": f"./{_NAME}", "external": True},
        "measure": [{"evaluator": "load", "phases": phases}],
    }
    return head + tomli_w.dumps(study)
