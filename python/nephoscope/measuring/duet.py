"""A duet: two systems under one schedule at the same time, each measured by a process of its own."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.files import make_folders
from nephoscope.interrupts import Interrupted
from nephoscope.measuring.preparing import any_url, prepare
from nephoscope.measuring.side import COMMAND, SideOrder
from nephoscope.settings.variables import endpoint, redacted_url
from nephoscope.store.layout import check_runs
from nephoscope.systems.machine.folders import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nephoscope.study.reading import Study

FILES = SimpleNamespace(a="a", b="b", result="duet.json")
"""The folder of a duet: each side's run directories, and the result."""

_SIDES = (FILES.a, FILES.b)
_LEAD_NS = 20_000_000
"""How long before its time both sides are told when to go."""
_PERIOD_S = 5.0
"""How often both rates are told."""
_IN_PROCESS = {"sim", "noop"}
"""The schemes whose systems live in the process that measures them."""


@dataclass(frozen=True)
class DuetPlan:
    """What a duet measures: the study, and the study with other settings of its system."""

    study: Study
    other: Study
    orders: tuple[SideOrder, SideOrder]
    same: bool
    """Whether both are the same system."""
    folder: Path

    def keep(self) -> None:
        """Make the folders. Raises ``InputError`` where there is a duet, or they cannot be made."""
        if taken := next((name for name in vars(FILES).values() if (self.folder / name).exists()), None):
            raise InputError(f"{self.folder} holds a duet, or another's {taken}; --out names another folder")
        for name in _SIDES:
            check_runs(self.folder / name)
        try:
            make_folders(self.folder)
        except OSError as error:
            raise InputError(f"no duet can be kept in {self.folder}: {error.strerror}") from None


@dataclass
class DuetOutcome:
    """What came of a duet."""

    runs: list[tuple[Path, Path]] = field(default_factory=list)
    """The run directories of both sides, run by run."""
    fault: str | None = None
    """Why it is not whole; None where both were measured to the end."""


def plan_duet(
    path: Path,
    name: str,
    settings: Sequence[str],
    others: Sequence[str],
    *,
    url: str | None,
    folder: Path | None,
) -> DuetPlan:
    """Read and check both studies; ``others`` is put over the second one.

    Without a ``folder`` it is a new one in ``duets``. Raises ``InputError``.
    """
    for override in others:
        key, equals, _ = override.partition("=")
        if not equals:
            raise InputError(f"--with {override}: expected key=value, such as system.version=16")
        if not f"{key.strip()}.".startswith(("system.", "load.on_connect.")):
            raise InputError(
                f"--with {_engine.redact(override)}: a duet compares systems under one load; allowed: keys of system,"
                " and load.on_connect"
            )
    orders = [SideOrder(str(path), name, given, url) for given in (settings, [*settings, *others])]
    study, other = (order.study() for order in orders)
    for one in (study, other):
        _check(one, name)
    _check_places(study, other)
    if folder is None:
        folder = Path("duets") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{study.study.name}"
    first, second = (
        replace(order, runs=str(folder / side), data=str(data) if data else None)
        for order, side, data in zip(orders, _SIDES, _folders(study, other), strict=True)
    )
    return DuetPlan(first.study(), second.study(), (first, second), not others, folder)


def _check(study: Study, name: str) -> None:
    if study.workload.scales is not None or study.factor:
        raise InputError(f"{name}: a duet measures one scale factor: no workload.scales and no [[factor]]")
    _, evaluators = prepare(study, any_url(study))
    for index, evaluator in enumerate(evaluators):
        if not evaluator.is_scheduled:
            raise InputError(
                f"{name}: measure.{index}: {evaluator.name} decides by what it measures what comes next, and two"
                " systems would part; allowed: phases and levels that the study names"
            )


def _folders(study: Study, other: Study) -> tuple[Path | None, Path | None]:
    """Choose the folders of systems that this tool starts itself: two of one folder cannot be."""
    found: list[Path | None] = []
    for side, one in zip(_SIDES, (study, other), strict=True):
        system = one.system
        data: Path | None = None
        if "data" in type(system).model_fields:
            version = getattr(system, "version", None)
            own = system.provider if version is None else f"{system.provider}-{version}"
            given = getattr(system, "data", None)
            data = cache_folder() / "duet" / side / own if given is None else Path(given)
        found.append(data)
    first, second = found
    if first is not None and second is not None and _whole(first) == _whole(second):
        second = first.with_name(f"{first.name}-{FILES.b}")
    return first, second


def _whole(folder: Path) -> Path:
    return folder.expanduser().resolve()


def _check_places(study: Study, other: Study) -> None:
    """Refuse two systems at one place: their loads would change the same rows."""
    ours = dict(_places(study))
    for place, url in _places(other):
        if place in ours:
            raise InputError(
                f"system.rw: both systems are at {redacted_url(url)}; --with system.rw=URL names the place of the"
                " other, a server or database of its own"
            )


def _places(study: Study) -> Iterator[tuple[tuple[str | None, ...], str]]:
    for url in getattr(study.system, "rw", ()):
        parts = urlsplit(endpoint(url, "system.rw"))
        if parts.scheme not in _IN_PROCESS:
            at = parse_qs(parts.query).get("endpoint", [None])[0]
            yield (parts.netloc.rpartition("@")[2].lower(), parts.path.rstrip("/"), at), url


def run_duet(plan: DuetPlan, runs: int, say: Callable[[str], object]) -> DuetOutcome:
    """Measure both systems at the same time, as often as ``runs``; each time they are started anew.

    What was measured is kept, also where a side fails or the duet is interrupted: both end whole then.
    """
    outcome = DuetOutcome()
    for number in range(1, runs + 1):
        if runs > 1:
            say(f"run {number} of {runs}")
        pair = _Pair(plan.orders, say)
        folders = pair.run()
        if folders is not None:
            outcome.runs.append(folders)
        outcome.fault = pair.fault
        if outcome.fault is not None:
            break
    return outcome


class _SideProcess:
    """The process of a side: what it says is put into a queue with its name, and None at its end."""

    def __init__(self, name: str, order: SideOrder, heard: queue.SimpleQueue[_Heard]) -> None:
        self.name, self._heard = name, heard
        self._process = subprocess.Popen(
            [sys.executable, *COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a terminal's Ctrl-C is for us, and we say what follows
        )
        threading.Thread(target=self._listen, name=f"side {name}", daemon=True).start()
        self.say(order.line())

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            self._heard.put((self.name, json.loads(line)))
        self._heard.put((self.name, None))

    def say(self, line: str) -> None:
        """Write a line; that nobody reads it shows in the side's end."""
        if (pipe := self._process.stdin) is not None and not pipe.closed:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(line)
                pipe.flush()

    def stop(self) -> None:
        """Have the run ended as by an interruption: what was measured is kept."""
        if (pipe := self._process.stdin) is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def bury(self) -> None:
        """Wait for its end, which it has announced."""
        self.stop()
        self._process.wait()


_Heard = tuple[str, "Mapping[str, Any] | None"]


class _Pair:
    """Two sides that are measured at the same time."""

    def __init__(self, orders: Sequence[SideOrder], say: Callable[[str], object]) -> None:
        self._heard: queue.SimpleQueue[_Heard] = queue.SimpleQueue()
        self._orders, self._say = orders, say
        self._sides: list[_SideProcess] = []
        self._ready: set[str] = set()
        self._gone: set[str] = set()
        self._ended: set[str] = set()
        self._runs: dict[str, Path] = {}
        self._rates: dict[str, float] = {}
        self._told_s = 0.0
        self.fault: str | None = None
        """Why it is not whole: what went wrong first."""
        self._bad_input: str | None = None

    def run(self) -> tuple[Path, Path] | None:
        """Measure; gives both run directories, if both were made. Raises ``InputError`` where a side was refused."""
        try:
            try:
                self._sides += [
                    _SideProcess(name, order, self._heard)
                    for name, order in zip(_SIDES, self._orders, strict=True)
                ]
                self._attend()
            except Interrupted as error:
                self._give_up(str(error) or "interrupted")
                self._attend()
        except BaseException:
            for side in self._sides:
                side.kill()
            raise
        finally:
            for side in self._sides:
                side.bury()
        if self._bad_input is not None:
            raise InputError(self._bad_input)
        return (self._runs[FILES.a], self._runs[FILES.b]) if len(self._runs) == len(_SIDES) else None

    def _give_up(self, why: str) -> None:
        """Remember what went wrong first, and end both sides."""
        self.fault = self.fault or why
        for side in self._sides:
            side.stop()

    def _attend(self) -> None:
        """Hear what the sides say until both have ended."""
        while len(self._gone) < len(self._sides):
            name, event = self._heard.get()
            if event is None:
                self._gone.add(name)
                if name not in self._ended:
                    self._give_up(f"{name.upper()}: it ended without a word")
            else:
                self._hear(name, event)

    def _hear(self, name: str, event: Mapping[str, Any]) -> None:
        shown = name.upper()
        match event["event"]:
            case "said":
                self._say(f"{shown}: {event['message']}")
            case "begin":
                self._runs[name] = Path(event["run"])
                self._say(f"{shown}: run: {event['run']}")
            case "phase" if name == FILES.a and event["kind"] in ("measure", "warm_up"):
                self._say(str(event["name"]))
            case "interval":
                self._rates[name] = event["tps"]
                self._tell_rates()
            case "ready":
                self._ready.add(name)
                if len(self._ready) == len(_SIDES):
                    self._go()
            case "end":
                self._end(name, event)

    def _end(self, name: str, event: Mapping[str, Any]) -> None:
        """Take note of a side's end; where it has not measured everything, the other one ends too."""
        self._ended.add(name)
        if event["exit_code"] != 0:
            why = f"{name.upper()}: {event['reason']}"
            if event["exit_code"] == InputError.exit_code and self.fault is None:
                self._bad_input = why
            self._give_up(why)

    def _go(self) -> None:
        """Let both begin at the same moment."""
        self._ready.clear()
        at = _engine.monotonic_ns() + _LEAD_NS
        for side in self._sides:
            side.say(f"go {at}\n")

    def _tell_rates(self) -> None:
        now = time.monotonic()
        if now - self._told_s >= _PERIOD_S and len(self._rates) == len(_SIDES):
            self._told_s = now
            self._say(", ".join(f"{name.upper()} {self._rates[name]:,.0f} TPS" for name in _SIDES))
