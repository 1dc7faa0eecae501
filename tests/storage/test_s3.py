"""The target for object stores, on moto's server: an S3 by other people."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest
from synthetic_corpora import Planted, write_corpus

from commands import call
from nephoscope.storage.executed import executed
from nephoscope.store.reader import StoredRun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# An environment of its own may have it: moto is large, and its server is a process of its own anyway.
PYTHON = os.environ.get("NEPHOSCOPE_MOTO_PYTHON", sys.executable)

pytestmark = pytest.mark.skipif(
    sys.executable == PYTHON and importlib.util.find_spec("moto") is None,
    reason="moto is not installed, nor is NEPHOSCOPE_MOTO_PYTHON an interpreter that has it",
)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [PYTHON, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait(f"127.0.0.1:{port}")
            ask(f"127.0.0.1:{port}", "PUT", "/pages")
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


def ask(address: str, method: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        assert answer.status == HTTPStatus.OK
        return answer.read()
    finally:
        connection.close()


def wait(address: str) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            ask(address, "GET", "/moto-api/data.json")
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "never-shown")
    for name in ("AWS_SESSION_TOKEN", "AWS_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


def test_a_corpus_is_executed_on_an_object_store(endpoint: str, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", Planted(rate=20, seconds=2))
    target = f"s3://pages/run?endpoint=http://{endpoint}&region=eu-central-1&object=65536&fill=no"
    runs = tmp_path / "runs"
    done = call("storage", "run", corpus.folder, "--target", target, "--repetitions", "1", "--out", runs)
    assert done.code == 0, done.err
    tails = executed(StoredRun(runs / "latest")).tails
    assert sum(tail.failed for tail in tails) == 0
    assert sum(tail.done for tail in tails) > 0
    keys = [one["name"] for one in json.loads(ask(endpoint, "GET", "/moto-api/data.json"))["s3"]["FakeKey"]]
    assert keys
    assert all(key.startswith("run/") for key in keys), keys
    written = b"".join(file.read_bytes() for file in runs.rglob("*") if file.is_file())
    assert b"never-shown" not in written
    assert "never-shown" not in done.out + done.err


def test_a_bucket_that_is_not_there_is_named(endpoint: str, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", Planted(rate=20, seconds=1))
    target = f"s3://elsewhere?endpoint=http://{endpoint}"
    done = call("storage", "run", corpus.folder, "--target", target, "--out", tmp_path / "runs")
    assert done.code != 0
    assert "elsewhere: there is no such bucket" in " ".join(done.err.split())


def test_credentials_are_asked_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    corpus = write_corpus(tmp_path / "corpus", Planted(rate=20, seconds=1))
    done = call("storage", "run", corpus.folder, "--target", "s3://pages", "--out", tmp_path / "runs")
    assert (done.code, "AWS_SECRET_ACCESS_KEY" in done.err) == (2, True)
