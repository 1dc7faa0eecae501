"""The fault proxy as Python has it: JSON in, JSON out, and errors of one's own."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import TYPE_CHECKING

import pytest

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND = 1_000_000_000


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        yield listener


@pytest.fixture
def proxy(server: socket.socket) -> Iterator[_engine.FaultProxy]:
    host, port = server.getsockname()
    proxy = _engine.FaultProxy(f"{host}:{port}")
    yield proxy
    proxy.close()


def connect(proxy: _engine.FaultProxy) -> socket.socket:
    host, port = proxy.address.split(":")
    return socket.create_connection((host, int(port)), timeout=20)


@contextlib.contextmanager
def through(
    proxy: _engine.FaultProxy, server: socket.socket
) -> Iterator[tuple[socket.socket, socket.socket]]:
    with connect(proxy) as client, server.accept()[0] as there:
        there.settimeout(20)
        yield client, there


def test_a_delay_takes_effect_and_is_on_record(proxy: _engine.FaultProxy, server: socket.socket) -> None:
    with through(proxy, server) as (client, there):
        at = proxy.set(json.dumps({"to_server": {"delay": {"law": "constant", "ms": 30}}}))
        assert at <= _engine.monotonic_ns()
        start = time.monotonic()
        client.sendall(b"hello")
        assert there.recv(5) == b"hello"
        assert time.monotonic() - start >= 0.03
    [event] = json.loads(proxy.events())
    assert (event["at_ns"], event["what"]) == (at, "faults")
    assert event["faults"]["to_server"]["delay"] == {"law": "constant", "ms": 30.0}
    assert json.loads(proxy.counters())["accepted"] == 1


def test_new_connections_wait_and_are_passed_on(proxy: _engine.FaultProxy, server: socket.socket) -> None:
    at = proxy.hold(holds=True)
    with connect(proxy) as client:
        client.sendall(b"hello")
        limit = time.monotonic() + 20
        while json.loads(proxy.counters())["waiting"] == 0:
            assert time.monotonic() < limit
            time.sleep(0.001)
        assert proxy.hold(holds=False) > at
        with server.accept()[0] as there:
            there.settimeout(20)
            assert there.recv(5) == b"hello"
    assert [event["holds"] for event in json.loads(proxy.events())] == [True, False]


def test_what_happens_to_connections(proxy: _engine.FaultProxy, server: socket.socket) -> None:
    with through(proxy, server) as (client, there):
        proxy.inject("to_client", b"\x00\xff")
        assert client.recv(2) == b"\x00\xff"
        proxy.half_close("to_server")
        assert there.recv(1) == b""
        there.sendall(b"x")
        assert client.recv(1) == b"x"
        proxy.cut()
        assert client.recv(1) == b""
    with through(proxy, server) as (client, there):
        proxy.reset()
        for end in (client, there):
            with pytest.raises(ConnectionResetError):
                end.recv(1)
    kinds = [event["what"] for event in json.loads(proxy.events())]
    assert kinds == ["inject", "half_close", "cut", "reset"]


def test_a_target_can_be_changed(proxy: _engine.FaultProxy, server: socket.socket) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, through(proxy, server) as (client, _):
        other.settimeout(20)
        proxy.set_target("{}:{}".format(*other.getsockname()), cut=True)
        assert client.recv(1) == b""
        with through(proxy, other) as (newcomer, there):
            newcomer.sendall(b"hello")
            assert there.recv(5) == b"hello"


def test_a_schedule_is_kept(proxy: _engine.FaultProxy) -> None:
    start = _engine.monotonic_ns()
    plan = [
        {"at_ns": start + SECOND // 20, "faults": {"accept": "refuse"}},
        {"at_ns": start + SECOND // 5, "faults": {}},
    ]
    proxy.schedule(json.dumps(plan))
    limit = time.monotonic() + 20
    while len(events := json.loads(proxy.events())) < len(plan):
        assert time.monotonic() < limit
        time.sleep(0.01)
    assert [event["planned_ns"] for event in events] == [step["at_ns"] for step in plan]
    assert all(event["at_ns"] >= event["planned_ns"] for event in events)
    connect(proxy).close()


def test_wrong_input_says_what_is_allowed(proxy: _engine.FaultProxy) -> None:
    with pytest.raises(InputError, match="unknown variant `drop`, expected one of `pass`, `refuse`"):
        proxy.set('{"accept": "drop"}')
    with pytest.raises(InputError, match="missing field `at_ns`"):
        proxy.schedule('[{"faults": {}}]')
    with pytest.raises(InputError, match="allowed are to_server and to_client"):
        proxy.inject("up", b"")
    with pytest.raises(InputError, match="host:port and the path of a Unix socket"):
        proxy.set_target("nowhere")
    with pytest.raises(InputError, match="allowed is an address with a port"):
        _engine.FaultProxy("127.0.0.1:1", listen="here")
    with pytest.raises(MeasurementError, match="in use"):
        _engine.FaultProxy("127.0.0.1:1", listen=proxy.address)


def test_a_closed_proxy_gives_its_port_back(proxy: _engine.FaultProxy) -> None:
    proxy.close()
    proxy.close()
    with pytest.raises(MeasurementError, match="the proxy is closed"):
        proxy.cut()
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
