"""The target for object stores, on moto's server: an S3 by other people, which checks signatures by botocore."""

from __future__ import annotations

import http.client
import itertools
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
import xml.etree.ElementTree as ET
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlencode

import pytest
from certificates import Certificates
from planted import Planted, write_corpus

from commands import Ended, call
from nephoscope.storage.executed import Tail, executed
from nephoscope.storage.executed_verdicts import verdicts_of
from nephoscope.store.reader import StoredRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.storage.corpus import Corpus

MOTO = Path(__file__).parents[2] / ".venv-moto" / "bin" / "python"
OBJECT = 65536
# Without a signature moto gives away no object; which service is meant is told by its scope. It verifies none of these.
S3, IAM = (
    {"Authorization": f"AWS4-HMAC-SHA256 Credential=ID/20260101/us-east-1/{service}/aws4_request"}
    for service in ("s3", "iam")
)

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(
        not MOTO.exists(), reason="moto is not installed: `make .venv-moto/built` installs it"
    ),
]


@contextmanager
def _served(*options: str | Path, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run moto's server with a bucket; gives its host and port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = f"localhost:{port}"
    words = [MOTO, "-m", "moto.server", "-H", "localhost", "-p", str(port), *options]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait(found, server, context)
            _ask(found, "PUT", "/pages", context=context)
            yield found
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with _served() as found:
        yield found


def _wait(address: str, server: subprocess.Popen[bytes], context: ssl.SSLContext | None) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            _ask(address, "GET", "/moto-api/data.json", context=context)
        except OSError:
            if time.monotonic() > until or server.poll() is not None:
                raise
            time.sleep(0.1)
        else:
            return


def _ask(
    address: str,
    method: str,
    path: str,
    body: str = "",
    headers: Mapping[str, str] | None = None,
    *,
    context: ssl.SSLContext | None = None,
) -> bytes:
    if context is None:
        connection = http.client.HTTPConnection(address, timeout=30)
    else:
        connection = http.client.HTTPSConnection(address, timeout=30, context=context)
    try:
        connection.request(method, path, body or None, dict(headers or {}))
        answer = connection.getresponse()
        read = answer.read()
        assert answer.status == HTTPStatus.OK, read
        return read
    finally:
        connection.close()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "never-shown")
    for name in ("AWS_SESSION_TOKEN", "AWS_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return write_corpus(tmp_path_factory.mktemp("s3") / "corpus", Planted(rate=20, seconds=2, read_share=0.5))


def _run(corpus: Corpus, target: str, runs: Path) -> Ended:
    return call("storage", "run", corpus.folder, "--target", target, "--repetitions", "1", "--out", runs)


def _measured(runs: Path) -> dict[str, Tail]:
    return {tail.operation: tail for tail in executed(StoredRun(runs / "latest")).tails}


def test_a_corpus_is_executed_on_an_object_store(address: str, corpus: Corpus, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    done = _run(corpus, f"s3://pages/run?endpoint=http://{address}&region=eu-central-1&object={OBJECT}", runs)
    assert done.code == 0, done.err
    tails = _measured(runs)
    asked = corpus.requests(0)
    assert (tails["all"].done, tails["all"].failed) == (len(asked["time_us"]), 0)
    # Every object was written before the run: a ranged read that fails, or brings another length, is a failure.
    assert tails["read"].done == int((asked["operation"] == 0).sum()) > 0
    keys = [one["name"] for one in json.loads(_ask(address, "GET", "/moto-api/data.json"))["s3"]["FakeKey"]]
    reached = {
        f"run/{segment:010}/{offset // OBJECT:012}"
        for segment, offset in zip(asked["segment"].tolist(), asked["offset"].tolist(), strict=True)
    }
    assert reached <= set(keys), "objects that requests reach were not written"
    assert {len(_ask(address, "GET", f"/pages/{key}", headers=S3)) for key in reached} == {OBJECT}
    written = b"".join(file.read_bytes() for file in runs.rglob("*") if file.is_file())
    assert b"never-shown" not in written
    assert "never-shown" not in done.out + done.err


@pytest.mark.skipif(
    not shutil.which("openssl"), reason="openssl, which makes the certificates, is not installed"
)
def test_a_corpus_is_executed_over_tls(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = Certificates(tmp_path)
    certificates.sign("store", "DNS:localhost")
    context = ssl.create_default_context(cafile=certificates.root)
    pair = ("-c", tmp_path / "store.crt", "-k", tmp_path / "store.key")
    with _served(*pair, context=context) as address:
        target = f"s3://pages/tls?endpoint=https://{address}&object={OBJECT}"
        for name in ("SSL_CERT_DIR", "SSL_CERT_FILE"):
            monkeypatch.delenv(name, raising=False)
        unknown = _run(corpus, target, tmp_path / "unknown")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates.root))
        other = _run(corpus, target.replace("localhost", "127.0.0.1"), tmp_path / "other")
        done = _run(corpus, target, tmp_path / "runs")
        plain = _run(corpus, target.replace("https", "http"), tmp_path / "plain")
    assert done.code == 0, done.err
    tails = _measured(tmp_path / "runs")
    assert (tails["all"].done, tails["all"].failed) == (len(corpus.requests(0)["time_us"]), 0)
    assert tails["read"].done > 0
    # An authority that nobody has named, a name that is not in the certificate, and no TLS at all.
    assert [one.code for one in (unknown, other, plain)] == [2, 2, 2], (unknown.err, other.err, plain.err)
    assert "certificate" in unknown.err.lower(), unknown.err
    assert "certificate" in other.err.lower(), other.err


def test_objects_of_another_size_are_failures(address: str, corpus: Corpus, tmp_path: Path) -> None:
    endpoint = f"endpoint=http://{address}"
    assert _run(corpus, f"s3://pages/size?{endpoint}&object={OBJECT}", tmp_path / "as-filled").code == 0
    done = _run(corpus, f"s3://pages/size?{endpoint}&object={2 * OBJECT}&fill=no", tmp_path / "larger")
    tails = _measured(tmp_path / "larger")
    # A write of a part reads the object first; a read may lie where there is something.
    assert (tails["write"].done, tails["write"].failed > 0, tails["read"].failed > 0) == (0, True, True)
    said = " ".join(done.out.split())
    assert "objects of another size lie there" in said, "the target's words are not told"
    assert "There is no latency of them." in said
    failed, ended = tails["all"].failed, tails["all"].failed + tails["all"].done
    assert done.code == int(2 * failed > ended)
    if done.code:
        assert f"corpus: {failed} of {ended} requests failed" in " ".join(done.err.split())


class _Iam:
    """A user of moto's IAM, and its switch for the verification of every request."""

    def __init__(self, address: str) -> None:
        self._address = address

    def call(self, action: str, **fields: str) -> ET.Element:
        headers = {**IAM, "Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode({"Action": action, "Version": "2010-05-08", **fields})
        return ET.fromstring(_ask(self._address, "POST", "/", body, headers))  # noqa: S314 - of our own server

    def key(self) -> tuple[str, str]:
        self.call("CreateUser", UserName="bench")
        policy = {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
        }
        self.call("PutUserPolicy", UserName="bench", PolicyName="all", PolicyDocument=json.dumps(policy))
        made = self.call("CreateAccessKey", UserName="bench")
        found = {one.tag.rpartition("}")[2]: str(one.text) for one in made.iter()}
        return found["AccessKeyId"], found["SecretAccessKey"]

    def verify(self, after: str) -> None:
        _ask(self._address, "POST", "/moto-api/reset-auth", after)


def test_signatures_are_verified(
    address: str, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    iam = _Iam(address)
    name, secret = iam.key()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", name)
    target = f"s3://pages/signed?endpoint=http://{address}&region=eu-central-1&object={OBJECT}"
    iam.verify("0")
    try:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
        done = _run(corpus, target, tmp_path / "right")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{secret[:-1]}{'b' if secret[-1] == 'a' else 'a'}")
        refused = _run(corpus, target, tmp_path / "wrong")
    finally:
        iam.verify("inf")
    assert done.code == 0, done.err
    tails = _measured(tmp_path / "right")
    assert (tails["all"].failed, tails["read"].done > 0, tails["write"].done > 0) == (0, True, True)
    said = " ".join(refused.err.split())
    assert (refused.code, "s3://pages: the credentials may not use this bucket" in said) == (2, True), said
    assert secret[:-1] not in refused.out + refused.err


class _Slow(BaseHTTPRequestHandler):
    """Says SlowDown to every other PUT, and to every GET that nothing is there."""

    protocol_version = "HTTP/1.1"
    puts = itertools.count()
    refused: ClassVar[list[str]] = []

    def _answer(self, status: HTTPStatus, body: bytes = b"") -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        self._answer(HTTPStatus.OK)

    def do_GET(self) -> None:
        self._answer(HTTPStatus.NOT_FOUND)

    def do_PUT(self) -> None:
        if next(self.puts) % 2:
            self._answer(HTTPStatus.OK)
            return
        self.refused.append(self.path)
        self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"<Error><Code>SlowDown</Code></Error>")

    def log_message(self, *_: object) -> None:
        pass


def test_a_store_that_asks_to_slow_down(corpus: Corpus, tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Slow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        target = f"s3://pages?endpoint=http://127.0.0.1:{server.server_port}&object={OBJECT}"
        filled = _run(corpus, target, tmp_path / "filled")
        _Slow.refused.clear()
        done = _run(corpus, f"{target}&fill=no", tmp_path / "runs")
        server.shutdown()
    assert (filled.code, "status 503 (SlowDown)" in " ".join(filled.err.split())) == (2, True), filled.err
    assert done.code == 0, done.err
    tails = _measured(tmp_path / "runs")
    # Each refusal is a failure of its own, because nothing is retried.
    assert tails["write"].failed == len(_Slow.refused) > 0
    [verdict] = verdicts_of(executed(StoredRun(tmp_path / "runs" / "latest")))
    assert (verdict.level, "status 503 (SlowDown)" in verdict.detail) == ("problem", True), verdict
    assert verdict.text.startswith(f"corpus: {len(_Slow.refused)} of ")
    assert (tails["read"].failed, tails["all"].done + tails["all"].failed) == (
        0,
        len(corpus.requests(0)["time_us"]),
    )


def test_a_bucket_that_is_not_there_is_named(address: str, corpus: Corpus, tmp_path: Path) -> None:
    done = _run(corpus, f"s3://elsewhere?endpoint=http://{address}", tmp_path / "runs")
    assert (done.code, "elsewhere: there is no such bucket" in " ".join(done.err.split())) == (2, True)


def test_credentials_are_asked_of_the_environment(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    done = _run(corpus, "s3://pages", tmp_path / "runs")
    assert (done.code, "AWS_SECRET_ACCESS_KEY" in done.err) == (2, True)
