"""One server on a loopback port, from an empty folder or from whatever a crash left in it."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pydantic import SecretStr

from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.cluster.folder import HOST
from nephoscope.systems.cluster.recorder import IoRecorder
from nephoscope.systems.machine import processes
from nephoscope.systems.machine.folders import write_file
from nephoscope.systems.machine.supervised import Order, SupervisedProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope.systems.cluster.folder import ServerFolder
    from nephoscope.systems.cluster.product import Making, SettingValue, Traits
    from nephoscope.systems.machine.control_group import ControlGroup

_READY_S = 300.0
"""A crashed server first replays its log, gigabytes of it at worst; one that fails is noticed at once."""
_COMPLAINT = re.compile(r"\b(ERROR|FATAL|PANIC)\b")
_CLIENT_S = 30.0
_LOOK_AGAIN_S = 0.01
_PORTS_TRIED = 10
_ENVIRONMENT = {"LC_ALL": "C"}
"""Ours may hold secrets, which are not for the server's user, and variables that bend the server."""

_log = logging.getLogger(__name__)


class Server(ABC):
    """One server process on its folder.

    After :meth:`stop`, :meth:`halt` or :meth:`kill` it may be started again, also if it crashed.
    """

    def __init__(self, folder: ServerFolder, making: Making) -> None:
        """Describe a server in a folder, which need not exist yet; nothing is touched."""
        self.folder = folder
        self.port = 0
        """The TCP port on 127.0.0.1, the same after another start if it is still free; 0 before the first."""
        self.install = making.install
        self.account = making.account
        self._settings = dict(making.settings)
        self._chosen = dict(making.chosen)
        self._group: ControlGroup | None = making.group
        self.recorder = IoRecorder(folder, making.account) if making.records_io else None
        """What has its I/O recorded; None where it is not."""
        self._process: SupervisedProcess | None = None
        self._ready = False
        self._holds_folder = False

    @property
    def traits(self) -> Traits:
        """What is the same for every server of the product."""
        return self.folder.traits

    # --- what a product says of it -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of which a database must be for these programs."""

    _initialiser: str
    """The program that makes an empty database."""

    @abstractmethod
    def _initialising(self, place: Path, secret: Path) -> Sequence[str | Path]:
        """Give the command that makes an empty database in a folder."""

    def _secret(self, password: SecretStr) -> str:
        """Write the password as that command reads it from the file ``secret``."""
        return password.get_secret_value()

    @abstractmethod
    def _serving(self) -> Sequence[str | Path]:
        """Give the command that starts the server."""

    @abstractmethod
    def configuration(self, settings: Mapping[str, SettingValue]) -> str:
        """Write the whole configuration of the server on its port."""

    @abstractmethod
    def _says_ready(self, pid: int) -> bool:
        """Tell whether the server accepts connections."""

    @abstractmethod
    def _apply(self, changes: Mapping[str, SettingValue | None]) -> None:
        """Have the running server take settings that the configuration already has, as far as it can.

        None is for one that the configuration has no more.
        """

    @abstractmethod
    def needs_restart(self, settings: Mapping[str, SettingValue]) -> bool:
        """Tell whether one of these settings, whose names have been checked, holds only after a restart.

        Raises:
            MeasurementError: the server does not take them; it says why.

        """

    @abstractmethod
    def make_database(self, name: str) -> None:
        """Make a database where there is none of that name, which needs no quotes."""

    @property
    def log_folder(self) -> Path | None:
        """The folder of the log of redo; None where this tool cannot read that."""
        return None

    def relation_files(self, database: str) -> dict[str, str]:
        """Name the relations of a database by the paths of their first files, relative to the data folder.

        Raises:
            MeasurementError: the server does not tell.

        """
        del database
        return {}

    def vacuum(self, database: str) -> None:  # noqa: B027 - not every product has to
        """Reclaim the room of a database's rows that are gone. Raises ``MeasurementError``."""

    def environment(self) -> dict[str, str]:
        """Make the environment of the server, and of programs that work on its folder while it does not run."""
        return dict(_ENVIRONMENT)

    def _before_launch(self) -> None:  # noqa: B027 - not every product has to
        """Write what the server reads beside its configuration, and take away what would bend a measurement."""

    # --- from beginning to end -----------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Process number of the postmaster; 0 while there is none."""
        return self._process.pid if self._ready and self._process is not None else 0

    @property
    def is_running(self) -> bool:
        """Whether it has been started and has not ended, as far as is known."""
        return self._ready and self._process is not None and not self._process.ended(0)

    @property
    def settings(self) -> Mapping[str, SettingValue]:
        """All settings but where it listens and who may come in."""
        return self._settings

    def start(self) -> None:
        """Start the server, its database made anew if need be, and return when it accepts connections.

        A database that crashed recovers first. Whatever interrupts this leaves nothing running.

        Raises:
            InputError: the folder cannot be used as it is, or a chosen setting is wrong.
            MeasurementError: another process uses the folder, or the server does not start.

        """
        if self._process is not None:
            raise MeasurementError(f"the server in {self.folder.path} has been started already")
        try:
            self.folder.take(self.account)
            with self.folder.opened_log() as output:
                if not self.folder.data.exists():
                    self._initialise(output)
                self.folder.check(self.version)
                self._launch(output)
        except BaseException as error:
            if self._holds_folder:
                self.halt()
            else:
                self.stop()
            if isinstance(error, OSError):  # a full disk, a mount that is read-only
                raise MeasurementError(f"cannot work in folder {self.folder.path}: {error}") from error
            raise

    def stop(self) -> None:
        """End the server and give the folder back; harmless where it has ended or was never started.

        It is asked by the signals of its product, within their times, else killed.

        Raises:
            MeasurementError: a process of the server withstood even that.

        """
        try:
            self.halt()
        finally:
            self.folder.release()
            self._holds_folder = False

    def halt(self) -> None:
        """As :meth:`stop`, and keep the folder: for a server that will be started again."""
        self._holds_folder = True
        process, left = self._process, list[int]()
        if process is not None:
            if self._ready and process.ended(0):
                _log.warning("%s", self.folder.failure(f"{self.traits.name} had ended before it was stopped"))
            if not process.end():
                left = self.folder.end_leftovers(self.folder.data)
            self._process, self._ready = None, False
        if left:
            raise self.folder.failure(
                f"processes {left} of {self.traits.name} in {self.folder.path} cannot be ended"
            )

    def kill(self) -> None:
        """End all its processes at once, as a crash does, and return when they have gone; keep the folder."""
        if self.pid and self.is_running:
            processes.kill(self.pid)
            self._ready = False  # it is no surprise that it has ended
        self.halt()

    def configure(self, changes: Mapping[str, SettingValue]) -> None:
        """Change settings: a running server reads them as soon as it can, one that does not run at its start.

        Those that need a restart do nothing before it.
        """
        self.configure_anew({**self._settings, **changes})

    def configure_anew(self, settings: Mapping[str, SettingValue]) -> None:
        """As :meth:`configure`, with all the settings there shall be."""
        before = self._settings
        changes: dict[str, SettingValue | None] = dict.fromkeys(before.keys() - settings.keys())
        changes |= {name: value for name, value in settings.items() if before.get(name) != value}
        self._settings = dict(settings)
        if self.is_running:
            self.write_configuration()
            self._apply(changes)

    def url(self, database: str, address: str | None = None) -> str:
        """Make the URL of a database of this server. It holds the password: not for logs or messages.

        ``address`` stands in place of the server's own.
        """
        password = self.folder.password.get_secret_value()
        where = address or f"{HOST}:{self.port}"
        return f"{self.traits.scheme}://{self.traits.user}:{password}@{where}/{database}"

    def run_client(self, command: Sequence[str | Path], script: str, environment: Mapping[str, str]) -> str:
        """Run the product's own client on a script of SQL; return what it prints.

        Raises:
            MeasurementError: it failed, or took more than 30 s.

        """
        try:
            answer = subprocess.run(
                command,
                input=script,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                env={**_ENVIRONMENT, **environment},
                timeout=_CLIENT_S,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise self.folder.failure(
                f"{self.traits.name} did not answer within {_CLIENT_S:.0f} s"
            ) from error
        if answer.returncode != 0:
            said = self.folder.redacted(answer.stderr.strip())
            raise MeasurementError(f"{self.traits.name} in {self.folder.path} refused: {said}")
        return answer.stdout.strip()

    def facts(self) -> dict[str, object]:
        """Tell what is worth keeping with a measurement; nothing of it is secret."""
        return {
            "server_version": self.install.server_version,
            "package_version": self.install.package_version,
            "folder": str(self.folder.path),
            "port": self.port,
            "user": self.account.name,
            "privileges_dropped": self.account.other,
            "settings": dict(self._settings),
        }

    def _initialise(self, output: int) -> None:
        """Make an empty database beside its place, and move it there when it is complete."""
        unfinished = self.folder.unfinished
        if unfinished.exists():
            shutil.rmtree(unfinished)
        password = SecretStr(secrets.token_urlsafe(24))
        self.initialise(unfinished, password, output)
        self.folder.keep_password(password)
        unfinished.rename(self.folder.data)

    def initialise(self, place: Path, password: SecretStr, output: int) -> None:
        """Make an empty database in a folder that does not exist yet; ``output`` is the opened log.

        Raises:
            MeasurementError: the product's program failed.

        """
        owner, handed_over = (self.account.uid, self.account.gid), self.folder.path / "data.password"
        place.mkdir(mode=0o700)
        os.chown(place, *owner)
        write_file(handed_over, self._secret(password), private=True, owner=owner)
        command = self._initialising(place, handed_over)
        try:
            failed = f"{self._initialiser} could not make a database in {self.folder.path}"
            self.run_program(command, output, self.traits.initialise_s, failed)
        finally:
            handed_over.unlink(missing_ok=True)

    def run_program(
        self,
        command: Sequence[str | Path],
        output: int,
        limit_s: float,
        failed: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Run a program on the folder to its end, as the server's user.

        ``output`` is the opened log, and ``failed`` the message should it fail. Whatever interrupts this leaves
        nothing running.

        Raises:
            MeasurementError: it failed, or did not end within its time.

        """
        order = Order(
            command=command,
            account=self.account,
            stages=((signal.SIGTERM, 5.0),),
            orphaned=signal.SIGTERM,
            environment={**_ENVIRONMENT, **(environment or {})},
            keep_open=(self.folder.lock_descriptor,),
        )
        process = SupervisedProcess(order)
        is_alone = self._process is None
        if is_alone:
            self._process = process
        try:
            process.start(output)
            if not process.ended(limit_s):
                raise self.folder.failure(f"{_name_of(command)} did not end within {limit_s:.0f} s")
            if process.exit_code != 0:
                raise self.folder.failure(failed)
        finally:
            process.end()
            if is_alone:
                self._process = None

    def _launch(self, output: int) -> None:
        """Start the server on a free port; where somebody takes it before the server does, on another."""
        order = self._server_order()
        self._before_launch()
        if self.recorder is not None:
            self.recorder.prepare()
        for attempt in range(_PORTS_TRIED):
            if attempt > 0 or not self.port:
                self.port = free_port()
            self.write_configuration()
            self.folder.mark_log()
            self._process = SupervisedProcess(order)
            self._process.start(output)
            if self._becomes_ready(self._process):
                self._ready = True
                if self.recorder is not None:
                    self.recorder.check(self._process.pid)
                return
            self._process.end()
        raise self.folder.failure(
            f"each of {_PORTS_TRIED} free ports was taken before {self.traits.name} could listen on it"
        )

    def write_configuration(self) -> None:
        """Write the configuration file in one step: the processes of a running server read it when they like."""
        text = self.configuration(self._settings)
        unfinished = self.folder.configuration.with_suffix(".new")
        write_file(unfinished, text, private=False)
        unfinished.replace(self.folder.configuration)

    def _server_order(self) -> Order:
        return Order(
            command=self._serving(),
            account=self.account,
            stages=self.traits.stages,
            orphaned=self.traits.orphaned,
            environment={**self.environment(), **(self.recorder.environment() if self.recorder else {})},
            # After our death the folder is free only when the server has gone.
            keep_open=(self.folder.lock_descriptor,),
            entrances=() if self._group is None else self._group.entrances(),
        )

    def _becomes_ready(self, process: SupervisedProcess) -> bool:
        """Wait until the server accepts connections; False if its port was taken."""
        deadline = time.monotonic() + _READY_S
        while not self._says_ready(process.pid):
            if process.ended(_LOOK_AGAIN_S):
                if self.traits.port_taken in self.folder.last_words():
                    return False
                raise self._start_failure()
            if time.monotonic() >= deadline:
                raise self.folder.failure(f"{self.traits.name} was not ready within {_READY_S:.0f} s")
        return True

    def _start_failure(self) -> InputError | MeasurementError:
        """Tell a mistake in the user's settings, which the server then names, from other trouble."""
        said = self.folder.last_words()
        names = [rf"\b{re.escape(name)}\b" for name in self._chosen]
        values = [re.escape(f'"{value}"') for value in self._chosen.values() if isinstance(value, str)]
        chosen = re.compile("|".join([*names, *values]) or "(?!)")
        if chosen.search(said):
            # What it said before is no complaint.
            told = [line for line in said.splitlines() if chosen.search(line) or _COMPLAINT.search(line)]
            version = self.install.server_version
            return InputError(
                f"{self.traits.name} {version} does not start with these system.settings. It says:\n"
                + "\n".join(told)
            )
        return self.folder.failure(f"{self.traits.name} in {self.folder.path} did not start")


def free_port() -> int:
    """Choose a TCP port on 127.0.0.1 that is free now; somebody may take it the next moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _name_of(command: Sequence[str | Path]) -> str:
    return os.path.basename(command[0])  # noqa: PTH119 - a path or a text
