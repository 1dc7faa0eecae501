"""A running run is steered from another terminal, by a local socket that only its owner may open.

A request is one line of JSON, ``{"do": "set", "rate": 2000}``; so is the answer, with ``error`` where it was refused.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import struct
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.base import Settings
from nephoscope.settings.courses import described
from nephoscope.settings.loads import AccessSetting, Level, Load, MixSetting, RampSetting
from nephoscope.settings.units import Duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.engine.loadrun import LoadRun
    from nephoscope.study.workload import DescribedWorkload

_log = logging.getLogger(__name__)

_NAME = "control"
"""The socket's file in the run directory, while the run goes on."""
_UNREADY = f".{_NAME}.part"
"""Its name until it listens."""
_MOST_BYTES = 65_536
_ANSWER_S = 5.0
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group of a socket's other end."""

Action = Literal["status", "set", "pause", "resume", "stop"]


class Request(Settings):
    """What is asked of a run; ``rate`` or ``concurrency``, ``mix``, ``access`` and ``over`` belong to ``set``."""

    do: Action
    rate: Annotated[float, Field(ge=0, le=1e8)] | None = None
    concurrency: Annotated[float, Field(ge=0, le=100_000)] | None = None
    mix: MixSetting | None = None
    access: AccessSetting | None = None
    over: Duration | None = None
    """How long the change takes; at once if None."""

    @model_validator(mode="after")
    def _fits(self) -> Request:
        given = self.model_dump(exclude={"do", "over"}, exclude_none=True)
        if self.do == "set" and not given:
            raise ValueError("set needs rate, concurrency, mix or access")
        if self.do != "set" and (given or self.over is not None):
            raise ValueError(f"{self.do} takes no {next(iter(given), 'over')}")
        if self.over is not None and self.over <= 0:
            raise ValueError("over must be above 0")
        return self


class Control:
    """Answers requests in a thread of its own, until it is closed."""

    def __init__(self, load: LoadRun, workload: DescribedWorkload, sessions: int) -> None:
        """Open the socket of a load that has begun; it has so many ``sessions``.

        A folder that cannot hold a socket leaves the run without one, and the log says so.
        """
        self._load = load
        self._workload = workload
        self._sessions = sessions
        self._paused: Load | None = None
        self.reason: str | None = None
        """Why the run was interrupted, if that was asked for here."""
        self._over = threading.Event()
        self._folder = load.writer.folder
        self._socket: socket.socket | None = None
        try:
            self._socket = _listen(self._folder)
        except OSError as error:
            _log.info("no control socket: %s", error)
            return
        self._thread = threading.Thread(target=self._serve, name="control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, and remove the socket."""
        self._over.set()
        if self._socket is not None:
            self._thread.join(timeout=_ANSWER_S)
            self._socket.close()
            with suppress(OSError):
                (self._folder / _NAME).unlink()

    def _serve(self) -> None:
        listening = self._socket
        while listening is not None and not self._over.is_set():
            try:
                peer, _ = listening.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            with peer, suppress(OSError):
                peer.settimeout(_ANSWER_S)
                if _user_of(peer) in {os.geteuid(), 0}:
                    peer.sendall(json.dumps(self._answer(_line(peer))).encode() + b"\n")

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = Request.model_validate_json(line)
            since_s: float = getattr(self, f"_{request.do}")(request)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"][:1])
            message = first["msg"].removeprefix("Value error, ")
            return {"error": f"{place}: {message}" if place else message, "is_input": True}
        except (InputError, ValueError) as error:
            return {"error": str(error), "is_input": True}
        except MeasurementError as error:
            return {"error": str(error), "is_input": False}
        return self._state(since_s)

    def _state(self, since_s: float) -> dict[str, Any]:
        """Describe the run as it is once a change has taken effect."""
        load = self._load
        asked = load.asked(since_s)
        return {
            "run": self._folder.name,
            "elapsed_s": round(load.elapsed, 3),
            "phase": load.phase_name,
            "asked": described(asked, None),
            "paused": self._paused is not None and _level(asked) == 0,
            "stopping": self.reason is not None,
        }

    def _status(self, request: Request) -> float:  # noqa: ARG002 - as all of them
        return 0.0

    def _set(self, request: Request) -> float:
        now = self._load.asked()
        for name, other in (("rate", "concurrency"), ("concurrency", "rate")):
            if getattr(request, name) is not None and getattr(now, name) is None:
                raise InputError(f"{name}: the load has a {other}; allowed: {other}, mix, access")
        if (request.concurrency or 0) > self._sessions:
            raise InputError(
                f"concurrency: the run has {self._sessions} sessions (load.sessions), and"
                f" {request.concurrency:g} are asked for"
            )
        mix = None if request.mix is None else self._workload.mix(request.mix, "mix")[1]
        moves = request.over if request.mix is not None or request.access is not None else None
        rate = _towards(now.rate, request.rate, request.over)
        sessions = _towards(now.concurrency, request.concurrency, request.over)
        asked = Load(rate=rate, concurrency=sessions, mix=mix, access=request.access, transition=moves)
        if rate is not None or sessions is not None:
            self._paused = None
        return self._load.steer(asked)

    def _pause(self, request: Request) -> float:  # noqa: ARG002 - as all of them
        now = self._load.asked()
        if not _level(now):
            raise InputError("pause: the load has nothing to do at present")
        self._paused = now
        return self._load.steer(Load(rate=0.0) if now.rate is not None else Load(concurrency=0.0))

    def _resume(self, request: Request) -> float:  # noqa: ARG002 - as all of them
        if self._paused is None or _level(self._load.asked()):
            raise InputError("resume: the load is not paused")
        before, self._paused = self._paused, None
        return self._load.steer(Load(rate=before.rate, concurrency=before.concurrency))

    def _stop(self, request: Request) -> float:  # noqa: ARG002 - as all of them
        self.reason = "stopped by nephoscope ctl"
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGINT)
        return 0.0


def ask(folder: Path, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Send a request to the run of this folder, and return its answer.

    Raises ``InputError`` where the run has ended or refuses the request, ``MeasurementError`` where it does not answer.
    """
    try:
        with socket.socket(socket.AF_UNIX) as peer, _short(folder) as place:
            peer.settimeout(2 * _ANSWER_S)
            peer.connect(str(place / _NAME))
            peer.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(_line(peer))
    except PermissionError:
        raise InputError(f"{folder}: the run belongs to another user, who alone may steer it") from None
    except (FileNotFoundError, ConnectionRefusedError):
        raise InputError(f"{folder}: the run is not running: only a load that runs can be steered") from None
    except (OSError, ValueError) as error:
        raise MeasurementError(f"{folder}: the run does not answer: {error}") from None
    if (refused := answer.get("error")) is not None:
        raise (InputError if answer.get("is_input") else MeasurementError)(str(refused))
    return dict(answer)


def _listen(folder: Path) -> socket.socket:
    """Open the socket; nobody but its owner may connect from the beginning. Raises ``OSError``.

    The file has its name once it answers: a socket that is bound and does not listen yet refuses.
    """
    listening = socket.socket(socket.AF_UNIX)
    try:
        # Linux gives the file the mode of the socket.
        os.fchmod(listening.fileno(), 0o600)
        with _short(folder) as place:
            listening.bind(str(place / _UNREADY))
            listening.listen()
            (place / _UNREADY).rename(place / _NAME)
    except OSError:
        listening.close()
        raise
    listening.settimeout(0.2)
    return listening


@contextmanager
def _short(folder: Path) -> Iterator[Path]:
    """Give a short path of the folder: one of any length would not fit into a socket's address."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _line(peer: socket.socket) -> bytes:
    """Read a line. Raises ``OSError`` where none comes."""
    line = b""
    while not line.endswith(b"\n") and len(line) < _MOST_BYTES:
        if not (part := peer.recv(4096)):
            break
        line += part
    return line


def _user_of(peer: socket.socket) -> int:
    size = _CREDENTIALS.size
    return int(_CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1])


def _level(load: Load) -> float:
    level = load.rate if load.rate is not None else load.concurrency
    return level if isinstance(level, float | int) else 0.0


def _towards(now: Level | None, wanted: float | None, over: float | None) -> Level | None:
    """Return a level that moves from what there is to what is asked for, if that takes time."""
    if wanted is None or over is None:
        return wanted
    return RampSetting.model_validate({"from": now, "to": wanted, "over": over})
