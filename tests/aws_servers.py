"""Services of AWS for tests: DynamoDB Local, and moto, each on a free port of 127.0.0.1."""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parent.parent
MOTO = ROOT / ".venv-moto" / "bin" / "python"
_JARS = ROOT / ".jars" / "dynamodb"
_STARTS_WITHIN_S = 120.0


@contextmanager
def _running(words: Sequence[str], port: int) -> Iterator[int]:
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + _STARTS_WITHIN_S
            while True:
                try:
                    connection = http.client.HTTPConnection(f"127.0.0.1:{port}", timeout=30)
                    connection.request("GET", "/")
                    connection.getresponse().read()
                    connection.close()
                    break
                except OSError:
                    if time.monotonic() > until or server.poll() is not None:
                        raise
                    time.sleep(0.1)
            yield port
        finally:
            server.terminate()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def dynamodb_local() -> Iterator[str]:
    """Run DynamoDB Local in memory; give the URL of its region. Skips where Java or the jars are missing."""
    java = shutil.which("java")
    if java is None or not _JARS.exists():
        pytest.skip("there is no Java, or no folder .jars/dynamodb, which `make` fetches")
    runner = ROOT / "tests" / "tools" / "DynamoDbOnLoopback.java"
    words = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{_JARS}/*", str(runner)]
    port = _free_port()
    with _running([*words, str(port)], port):
        yield f"dynamodb://id:secret@us-east-1?endpoint=http://127.0.0.1:{port}"


@contextmanager
def moto_s3(bucket: str) -> Iterator[str]:
    """Run moto with a bucket; give the bucket's URL. Skips where moto is missing."""
    if not MOTO.exists():
        pytest.skip("moto is not installed: `make .venv-moto/built` installs it")
    port = _free_port()
    with _running([str(MOTO), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port):
        connection = http.client.HTTPConnection(f"127.0.0.1:{port}", timeout=30)
        connection.request("PUT", f"/{bucket}")
        assert connection.getresponse().status == http.HTTPStatus.OK
        connection.close()
        yield f"s3://id:secret@{bucket}/below?region=us-east-1&endpoint=http://127.0.0.1:{port}"
