"""One PostgreSQL server on a loopback port, from an empty folder or from whatever a crash left in it."""

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
from typing import TYPE_CHECKING

from pydantic import SecretStr

from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.machine import processes
from nephoscope.systems.machine.folders import write_file
from nephoscope.systems.machine.supervised import Order, SupervisedProcess
from nephoscope.systems.postgres.folder import HOST, USER
from nephoscope.systems.postgres.leftovers import STAGES, end_leftovers, stale_lock_owner
from nephoscope.systems.postgres.settings import ACCESS, configuration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope.systems.machine.account import Account
    from nephoscope.systems.machine.control_group import ControlGroup
    from nephoscope.systems.postgres.folder import PostgresFolder
    from nephoscope.systems.postgres.install import Install
    from nephoscope.systems.postgres.settings import SettingValue

_INITDB_S = 120.0
_READY_S = 300.0
"""A crashed server first replays its log, gigabytes of it at worst; one that fails is noticed at once."""
_PSQL_S = 30.0
_LOOK_AGAIN_S = 0.01
_PORTS_TRIED = 10
_STATE_LINE = 8
_ENVIRONMENT = {"LC_ALL": "C"}
"""Ours may hold secrets, which are not for the server's user, and variables that bend PostgreSQL."""

_CLIENT_ENVIRONMENT = {"PGCLIENTENCODING": "UTF8", "PGCONNECT_TIMEOUT": "10"}

_log = logging.getLogger(__name__)


class PostgresServer:
    """One server process on its folder.

    After :meth:`stop`, :meth:`halt` or :meth:`kill` it may be started again, also if it crashed.
    """

    def __init__(
        self,
        folder: PostgresFolder,
        install: Install,
        account: Account,
        settings: Mapping[str, SettingValue],
        *,
        chosen: Mapping[str, SettingValue] | None = None,
        keep_altered: bool = False,
        group: ControlGroup | None = None,
    ) -> None:
        """Describe a server; nothing is touched yet.

        Args:
            folder: where it lives; it need not exist yet.
            install: the programs.
            account: the user that runs them.
            settings: all settings but those in ``postgres_settings.OURS``.
            chosen: those among them that the user wrote, to tell his mistakes from other trouble.
            keep_altered: whether what ``ALTER SYSTEM`` set in an earlier run holds on. By default it does
                not: it would bend a measurement unseen.
            group: the control group that its processes are in; made at its first start, and not removed here.

        """
        self.folder = folder
        self.port = 0
        """The TCP port on 127.0.0.1, the same after another start if it is still free; 0 before the first."""
        self.install = install
        self.account = account
        self._settings = dict(settings)
        self._chosen = dict(chosen or {})
        self._keep_altered = keep_altered
        self._group = group
        self._process: SupervisedProcess | None = None
        self._ready = False
        self._holds_folder = False

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
                self.folder.check(self.install.server_version.partition(".")[0])
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

        A fast shutdown within 30 s, else an immediate one within 10 s, else SIGKILL.

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
                _log.warning("%s", self.folder.failure("PostgreSQL had ended before it was stopped"))
            if not process.end():
                left = end_leftovers(self.folder.data)
            self._process, self._ready = None, False
        if left:
            raise self.folder.failure(f"processes {left} of PostgreSQL in {self.folder.path} cannot be ended")

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
        self._settings = dict(settings)
        if self.is_running:
            self._write_configuration()
            os.kill(self.pid, signal.SIGHUP)

    def check_settings(self, changes: Mapping[str, SettingValue]) -> None:
        """Let the server's program check settings without touching the server.

        Raises:
            MeasurementError: with what it says against them.

        """
        tried = self.folder.configuration.with_suffix(".tried")
        text = configuration({**self._settings, **changes}, self.port, self.folder.access)
        write_file(tried, text, private=False)
        try:
            command = (self.install.program("postgres"), "-D", self.folder.data, "-C", "config_file")
            answer = self.account.run([*command, "-c", f"config_file={tried}"])
        finally:
            tried.unlink()
        if answer.returncode != 0:
            said = re.findall(r"LOG:  ((?:invalid|unrecognized|parameter|syntax|\d).*)", answer.stdout)
            said = [line.replace(f' in file "{tried}"', "") for line in said]
            raise MeasurementError(
                f"PostgreSQL does not take these settings: {'; '.join(said) or answer.stdout.strip()}"
            )

    def url(self, database: str) -> str:
        """Make the URL of a database of this server. It holds the password: not for logs or messages."""
        return f"postgresql://{USER}:{self.folder.password.get_secret_value()}@{HOST}:{self.port}/{database}"

    def psql(self, script: str, database: str = "postgres") -> str:
        """Run SQL, and psql's own commands, in a database; return what it prints, bare and unaligned.

        Raises:
            MeasurementError: it failed, or took more than 30 s.

        """
        try:
            # The password comes from its file: arguments are everyone's to read.
            answer = subprocess.run(
                [
                    *(self.install.program("psql"), "-X", "-w", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"),
                    *("-h", HOST, "-p", str(self.port), "-U", USER, "-d", database),
                ],
                input=script,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                env={**_ENVIRONMENT, **_CLIENT_ENVIRONMENT, "PGPASSFILE": str(self.folder.password_file)},
                timeout=_PSQL_S,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise self.folder.failure(f"PostgreSQL did not answer within {_PSQL_S:.0f} s") from error
        if answer.returncode != 0:
            said = self.folder.redacted(answer.stderr.strip())
            raise MeasurementError(f"PostgreSQL in {self.folder.path} refused: {said}")
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
        unfinished, handed_over = self.folder.unfinished, self.folder.path / "data.password"
        if unfinished.exists():
            shutil.rmtree(unfinished)
        owner = (self.account.uid, self.account.gid)
        unfinished.mkdir(mode=0o700)
        os.chown(unfinished, *owner)
        password = SecretStr(secrets.token_urlsafe(24))
        write_file(handed_over, password.get_secret_value(), private=True, owner=owner)
        command: list[str | Path] = [
            *(self.install.program("initdb"), "-D", unfinished, "-U", USER, f"--pwfile={handed_over}"),
            # The same on every machine, version and environment. Checksums are version 18's default.
            *(
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--no-locale",
                "--data-checksums",
                "--no-instructions",
            ),
        ]
        try:
            failed = f"initdb could not make a database in {self.folder.path}"
            self.run_program(command, output, _INITDB_S, failed)
        finally:
            handed_over.unlink(missing_ok=True)
        self.folder.keep_password(password)
        unfinished.rename(self.folder.data)

    def run_program(
        self,
        command: Sequence[str | Path],
        output: int,
        limit_s: float,
        failed: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Run a program on the folder to its end, as the server's user, while the server does not run.

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
        process = self._process = SupervisedProcess(order)
        try:
            process.start(output)
            if not process.ended(limit_s):
                name = os.path.basename(command[0])  # noqa: PTH119 - a path or a text
                raise self.folder.failure(f"{name} did not end within {limit_s:.0f} s")
            if process.exit_code != 0:
                raise self.folder.failure(failed)
        finally:
            process.end()
            self._process = None

    def _launch(self, output: int) -> None:
        """Start the server on a free port; where somebody takes it before the server does, on another."""
        order = self._server_order()
        write_file(self.folder.access, ACCESS, private=False)
        if not self._keep_altered:
            (self.folder.data / "postgresql.auto.conf").unlink(missing_ok=True)
        for attempt in range(_PORTS_TRIED):
            if attempt > 0 or not self.port:
                self.port = free_port()
            self._write_configuration()
            self.folder.mark_log()
            self._process = SupervisedProcess(order)
            self._process.start(output)
            if self._becomes_ready(self._process):
                self._ready = True
                return
            self._process.end()
        raise self.folder.failure(
            f"each of {_PORTS_TRIED} free ports was taken before PostgreSQL could listen on it"
        )

    def _write_configuration(self) -> None:
        """Write the configuration file in one step: the processes of a running server read it when they like."""
        text = configuration(self._settings, self.port, self.folder.access)
        unfinished = self.folder.configuration.with_suffix(".new")
        write_file(unfinished, text, private=False)
        unfinished.replace(self.folder.configuration)

    def past_stale_lock(self) -> dict[str, str]:
        """Make the environment in which PostgreSQL does not stumble over a lock file that a crash left."""
        stale = stale_lock_owner(self.folder.data)
        # PostgreSQL takes a lock file that names its own grandparent for stale, whatever runs under that
        # number, and still looks whether processes of the dead server use its memory. Without the file
        # it could not.
        return {} if stale is None else {"PG_GRANDPARENT_PID": str(stale)}

    def _server_order(self) -> Order:
        environment = {**_ENVIRONMENT, **self.past_stale_lock()}
        return Order(
            command=(
                *(self.install.program("postgres"), "-D", self.folder.data),
                *("-c", f"config_file={self.folder.configuration}"),
            ),
            account=self.account,
            stages=STAGES,
            orphaned=signal.SIGQUIT,
            environment=environment,
            # After our death the folder is free only when the server has gone.
            keep_open=(self.folder.lock_descriptor,),
            entrances=() if self._group is None else self._group.entrances(),
        )

    def _becomes_ready(self, process: SupervisedProcess) -> bool:
        """Wait until the server accepts connections; False if its port was taken."""
        deadline = time.monotonic() + _READY_S
        while not self._says_ready(process.pid):
            if process.ended(_LOOK_AGAIN_S):
                if "could not bind" in self.folder.last_words():
                    return False
                raise self._start_failure()
            if time.monotonic() >= deadline:
                raise self.folder.failure(f"PostgreSQL was not ready within {_READY_S:.0f} s")
        return True

    def _says_ready(self, pid: int) -> bool:
        """Read the server's state where pg_ctl does: in the last line of its lock file."""
        try:
            lines = (self.folder.data / "postmaster.pid").read_text().splitlines()
        except (OSError, ValueError):
            return False
        return (
            len(lines) >= _STATE_LINE and lines[0] == str(pid) and lines[_STATE_LINE - 1].strip() == "ready"
        )

    def _start_failure(self) -> InputError | MeasurementError:
        """Tell a mistake in the user's settings, which the server then names, from other trouble."""
        said = self.folder.last_words()
        names = [rf"\b{re.escape(name)}\b" for name in self._chosen]
        values = [re.escape(f'"{value}"') for value in self._chosen.values() if isinstance(value, str)]
        if any(re.search(word, said) for word in names + values):
            version = self.install.server_version
            return InputError(
                f"PostgreSQL {version} does not start with these system.settings. It says:\n{said}"
            )
        return self.folder.failure(f"PostgreSQL in {self.folder.path} did not start")


def free_port() -> int:
    """Choose a TCP port on 127.0.0.1 that is free now; somebody may take it the next moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
