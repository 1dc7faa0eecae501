"""Servers of HTTP that tests start on a free port of 127.0.0.1."""

from __future__ import annotations

import http.client
import subprocess
import threading
import time
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_STARTS_WITHIN_S = 120.0


@contextmanager
def running(words: Sequence[str], port: int) -> Iterator[int]:
    """Run a server of HTTP until the end of the context; gives its port once it answers."""
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


def fetched(url: str) -> bytes:
    """Fetch what a URL of this machine has. Raises ``OSError``."""
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - tests make the URLs
        return bytes(answer.read())


@contextmanager
def handling(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Answer requests by a handler, in a thread of this process; gives the URL without a path."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
