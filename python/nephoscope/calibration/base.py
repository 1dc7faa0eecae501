"""What calibration is made of: cases, what they measure with, and readings of what they have planted."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.measuring.measurement import run_study
from nephoscope.measuring.silence import Silence
from nephoscope.store import StoredRun
from nephoscope.study.reading import make_study
from nephoscope.systems.machine.folders import fast_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Self

    from nephoscope.systems.base import Provider

_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A planted figure, and what was read: numbers of a unit, or words such as ``none``."""

    figure: str
    unit: str = ""
    planted: float | str
    read: float | str
    relative: float = 0.0
    """The largest error that is allowed, as a share of what was planted; or ``absolute``, where that is more."""
    absolute: float = 0.0
    """The same in the unit."""
    stated: float | None = None
    """How far from the truth the instrument itself says that it may be, in the unit; None where it says nothing."""

    @property
    def error(self) -> float | None:
        """What was read less what was planted; None of words."""
        if isinstance(self.planted, str) or isinstance(self.read, str):
            return None
        return self.read - self.planted

    @property
    def allowed(self) -> float | None:
        """The largest error that is allowed, in the unit; None of words, which have to be the same."""
        if isinstance(self.planted, str):
            return None
        return max(self.relative * abs(self.planted), self.absolute)

    @property
    def holds(self) -> bool:
        """Whether what was planted was read."""
        if self.error is None or self.allowed is None:
            return self.planted == self.read
        return abs(self.error) <= self.allowed * _ROUNDING

    def to_json(self) -> dict[str, Any]:
        """Tell everything, for machines."""
        return {**vars(self), "error": self.error, "allowed": self.allowed, "holds": self.holds}


@dataclass(frozen=True)
class Case:
    """Plants something, measures it as any user would, and compares."""

    evaluator: str
    name: str
    read: Callable[[Bench], Iterable[Reading]]
    """Raises ``NephoscopeError`` where it cannot be run here."""
    limit_s: float = 90.0
    """How long it may take; then it is interrupted, and was not run."""
    in_short: bool = True
    """Whether the short form has it."""

    def __str__(self) -> str:
        """Name it by its evaluator."""
        return f"{self.evaluator}: {self.name}"


@dataclass(frozen=True)
class Result:
    """What became of a case."""

    case: Case
    readings: tuple[Reading, ...] = ()
    not_run: str | None = None
    """Why it could not be run: that is no pass."""
    still_s: float = 0.0
    """The longest time for which this process did not get to run meanwhile."""
    starved: str | None = None
    """How the machine kept its load from running, by the run's own account."""
    attempts: int = 1

    @property
    def holds(self) -> bool:
        """Whether everything that was planted was read."""
        return self.not_run is None and all(reading.holds for reading in self.readings)

    def to_json(self) -> dict[str, Any]:
        """Tell everything, for machines."""
        return {
            "evaluator": self.case.evaluator,
            "case": self.case.name,
            "holds": self.holds,
            "not_run": self.not_run,
            "still_s": self.still_s,
            "starved": self.starved,
            "attempts": self.attempts,
            "readings": [reading.to_json() for reading in self.readings],
        }


@dataclass(frozen=True)
class Measured:
    """A run that a case has made, and its scores."""

    run: StoredRun
    scores: Mapping[str, Any]

    def score(self, name: str) -> Mapping[str, Any]:
        """Give a score. Raises ``MeasurementError`` where it is absent."""
        if name not in self.scores["scores"]:
            raise MeasurementError(f"{name} is absent: {self.scores['absent'].get(name)}")
        found: Mapping[str, Any] = self.scores["scores"][name]
        return found


STARVED = 0.01
"""A load thread that waited for a processor for more than this share of a run was late with what it did."""


def starved(run: StoredRun) -> str | None:
    """Say how the machine kept a run's load from running, by the run's own account; None where it did not."""
    if gap := next((event for event in run.events if event["event"] == "gap"), None):
        return str(gap["message"])
    rows = run.system_metrics.to_pylist()
    waits = [row["value"] for row in rows if (row["source"], row["metric"]) == ("client", "cpu_wait")]
    share = sum(waits) / len(waits) if waits else 0.0
    return f"a load thread waited for a processor for {share:.1%} of a run" if share > STARVED else None


def origin_s(manifest: Mapping[str, Any]) -> float | None:
    """Tell when the load of a run began, on the monotonic clock, by its manifest; None as long as that is not there."""
    origin = (manifest.get("clock") or {}).get("origin")
    if origin is None:
        return None
    apart_s = time.time() - _engine.monotonic_ns() / 1e9
    return datetime.fromisoformat(origin).timestamp() - apart_s


_numbers = itertools.count(1)

PRODUCTS = {"postgres": "PostgreSQL", "mariadb": "MariaDB"}
"""The products whose servers calibration starts: by their keys, as cases name them."""

_WITHOUT_A_DISK: Mapping[str, Mapping[str, bool | int]] = {
    "postgres": {"fsync": False},
    "mariadb": {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0},
}
"""Settings with which a commit outlives the server's process, and not the machine."""


@dataclass
class Bench:
    """What cases measure with: a temporary folder, which is gone afterwards with all that is in it."""

    short: bool = False
    """Whether cases take as little time as they can."""
    folder: Path = field(init=False)
    starved: str | None = None
    """What the latest run that was kept from running says of that; cleared before each attempt."""

    def __enter__(self) -> Self:
        """Make the folder; the user that a database server runs as has to reach it."""
        self.folder = Path(tempfile.mkdtemp(prefix="nephoscope-calibrate-", dir=fast_folder()))
        self.folder.chmod(0o755)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def seconds(self, long: float, short: float) -> float:
        """Choose how long something takes."""
        return short if self.short else long

    def name(self) -> str:
        """Name a simulated database as no other is named: what probes store is its name's."""
        return f"calibrate{next(_numbers)}"

    def embedded(self, product: str, **system: Any) -> dict[str, Any]:  # noqa: ANN401 - the keys of the provider's table
        """Describe a server of a product; its folder is common to all cases, as making one takes time."""
        return {
            "provider": f"embedded-{product}",
            "data": str(self.folder / product),
            # A disk that takes its time with a commit is no part of what is planted.
            "settings": _WITHOUT_A_DISK[product],
            **system,
        }

    def measure(
        self,
        system: Mapping[str, Any],
        *measure: Mapping[str, Any],
        provider: Callable[[Provider], Provider] | None = None,
        **tables: Mapping[str, Any],
    ) -> Measured:
        """Run a study of a system, whose provider may be wrapped in another one.

        Raises ``InputError`` or ``MeasurementError``.
        """
        study = {
            "study": {"name": "calibrate"},
            "system": dict(system),
            "workload": {"name": "tpcb"},
            "load": {"interval": "100ms"},
            "measure": [dict(entry) for entry in measure],
            **tables,
        }
        outcome = run_study(make_study(study, "calibrate"), self.folder, Silence(), wrap=provider)
        if outcome.status != "measured":
            raise MeasurementError(outcome.reason or outcome.status)
        run = StoredRun(outcome.folder)
        self.starved = starved(run) or self.starved
        return Measured(run, outcome.scores)


class Watch(ABC):
    """Looks at something, on a thread of its own, for as long as the context lasts."""

    def __init__(self, name: str) -> None:
        """Begin with `with`."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""
        self._over.set()
        self._thread.join()

    @abstractmethod
    def _watch(self) -> None:
        """Look until it is over."""


class Stillness(Watch):
    """Notices for how long this process did not get to run: a sleep that lasts longer than it should."""

    _SLEEP_S = 0.01

    def __init__(self) -> None:
        """Begin with `with`."""
        super().__init__("stillness")
        self.longest_s = 0.0

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._over.wait(self._SLEEP_S):
            now = time.monotonic()
            self.longest_s = max(self.longest_s, now - last - self._SLEEP_S)
            last = now
