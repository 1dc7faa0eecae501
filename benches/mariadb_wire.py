"""MariaDB's protocol, as far as a bare point select needs it: connections that the minimal client inherits.

https://mariadb.com/docs/server/reference/clientserver-protocol: "Connection", "COM_STMT_PREPARE", "COM_STMT_EXECUTE".
"""

from __future__ import annotations

import hashlib
import socket
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from benches.costs import Question

if TYPE_CHECKING:
    from urllib.parse import SplitResult

# As the driver's own: FOUND_ROWS, LONG_FLAG, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION,
# MULTI_RESULTS, PS_MULTI_RESULTS, PLUGIN_AUTH, DEPRECATE_EOF; and MariaDB's CACHE_METADATA.
_CAPABILITIES = 0x010E_A20E
_MORE = 0x10
_UTF8MB4 = 45
_EXECUTE = b"\x17\x01\0\0\0" + b"\0\x01\0\0\0" + b"\0\x01\x08\0"
"""Of the first statement of a connection: no cursor, once; no NULL, types follow, one of eight bytes."""
_HEADER = 4


def connected(url: str, sql: str) -> socket.socket:
    """Connect, and prepare a statement with one parameter. Raises ``RuntimeError`` for an error of the server."""
    parts = urlsplit(url)
    made = socket.create_connection((parts.hostname or "", parts.port or 3306))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _send(made, _response(_packet(made), parts), 1)
    _packet(made)
    _send(made, b"\x16" + sql.encode())
    # One parameter and one column are described.
    for _ in range(3):
        _packet(made)
    return made


def point_select(made: socket.socket, keys: int) -> Question:
    """Give the bytes of a select of the prepared statement, and of the end of its answer."""
    sent = (len(_EXECUTE) + 8).to_bytes(3, "little") + b"\0" + _EXECUTE + (1).to_bytes(8, "little")
    made.sendall(sent)
    while (packet := _packet(made))[0] != 0xFE:
        pass
    return Question(sent, packet, _HEADER + len(_EXECUTE), "little", keys)


def _response(greeting: bytes, parts: SplitResult) -> bytes:
    """Answer the greeting, with the password under the scramble of ``mysql_native_password``."""
    start = greeting.index(b"\0", 1) + 5
    nonce = greeting[start : start + 8] + greeting[start + 27 : start + 39]
    once = _sha1(unquote(parts.password or "").encode())
    mask = _sha1(nonce + _sha1(once))
    scramble = bytes(a ^ b for a, b in zip(once, mask, strict=True)) if parts.password else b""
    return b"".join(
        [
            _CAPABILITIES.to_bytes(4, "little"),
            (1 << 24).to_bytes(4, "little"),
            bytes([_UTF8MB4]),
            bytes(19),
            _MORE.to_bytes(4, "little"),
            unquote(parts.username or "").encode() + b"\0",
            bytes([len(scramble)]) + scramble,
            parts.path.lstrip("/").encode() + b"\0",
            b"mysql_native_password\0",
        ]
    )


def _sha1(data: bytes) -> bytes:
    # The protocol's own; the server is this machine's.
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _send(made: socket.socket, payload: bytes, number: int = 0) -> None:
    made.sendall(len(payload).to_bytes(3, "little") + bytes([number]) + payload)


def _packet(made: socket.socket) -> bytes:
    """Read a packet without its header."""
    header = made.recv(_HEADER, socket.MSG_WAITALL)
    payload = made.recv(int.from_bytes(header[:3], "little"), socket.MSG_WAITALL)
    if payload[:1] in (b"\xff", b""):
        raise RuntimeError(f"MariaDB: {payload[3:].decode(errors='replace') or 'the connection is closed'}")
    return payload
