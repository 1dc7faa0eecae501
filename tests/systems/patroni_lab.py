"""A Patroni cluster on this machine: two nodes, one etcd, and HAProxy, which leads to the primary and to the replica.

A third node is prepared, and is started by whoever wants one more.

All of it listens on the loopback interface and lives in one folder. It runs as a user without privileges under
one supervisor (``nephoscope.systems.machine.supervisor``), which ends every process of it with the test, whatever ends
that.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import ROOT, Lab, ordinary_python

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.systems.machine.account import Account, server_accounts
from nephoscope.systems.machine.supervised import Order, SupervisedProcess
from nephoscope.systems.postgres.install import find_install

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES = ("node1", "node2")
SPARE = "node3"
READY_S = 90.0
PASSWORD = "bench-in-the-lab"
TTL_S = 20
"""The shortest that Patroni takes: so long the leader's key outlives the leader."""
VERSION = 18

_ALL = (*NODES, SPARE)

_HAPROXY = """\
global
  maxconn 1000
defaults
  mode tcp
  retries 1
  timeout connect 2s
  timeout check 2s
  timeout client 1h
  timeout server 1h
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
frontend rw
  bind 127.0.0.1:{rw}
  default_backend primary
frontend ro
  bind 127.0.0.1:{ro}
  # Where there is no replica, who only reads is served by the primary.
  use_backend primary if {{ nbsrv(replica) eq 0 }}
  default_backend replica
"""
_BACKEND = """\
backend {asks}
  option httpchk OPTIONS /{asks}
  http-check expect status 200
"""

_KEEPER = """\
# Stands for systemd: runs Patroni on a node whenever that is wanted. Its end is not the end of PostgreSQL.
cd "$1"
while :; do
  if [ -e wanted ]; then
    rm wanted
    "$2" -m patroni patroni.yml >>patroni.log 2>&1 &
    echo $! >patroni.pid
    wait $!
    rm -f patroni.pid
  fi
  sleep 0.1
done
"""

_INIT = """\
# Stands for the first process of a machine, which takes note of the end of those whose parents have gone: Patroni's
# PostgreSQL is one of them, and Patroni waits until it has gone for good.
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
subprocess.Popen(["/bin/sh", sys.argv[1]])
while True:
    os.wait()
"""

_SSH = """\
#!/bin/sh
# Stands for ssh: what the example study says to systemctl on a node.
cd "{folder}/$1" || exit
shift
case "$*" in
  "sudo systemctl kill --signal=KILL patroni")
    kill -9 $(cat patroni.pid) $(head -n 1 data/postmaster.pid) ;;
  "sudo systemctl start patroni")
    [ -e patroni.pid ] || touch wanted ;;
  "sudo systemctl stop patroni")
    kill $(cat patroni.pid)
    while [ -e patroni.pid ]; do sleep 0.1; done ;;
  *)
    echo "not known here: $*" >&2
    exit 64 ;;
esac
"""


class PatroniLab:
    """A cluster that runs: where it is, and how a study reaches it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with ExitStack() as stack:
            # All open at the same time, so that each is another.
            sockets = [stack.enter_context(socket.socket()) for _ in range(4 + 2 * len(_ALL))]
            for one in sockets:
                one.bind(("127.0.0.1", 0))
            self._etcd, self._etcd_peer, self._rw, self._ro, *rest = (one.getsockname()[1] for one in sockets)
        self.server_port = dict(zip(_ALL, rest[: len(_ALL)], strict=True))
        self.rest_port = dict(zip(_ALL, rest[len(_ALL) :], strict=True))

    def url(self, where: str) -> str:
        """Give the URL of a role, as HAProxy leads to it, or of a node."""
        port = {"rw": self._rw, "ro": self._ro, **self.server_port}[where]
        return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}/postgres"

    @property
    def environment(self) -> dict[str, str]:
        """What the example study and ``perfect`` ask their users for."""
        return {
            "RW_URL": self.url("rw"),
            "RO_URL": self.url("ro"),
            "CLUSTER_RW_URL": self.url("rw"),
            "CLUSTER_RO_URL": self.url("ro"),
            "CLUSTER_NODES": " ".join(NODES),
            "CLUSTER_SPARE": SPARE,
            "CLUSTER_SPARE_URL": self.url(SPARE),
            "CLUSTER_SSH": str(self.folder / "on-node"),
            "PATRONICTL_CONFIG_FILE": str(self.folder / NODES[0] / "patroni.yml"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    # --- files -----------------------------------------------------------------------------------------------

    def write(self, account: Account, programs: Path, python: str) -> Path:
        """Write all that the cluster is made of; gives the script that runs it."""
        for node in _ALL:
            (self.folder / node).mkdir()
            if node != SPARE:
                (self.folder / node / "wanted").touch()
            # What is JSON is YAML.
            (self.folder / node / "patroni.yml").write_text(json.dumps(self._patroni(node, programs)))
        (self.folder / "haproxy.cfg").write_text(self._haproxy())
        (self.folder / "keeper.sh").write_text(_KEEPER)
        (self.folder / "on-node").write_text(_SSH.format(folder=self.folder))
        (self.folder / "on-node").chmod(0o755)
        script = self.folder / "cluster.sh"
        script.write_text(self._script(python))
        if account.other:
            subprocess.run(["chown", "-R", f"{account.uid}:{account.gid}", self.folder], check=True)
        return script

    def _script(self, python: str) -> str:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd, self._etcd_peer))
        etcd = (
            f"etcd --data-dir etcd --listen-client-urls {client} --advertise-client-urls {client}"
            f" --listen-peer-urls {peer} --initial-advertise-peer-urls {peer}"
            f" --initial-cluster default={peer} >etcd.log 2>&1 &"
        )
        keepers = [f'sh keeper.sh "{self.folder / node}" "{python}" &' for node in _ALL]
        haproxy = "haproxy -db -f haproxy.cfg >haproxy.log 2>&1 &"
        return "\n".join([f'cd "{self.folder}"', etcd, *keepers, haproxy, "wait", ""])

    def _haproxy(self) -> str:
        text = _HAPROXY.format(rw=self._rw, ro=self._ro)
        for asks in ("primary", "replica"):
            text += _BACKEND.format(asks=asks)
            for node in NODES:
                text += (
                    f"  server {node} 127.0.0.1:{self.server_port[node]} check port {self.rest_port[node]}\n"
                )
        return text

    def _patroni(self, node: str, programs: Path) -> dict[str, Any]:
        address = f"127.0.0.1:{self.server_port[node]}"
        rest = f"127.0.0.1:{self.rest_port[node]}"
        folder = self.folder / node
        users = {"superuser": "postgres", "replication": "replicator", "rewind": "rewinder"}
        return {
            "scope": "lab",
            "name": node,
            "restapi": {"listen": rest, "connect_address": rest},
            "etcd3": {"hosts": f"127.0.0.1:{self._etcd}"},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL_S,
                    "loop_wait": 5,
                    "retry_timeout": 5,
                    "postgresql": {"use_pg_rewind": True, "parameters": _PARAMETERS},
                },
                "initdb": ["data-checksums", "no-sync", {"encoding": "UTF8"}, {"locale": "C"}],
            },
            "postgresql": {
                "listen": address,
                "connect_address": address,
                "data_dir": str(folder / "data"),
                "bin_dir": str(programs),
                "pgpass": str(folder / "pgpass"),
                # A new member does not wait until the primary's next checkpoint has been spread out.
                "basebackup": [{"checkpoint": "fast"}],
                "authentication": {
                    of: {"username": user, "password": PASSWORD} for of, user in users.items()
                },
                "pg_hba": [
                    "host all all 127.0.0.1/32 scram-sha-256",
                    "host replication replicator 127.0.0.1/32 scram-sha-256",
                ],
                "parameters": {"unix_socket_directories": str(folder)},
            },
        }

    # --- waiting ---------------------------------------------------------------------------------------------

    def wait_until_ready(self) -> None:
        """Wait until HAProxy leads to a primary, and to a replica."""
        limit = time.monotonic() + READY_S
        for role, in_recovery in (("rw", "f"), ("ro", "t")):
            while not self._answers(role, in_recovery):
                if time.monotonic() > limit:
                    pytest.fail(f"no {role} within {READY_S:g} s:\n{self.logs()}")
                time.sleep(0.2)

    def _answers(self, role: str, in_recovery: str) -> bool:
        try:
            admin = _engine.Admin(self.url(role), connect_timeout_s=2.0, answer_timeout_s=2.0)
            try:
                return admin.query("SELECT pg_is_in_recovery()")[1] == [[in_recovery]]
            finally:
                admin.close()
        except MeasurementError:
            return False

    def logs(self) -> str:
        """Give the end of every log, for a test that has failed."""
        files = sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*/*.log"))
        return "\n".join(f"--- {file}\n{file.read_text(errors='replace')[-2000:]}" for file in files)


_PARAMETERS = {
    "fsync": "off",
    "shared_buffers": "32MB",
    "max_connections": 100,
    "wal_log_hints": "on",
    "wal_retrieve_retry_interval": "100ms",
}


@contextmanager
def patroni_cluster() -> Iterator[PatroniLab]:
    """Run a cluster for as long as the context lasts; skips the test where something for it is missing."""
    if missing := [program for program in ("etcd", "haproxy") if shutil.which(program, path=_PATH) is None]:
        pytest.skip(f"not on this machine: {', '.join(missing)} (tests/tools/system-packages)")
    python = ordinary_python()
    if python is None:
        pytest.skip("user nobody can execute no Python of this version")
    lab = Lab()
    try:
        account = _account()
        programs = find_install(VERSION, account, lab.base / "cache").program("postgres").parent
        lab.folder = lab.base / "patroni"
        lab.folder.mkdir()
        cluster = PatroniLab(lab.folder)
        script = cluster.write(account, programs, python[0][0])
        environment = {
            "PATH": _PATH,
            "LC_ALL": "C",
            "HOME": str(lab.folder),
            "PYTHONPATH": sysconfig.get_path("purelib"),
        }
        order = Order([python[0][0], "-c", _INIT, script], account, (), signal.SIGKILL, environment)
        process = SupervisedProcess(order)
        try:
            process.start(sys.stderr.fileno())
            cluster.wait_until_ready()
            yield cluster
        finally:
            process.end()
    finally:
        lab.close()


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _account() -> Account:
    """Name the user that may execute what ``ordinary_python`` gives."""
    if not ROOT:
        return server_accounts()[0]
    entry = pwd.getpwnam("nobody")
    return Account("nobody", entry.pw_uid, entry.pw_gid)
