"""Systems behind HTTP for tests: DynamoDB Local, moto and HBase, each on a free port of 127.0.0.1."""

from __future__ import annotations

import http.client
import shutil
import tempfile
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
_JARS = ROOT / ".jars"
_JAVA = ("-Xmx256m", "-XX:TieredStopAtLevel=1")


def _java(jars: Path) -> str:
    """Find Java. Skips where it or the jars are missing."""
    java = shutil.which("java")
    if java is None or not jars.exists():
        pytest.skip(f"there is no Java, or no folder .jars/{jars.name}, which `make` fetches by that name")
    return java


@contextmanager
def dynamodb_local() -> Iterator[str]:
    """Run DynamoDB Local in memory; give the URL of its region. Skips where Java or the jars are missing."""
    jars = _JARS / "dynamodb"
    source = str(ROOT / "tests" / "tools" / "DynamoDbOnLoopback.java")
    words = [_java(jars), *_JAVA, "-cp", f"{jars}/*", source]
    port = free_port()
    with running([*words, str(port)], port):
        yield f"dynamodb://id:secret@us-east-1?endpoint=http://127.0.0.1:{port}"


@contextmanager
def hbase_gateway() -> Iterator[str]:
    """Run HBase and its gateway; give the URL of its default namespace. Skips where Java or the jars are missing."""
    jars, port = _JARS / "hbase", free_port()
    opened = ["--add-opens", "java.base/java.lang=ALL-UNNAMED"]
    with tempfile.TemporaryDirectory() as folder:
        words = [_java(jars), *_JAVA, *opened, "-cp", f"{jars}/*:{folder}"]
        source = str(ROOT / "tests" / "tools" / "HBaseOnLoopback.java")
        with running([*words, source, str(port), folder], port):
            yield f"hbase://127.0.0.1:{port}"


@contextmanager
def moto() -> Iterator[int]:
    """Run moto, with all of SimpleDB that nephoscope asks for; give its port. Skips where moto is missing."""
    if not MOTO.exists():
        pytest.skip("moto is not installed: `make .venv-moto/built` installs it")
    port, source = free_port(), ROOT / "tests" / "tools" / "moto_with_simpledb.py"
    with running([str(MOTO), str(source), "-H", "127.0.0.1", "-p", str(port)], port):
        yield port


def s3_bucket(port: int, bucket: str) -> str:
    """Make a bucket at moto; give the bucket's URL."""
    connection = http.client.HTTPConnection(f"127.0.0.1:{port}", timeout=30)
    connection.request("PUT", f"/{bucket}")
    assert connection.getresponse().status == http.HTTPStatus.OK
    connection.close()
    return f"s3://id:secret@{bucket}/below?region=us-east-1&endpoint=http://127.0.0.1:{port}"
