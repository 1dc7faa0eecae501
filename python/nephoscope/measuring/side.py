"""One side of a duet: a process of its own, so that nothing but the machine is shared with the other side.

The order is the first line of standard input, and ``go`` with a time another line for each evaluator. The end of the
input ends the run, as an interruption does. Standard output has a JSON object a line: what the duet is told.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.errors import MeasurementError, NephoscopeError
from nephoscope.files import keep_others_from_writing
from nephoscope.interrupts import Interrupted, catch_signals, ignore_signals, leave
from nephoscope.measuring.measurement import run_study
from nephoscope.study.borrowed import Given
from nephoscope.study.reading import read_study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.scoring.definitions import ScoreName
    from nephoscope.scoring.formulas import Score
    from nephoscope.study.reading import Study

COMMAND = ("-P", "-c", "from nephoscope.measuring.side import main; main()")
"""How Python runs a side."""


@dataclass(frozen=True)
class SideOrder:
    """What one side measures: a study as a command line names it."""

    path: str
    name: str
    settings: Sequence[str]
    url: str | None
    runs: str = ""
    """The folder that its run directory is made in."""
    data: str | None = None
    """The folder of a system that the tool starts itself, where the study leaves it open."""

    def study(self) -> Study:
        """Read the study. Raises ``InputError``."""
        study = read_study(Path(self.path), self.settings, self.name, Given(self.url))
        if self.data is None:
            return study
        system = study.system.model_copy(update={"data": Path(self.data)})
        return study.model_copy(update={"system": system})

    def line(self) -> str:
        """Write the order as it goes through the pipe: only the side itself can read it."""
        return json.dumps(asdict(self)) + "\n"


def tell(event: str, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write an event. Where nobody listens any more, the run goes on to its end."""
    try:
        sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


class _Teller:
    """The audience of a side: the duet hears what it has to show."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def say(self, message: str) -> None:
        tell("said", message=message)

    def loading(self, tables: Sequence[tuple[str, int, int]]) -> None:
        pass

    def score(self, name: ScoreName, score: Score) -> None:
        pass

    def begin(self, folder: Path, seconds: float) -> None:
        tell("begin", run=str(folder), seconds=seconds)

    def phase(self, record: Mapping[str, Any]) -> None:
        tell("phase", name=record["name"], kind=record["kind"])

    def interval(self, record: Mapping[str, Any]) -> None:
        seconds = max(record["end_s"] - record["start_s"], 1e-9)
        tell("interval", tps=sum(series["committed"] for series in record["series"]) / seconds)

    def error(self, record: Mapping[str, Any]) -> None:
        if record["class"] not in self._known:
            self._known.add(record["class"])
            self.say(f"error ({record['class']}) in {record['transaction']}: {record['message']}")

    def gap(self, record: Mapping[str, Any]) -> None:
        self.say(f"warning: {record['message']}")

    def expect(self, what: str | None) -> None:
        pass

    def end(self) -> None:
        pass


class _Input:
    """Standard input: the order, and when to go. Its end ends the run."""

    def __init__(self) -> None:
        self.order = sys.stdin.readline()
        self._go: queue.SimpleQueue[int] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="input", daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._go.put(int(line.split()[1]))
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGTERM)

    def ready(self) -> None:
        """Tell that the load can begin, and wait until the time to go."""
        tell("ready")
        wait_s = (self._go.get() - _engine.monotonic_ns()) / 1e9
        time.sleep(max(wait_s, 0.0))


def main() -> None:
    """Measure one side of a duet."""
    keep_others_from_writing()
    catch_signals()
    try:
        code = _measure()
    except Interrupted as error:
        ignore_signals()
        code = _end(str(error), MeasurementError.exit_code)
    leave(code)


def _measure() -> int:
    """Measure; gives the exit code."""
    given = _Input()
    order = SideOrder(**json.loads(given.order))
    try:
        outcome = run_study(order.study(), Path(order.runs), _Teller(), ready=given.ready)
    except NephoscopeError as error:
        return _end(str(error), error.exit_code)
    reason = outcome.unwritten or outcome.reason or outcome.lacking
    is_whole = outcome.status == "measured" and reason is None
    return _end(reason or outcome.status, 0 if is_whole else MeasurementError.exit_code)


def _end(reason: str, code: int) -> int:
    """Tell how it ended, and give its exit code."""
    tell("end", reason=reason, exit_code=code)
    return code
