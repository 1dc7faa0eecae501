"""Cassandra's native protocol, as far as a bare read of a row needs it: connections that the minimal client inherits.

https://github.com/apache/cassandra/blob/trunk/doc/native_protocol_v4.spec, sections 2, 4.1 and 4.2.5.
"""

from __future__ import annotations

import socket
import struct
import time
from urllib.parse import urlsplit

from benches.costs import Question

_STARTUP, _PREPARE, _EXECUTE = 1, 9, 10
_ERROR = 0
_LOCAL_ONE = 10
_VALUES_SKIP_TIMESTAMP = 0x23
_HEADER = 9


def connected(url: str, cql: str) -> tuple[socket.socket, bytes]:
    """Connect, and prepare a statement that names its keyspace, for servers warn of others; give its identifier, too.

    Raises ``RuntimeError`` for an error of the server.
    """
    parts = urlsplit(url)
    made = socket.create_connection((parts.hostname or "", parts.port or 9042))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _ask(made, _STARTUP, struct.pack(">H", 1) + _string(b"CQL_VERSION") + _string(b"3.0.0"))
    prepared = _ask(made, _PREPARE, struct.pack(">I", len(cql)) + cql.encode())
    (size,) = struct.unpack_from(">H", prepared, 4)
    return made, prepared[6 : 6 + size]


def read(made: socket.socket, statement: bytes, key: str) -> Question:
    """Give the bytes of a read of the row of a key as the driver sends them, and of the end of its answer.

    What differs from one to the next is the end of the time, which no read looks at.
    """
    body = _string(statement) + struct.pack(">HBHI", _LOCAL_ONE, _VALUES_SKIP_TIMESTAMP, 1, len(key))
    body += key.encode() + struct.pack(">q", time.time_ns() // 1000)
    answer = _ask(made, _EXECUTE, body)
    sent = _frame(_EXECUTE, body)
    return Question(sent, answer[-16:], len(sent) - 4, "big", 1 << 30)


def _string(text: bytes) -> bytes:
    return struct.pack(">H", len(text)) + text


def _frame(opcode: int, body: bytes) -> bytes:
    return struct.pack(">BBhBI", 4, 0, 0, opcode, len(body)) + body


def _ask(made: socket.socket, opcode: int, body: bytes) -> bytes:
    made.sendall(_frame(opcode, body))
    header = made.recv(_HEADER, socket.MSG_WAITALL)
    answer = made.recv(int.from_bytes(header[5:9], "big"), socket.MSG_WAITALL)
    if header[4] == _ERROR:
        raise RuntimeError(f"Cassandra: {answer[6:].decode(errors='replace')}")
    return answer
