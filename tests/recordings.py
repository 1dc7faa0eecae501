"""``nephoscope trace record`` beside a test."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from commands import Ended, finish, start

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path


def server_of(url: str) -> str:
    """Give the URL of a server without user and database."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port}/"


@contextlib.contextmanager
def recorder(server: str, out: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start to record; gives the process, and the port that clients connect to."""
    command: list[str | Path] = ["trace", "record", "--from", server, "--out", out, *options]
    with start(*command, cwd=out.parent) as process:
        assert process.stdout is not None
        told = process.stdout.readline()
        assert told.startswith(("recording; connect by: psql ", "recording; connect by: mariadb ")), told
        yield process, int(told.partition("port=")[2].split()[0])


def interrupted(process: subprocess.Popen[str]) -> Ended:
    """End a recording as users do."""
    process.send_signal(signal.SIGINT)
    return finish(process)


@contextlib.contextmanager
def recording(url: str, out: Path, *options: str, left_out: bool = True) -> Iterator[str]:
    """Record what is asked of a server; gives the URL through the recorder.

    ``left_out`` is whether something may be missing in the trace.
    """
    parts = urlsplit(url)
    with recorder(server_of(url), out, *options) as (process, port):
        yield parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{port}").geturl()
        ended = interrupted(process)
    assert (ended.code, ended.err) == (0, "")
    assert f"{out}: " in ended.out
    assert left_out or "left out" not in ended.out, ended.out
