"""Services of AWS for tests: DynamoDB Local, and moto, each on a free port of 127.0.0.1."""

from __future__ import annotations

import http.client
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from http_servers import running
from nephoscope.systems.cluster.server import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
MOTO = ROOT / ".venv-moto" / "bin" / "python"
_JARS = ROOT / ".jars" / "dynamodb"


@contextmanager
def dynamodb_local() -> Iterator[str]:
    """Run DynamoDB Local in memory; give the URL of its region. Skips where Java or the jars are missing."""
    java = shutil.which("java")
    if java is None or not _JARS.exists():
        pytest.skip("there is no Java, or no folder .jars/dynamodb, which `make` fetches")
    runner = ROOT / "tests" / "tools" / "DynamoDbOnLoopback.java"
    words = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{_JARS}/*", str(runner)]
    port = free_port()
    with running([*words, str(port)], port):
        yield f"dynamodb://id:secret@us-east-1?endpoint=http://127.0.0.1:{port}"


@contextmanager
def moto_s3(bucket: str) -> Iterator[str]:
    """Run moto with a bucket; give the bucket's URL. Skips where moto is missing."""
    if not MOTO.exists():
        pytest.skip("moto is not installed: `make .venv-moto/built` installs it")
    port = free_port()
    with running([str(MOTO), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port):
        connection = http.client.HTTPConnection(f"127.0.0.1:{port}", timeout=30)
        connection.request("PUT", f"/{bucket}")
        assert connection.getresponse().status == http.HTTPStatus.OK
        connection.close()
        yield f"s3://id:secret@{bucket}/below?region=us-east-1&endpoint=http://127.0.0.1:{port}"
