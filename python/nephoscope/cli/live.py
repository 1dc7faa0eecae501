"""How a measurement is shown while it goes on: live on a terminal, line by line when piped, or as JSON."""

from __future__ import annotations

import io
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from nephoscope.settings.units import describe_seconds
from nephoscope.visible import json_text, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import ConsoleOptions, RenderableType

    from nephoscope.scoring.definitions import ScoreName
    from nephoscope.scoring.formulas import Score

_BARS = "▁▂▃▄▅▆▇█"
_OF_A_FAILURE = frozenset({"connection_lost", "shutting_down", "read_only", "statement_timeout"})
"""The classes of errors that a node's failure causes; others are never planned."""
_WIDTH = 60


class VisibleConsole(Console):
    """A console whose texts are data: they are no markup, and control characters are escaped.

    Texts are cleaned when they become segments, as everything printed does. Texts that are laid out to a width (cells)
    should be ``visible`` before, because an escape is longer than its character.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - rich's own
        """Print on standard output, or where the options of ``rich`` say."""
        super().__init__(soft_wrap=True, markup=False, highlight=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 - rich's own
        """Make a text of a string."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Make segments of anything; only rich's own controls, which move the cursor, stay as they are."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)


def make_console(*, stderr: bool = False) -> Console:
    """Make a console; piped output is not cut to a terminal's width."""
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        # A character that the encoding lacks is escaped, and no error.
        stream.reconfigure(errors="backslashreplace")
    console = VisibleConsole(stderr=stderr)
    return console if console.is_terminal else VisibleConsole(stderr=stderr, width=160)


class _Rates:
    """The figures of the newest interval."""

    def __init__(self) -> None:
        self.phase: Mapping[str, Any] = {}
        self.tps = 0.0
        self.p99_ms: float | None = None
        self.failed = 0
        self.errors: dict[str, int] = {}
        self.busy = 0.0
        self.history: deque[float] = deque(maxlen=_WIDTH)

    def take(self, record: Mapping[str, Any]) -> None:
        seconds = max(record["end_s"] - record["start_s"], 1e-9)
        self.tps = sum(series["committed"] for series in record["series"]) / seconds
        self.p99_ms = record["p99_ms"]
        self.failed += sum(series["failed"] for series in record["series"])
        self.busy = record["cpu_busy"]
        if seconds >= 0.05:  # noqa: PLR2004 - a sliver at a phase's border is no rate
            self.history.append(self.tps)


def _time_text(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "–"  # noqa: RUF001 - a dash for what is absent
    if milliseconds < 1:
        return f"{milliseconds * 1000:.0f} µs"
    return f"{milliseconds:.3g} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.3g} s"  # noqa: PLR2004


class _Base:
    """What all ways of showing have in common."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.rates = _Rates()
        self.total = 0.0
        self.began = 0.0
        self._planned: str | None = None
        self._expected: dict[str, int] = {}

    def left(self) -> str:
        """Say how much longer it will take."""
        if not self.total:
            return ""
        seconds = self.total - (time.monotonic() - self.began)
        return f"about {describe_seconds(seconds)} left" if seconds > 1 else "nearly done"

    def say(self, message: str) -> None:
        """Tell something that happened."""
        self.console.print(message)

    def begin(self, folder: Path, seconds: float) -> None:
        """Begin to show the load."""
        self.total, self.began = seconds, time.monotonic()
        self.say(f"run: {folder} (about {describe_seconds(seconds)})")

    def score(self, name: ScoreName, score: Score) -> None:
        """Tell a score that has just been measured."""
        from nephoscope.tables.columns import score_line  # noqa: PLC0415 - tables are not for every command

        self.say(score_line(name, score))

    def phase(self, record: Mapping[str, Any]) -> None:
        """Take note of a phase."""
        self.rates.phase = record

    def interval(self, record: Mapping[str, Any]) -> None:
        """Take note of an interval."""
        self.rates.take(record)

    def planned(self, record: Mapping[str, Any]) -> str | None:
        """Name the planned failure that has caused an error; None if none has."""
        return self._planned if record["class"] in _OF_A_FAILURE else None

    def error(self, record: Mapping[str, Any]) -> None:
        """Count errors; each kind is shown once, and those of a planned failure as counts."""
        counts = self._expected if self.planned(record) else self.rates.errors
        known = record["class"] in counts
        counts[record["class"]] = counts.get(record["class"], 0) + record["count"]
        if not known and not self.planned(record):
            self.say(f"error ({record['class']}) in {record['transaction']}: {record['message']}")

    def expect(self, what: str | None) -> None:
        """Record a planned failure; after it, show its errors."""
        if self._expected:
            counts = ", ".join(f"{name} {count:,}" for name, count in self._expected.items())
            self.say(f"expected errors, by the {self._planned}: {counts}")
        self._planned, self._expected = what, {}

    def gap(self, record: Mapping[str, Any]) -> None:
        """Tell that the tool itself did not run for a while."""
        self.say(f"warning: {record['message']}")

    def loading(self, tables: Sequence[tuple[str, int, int]]) -> None:
        """Show how far loading is."""

    def end(self) -> None:
        """Stop showing."""


class LiveView(_Base):
    """A view on a terminal that is drawn anew twice a second."""

    def __init__(self, console: Console) -> None:
        """Show on a console."""
        super().__init__(console)
        self._live: Live | None = None
        self._bars: Progress | None = None
        self._tasks: dict[str, Any] = {}

    def loading(self, tables: Sequence[tuple[str, int, int]]) -> None:
        """Show a bar for each table."""
        if self._bars is None:
            columns = (
                TextColumn("loading {task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
            )
            self._bars = Progress(*columns, TimeRemainingColumn(), console=self.console, transient=True)
            self._bars.start()
        for name, done, rows in tables:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=rows)
            self._bars.update(self._tasks[name], completed=done)

    def say(self, message: str) -> None:
        """Tell something above the view."""
        self._drop_bars()
        super().say(message)

    def _drop_bars(self) -> None:
        """Remove the bars and their tasks: the next load, of another tenant for one, has its own."""
        if self._bars is not None:
            self._bars.stop()
        self._bars = None
        self._tasks.clear()

    def begin(self, folder: Path, seconds: float) -> None:
        """Begin to draw."""
        super().begin(folder, seconds)
        self._live = Live(self._draw(), console=self.console, refresh_per_second=2, transient=True)
        self._live.start()

    def interval(self, record: Mapping[str, Any]) -> None:
        """Draw an interval."""
        super().interval(record)
        if self._live is not None:
            self._live.update(self._draw())

    def phase(self, record: Mapping[str, Any]) -> None:
        """Tell what a measured phase has come to when the next begins."""
        super().phase(record)
        if self._live is not None:
            self._live.update(self._draw())

    def end(self) -> None:
        """Stop drawing."""
        self._drop_bars()
        if self._live is not None:
            self._live.stop()
        self._live = None

    def _draw(self) -> Group:
        rates = self.rates
        grid = Table.grid(padding=(0, 3))
        for _ in range(4):
            grid.add_column()
        name, kind = rates.phase.get("name", "starting"), rates.phase.get("kind", "")
        counting = {"measure": ("measuring", "bold green"), "warm_up": ("warming up", "yellow")}
        grid.add_row(
            Text(visible(name), "bold"), Text(*counting.get(kind, (kind, ""))), "", Text(self.left(), "dim")
        )
        errors = ", ".join(f"{name} {count:,}" for name, count in rates.errors.items()) or "none"
        grid.add_row(
            Text.assemble((f"{rates.tps:,.0f}", "bold cyan"), " TPS"),
            Text.assemble("p99 ", (_time_text(rates.p99_ms), "bold")),
            f"failed {rates.failed:,}",
            f"client CPU {rates.busy:.0%}",
        )
        return Group(
            grid, Text(_sparkline(rates.history), style="cyan"), Text(f"errors: {errors}", style="dim")
        )


def _sparkline(values: Sequence[float]) -> str:
    most = max(values, default=0.0)
    if not most:
        return " "
    return "".join(_BARS[min(round(value / most * (len(_BARS) - 1)), len(_BARS) - 1)] for value in values)


class LineView(_Base):
    """Plain lines, for pipes and logs: one a phase, and one every few seconds."""

    PERIOD_S = 5.0

    def __init__(self, console: Console) -> None:
        """Show on a console."""
        super().__init__(console)
        self._told_s = 0.0
        self._shown: dict[str, int] = {}

    def loading(self, tables: Sequence[tuple[str, int, int]]) -> None:
        """Tell each quarter of the rows, then of the parts of ``w:load``, which come last."""
        is_procedural = bool(tables) and tables[-1][0] == "w:load"
        what, told = ("parts of w:load", tables[-1:]) if is_procedural else ("rows", tables)
        done, whole = sum(done for _, done, _ in told), sum(whole for _, _, whole in told)
        quarter = 4 * done // max(whole, 1)
        if self._shown.get(what, 0) < quarter < 4:  # noqa: PLR2004
            self._shown[what] = quarter
            self.say(f"loading: {done:,} of {whole:,} {what}")

    def phase(self, record: Mapping[str, Any]) -> None:
        """Tell the phase."""
        super().phase(record)
        if record["kind"] in ("measure", "warm_up"):
            self.say(f"{record['time_s']:8.1f} s  {record['name']}")

    def interval(self, record: Mapping[str, Any]) -> None:
        """Tell the figures now and then."""
        super().interval(record)
        if record["end_s"] - self._told_s >= self.PERIOD_S:
            self._told_s = record["end_s"]
            rates = self.rates
            p99 = _time_text(rates.p99_ms)
            figures = f"{rates.tps:,.0f} TPS, p99 {p99}, failed {rates.failed:,}"
            self.say(f"{record['end_s']:8.1f} s  {figures}; {self.left()}")


class JsonView(_Base):
    """One JSON object a line, for machines."""

    def _write(self, event: str, facts: Mapping[str, Any]) -> None:
        sys.stdout.write(json_text({"event": event, **facts}) + "\n")
        sys.stdout.flush()

    def say(self, message: str) -> None:
        """Write a message."""
        self._write("message", {"message": message})

    def begin(self, folder: Path, seconds: float) -> None:
        """Write that the load begins."""
        self._write("begin", {"run": str(folder), "seconds": seconds})

    def score(self, name: ScoreName, score: Score) -> None:
        """Write a score that has just been measured, as ``scores.json`` has it."""
        self._write("score", {"score": name, **score.model_dump(mode="json")})

    def loading(self, tables: Sequence[tuple[str, int, int]]) -> None:
        """Write how far loading is."""
        self._write(
            "loading", {"tables": {name: {"done": done, "rows": rows} for name, done, rows in tables}}
        )

    def phase(self, record: Mapping[str, Any]) -> None:
        """Write a phase."""
        self._write("phase", {key: record[key] for key in ("time_s", "phase", "name", "kind", "labels")})

    def interval(self, record: Mapping[str, Any]) -> None:
        """Write an interval's figures."""
        super().interval(record)
        rates = self.rates
        facts = {
            "time_s": record["end_s"],
            "phase": record["phase"],
            "tps": rates.tps,
            "p99_ms": rates.p99_ms,
        }
        self._write("interval", {**facts, "failed": rates.failed, "cpu_busy": rates.busy})

    def error(self, record: Mapping[str, Any]) -> None:
        """Write errors of one kind, and the planned failure that caused them."""
        facts = {key: value for key, value in record.items() if key != "record"}
        self._write("error", {**facts, "planned": self.planned(record)})

    def expect(self, what: str | None) -> None:
        """Take note of a planned failure."""
        self._planned = what

    def gap(self, record: Mapping[str, Any]) -> None:
        """Write that the tool itself did not run for a while."""
        self._write("gap", record)


def make_view(*, as_json: bool) -> _Base:
    """Choose the view of a measurement by the kind of standard output."""
    console = make_console()
    if as_json:
        return JsonView(console)
    return LiveView(console) if console.is_terminal else LineView(console)
