"""What the tests of real PostgreSQL servers share: folders, other processes, other users, and who is left."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nephoscope
from nephoscope.systems.cluster.node import Node
from nephoscope.systems.machine.folders import fast_folder, is_alive
from nephoscope.systems.postgres.embedded import EmbeddedPostgres

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from signal import Signals

    from nephoscope.systems.base import System
    from nephoscope.systems.cluster.embedded import EmbeddedCluster
    from nephoscope.systems.cluster.provider import ClusterProvider

ROOT = os.geteuid() == 0
GONE_S = 10.0

needs_root = pytest.mark.skipif(not ROOT, reason="only root has privileges to drop")

_HOLDER = """
import importlib, json, os, signal, sys, time
from nephoscope.errors import InputError

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
module, name, settings = json.loads(sys.argv[1])
Embedded = getattr(importlib.import_module(module), name)
print("starting", flush=True)
try:
    with Embedded(Embedded.settings_type(**settings)) as provider:
        system = provider.start()
        print("ready", system.facts["user"], system.facts["privileges_dropped"], flush=True)
        exec(sys.argv[2])
except KeyboardInterrupt:
    print("interrupted", flush=True)
except InputError as error:
    print("refused", error, flush=True)
"""


ROLES_MOVE = """
from nephoscope.settings.actions import Action
ways = [provider.act(action).detail.get("how") for action in (Action.PROMOTE, Action.KILL, Action.PROMOTE)]
print("moved", *(next(iter(way.values())) for way in ways if way), flush=True)
"""
"""Code for another process, with a provider: prints how two old primaries came back."""


class Lab:
    """A folder that every user can reach, unlike pytest's own, and the processes of one test."""

    embedded: type[EmbeddedCluster] = EmbeddedPostgres
    """The provider of its systems."""
    settings: Mapping[str, Any] = {}
    """What its systems have unless a test says otherwise."""

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="nephoscope-test-", dir=fast_folder()))
        self.base.chmod(0o755)
        self.folder = self.base / "a sérver's folder"
        self._processes: list[subprocess.Popen[str]] = []

    def close(self) -> None:
        for process in self._processes:
            with process:
                process.kill()
        try:
            wait_until_gone(users_of(self.base))
        finally:
            shutil.rmtree(self.base)

    def take_database_of(self, other: Lab) -> None:
        """Copy the database that another lab has made: that is faster than to make one."""
        subprocess.run(["cp", "-a", other.folder, self.folder], check=True)

    def provider(self, **settings: Any) -> EmbeddedCluster:
        table: Any = self.embedded.settings_type(**({"data": self.folder, **self.settings} | settings))
        return self.embedded(table)

    def holder(self, then: str, *, ordinary: bool = False, **settings: Any) -> subprocess.Popen[str]:
        """Begin another process that starts a server in our folder and then runs the code ``then``."""
        python, environment, user, group = [sys.executable], dict(os.environ), None, None
        if ordinary:
            found = ordinary_python()
            if found is None:
                pytest.skip("user nobody can execute no Python of this version")
            python, environment = found
            if ROOT:
                user, group = pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("nobody").pw_gid
                self.folder.mkdir(exist_ok=True)
                subprocess.run(["chown", "-R", f"{user}:{group}", self.folder], check=True)
        settings = {"data": str(self.folder), **self.settings} | settings
        order = json.dumps([self.embedded.__module__, self.embedded.__name__, settings])
        process = subprocess.Popen(
            [*python, "-c", _HOLDER, order, then],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd="/",
            start_new_session=True,
            user=user,
            group=group,
            extra_groups=None if user is None else [],
        )
        self._processes.append(process)
        expect(process, "starting")
        return process

    def holding(
        self, then: str = "sys.stdin.read()", *, ordinary: bool = False, **settings: Any
    ) -> subprocess.Popen[str]:
        """As ``holder``, and wait until its server runs."""
        process = self.holder(then, ordinary=ordinary, **settings)
        expect(process, "ready")
        return process

    def background(
        self, command: Sequence[str | Path], *, output: int = subprocess.DEVNULL, **options: Any
    ) -> subprocess.Popen[str]:
        """Run something else beside the test, killed at its end."""
        process = subprocess.Popen(command, text=True, stdout=output, stderr=output, **options)
        self._processes.append(process)
        return process


@cache
def ordinary_python() -> tuple[list[str], dict[str, str]] | None:
    """A Python for an ordinary user, with its environment; None where there is none.

    Root's Python is often out of reach for others: then the system's, if it is of the same version, with our
    packages.
    """
    if not ROOT:
        return [sys.executable], dict(os.environ)
    path = os.pathsep.join([str(Path(nephoscope.__file__).parents[1]), sysconfig.get_path("purelib")])
    environment = {"PYTHONPATH": path, "HOME": "/nonexistent", "PATH": os.defpath}
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        with contextlib.suppress(OSError):
            command = [python, "-c", "import nephoscope, pydantic"]
            tried = subprocess.run(
                command,
                env=environment,
                cwd="/",
                user="nobody",
                extra_groups=[],
                capture_output=True,
                check=False,
            )
            if tried.returncode == 0:
                return [python], environment
    return None


def expect(process: subprocess.Popen[str], word: str) -> list[str]:
    """Read the next line, which begins with ``word``; return the words after it. Who says nothing for a minute ends."""
    assert process.stdout is not None
    limit = threading.Timer(60, process.kill)
    limit.start()
    line = process.stdout.readline()
    limit.cancel()
    assert line.startswith(word), line
    return line.split()[1:]


def send(process: subprocess.Popen[str], number: Signals) -> int:
    """Send a signal and wait for the end; return the exit code."""
    process.send_signal(number)
    return process.wait(60)


@contextlib.contextmanager
def lab_with_database(kind: type[Lab] = Lab) -> Iterator[Lab]:
    """Make a lab whose server has been started once, so that its database is there."""
    lab = kind()
    try:
        with lab.provider() as provider:
            provider.start()
        yield lab
    finally:
        lab.close()


def users_of(folder: Path) -> set[int]:
    """Find the processes with ``folder`` in their arguments, environment, open files or current folder."""
    found = set()
    name = os.fsencode(folder)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            texts = [
                read_if_there(entry / "cmdline"),
                read_if_there(entry / "environ"),
                _target(entry / "cwd"),
            ]
            with contextlib.suppress(OSError):
                texts += [_target(link) for link in (entry / "fd").iterdir()]
            if any(name in text for text in texts):
                found.add(int(entry.name))
    return found


def owners_of(processes: set[int]) -> dict[int, int]:
    """Map processes to the users that they run as; those that have ended are left out."""
    owners = {}
    for process in processes:
        with contextlib.suppress(OSError):
            owners[process] = Path(f"/proc/{process}").stat().st_uid
    return owners


def read_if_there(file: Path) -> bytes:
    """Read a file of /proc; nothing where its process has ended or is not ours."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _target(link: Path) -> bytes:
    try:
        return os.fsencode(link.readlink())
    except OSError:
        return b""


def wait_until_gone(pids: Collection[int]) -> None:
    deadline = time.monotonic() + GONE_S
    while left := [pid for pid in pids if is_alive(pid)]:
        if time.monotonic() >= deadline:
            commands = [read_if_there(Path(f"/proc/{pid}/cmdline")).rstrip(b"\0") for pid in left]
            pytest.fail(f"still there after {GONE_S:.0f} s: {commands}")
        time.sleep(0.02)


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + GONE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {GONE_S:.0f} s"
        time.sleep(0.005)


def server_of(provider: ClusterProvider) -> Any:
    assert provider._server is not None
    return provider._server


def node_of(provider: EmbeddedCluster, name: str) -> Any:
    assert provider._cluster is not None
    return provider._cluster.node(name)


def password_of(url: str) -> str:
    return url.partition("://")[2].partition("@")[0].partition(":")[2]


def query(provider: EmbeddedCluster, sql: str) -> str:
    answer: str = server_of(provider).psql(sql, provider._settings.database_name)
    return answer


def query_url(system: System, sql: str, program: Path) -> str:
    """Ask as any client would: by the URL alone."""
    command: list[str | Path] = [program, "-X", "-A", "-t", "-d", system.rw[0], "-c", sql]
    return subprocess.check_output(command, env={}, text=True).strip()


def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the nodes that are made by a copy from now on."""
    made: list[str] = []
    copy = Node.copy_from

    def noting(node: Node, primary: Any) -> None:
        made.append(node.name)
        copy(node, primary)

    monkeypatch.setattr(Node, "copy_from", noting)
    return made
