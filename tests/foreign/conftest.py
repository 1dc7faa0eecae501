"""One server for the tests of this folder, beside which pgbench runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from databases import Server, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def common_server(server: Server) -> str:
    """The URL of a database."""
    return server.new_database()
