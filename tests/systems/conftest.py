from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from postgres_lab import Lab, lab_with_database

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    lab = Lab()
    monkeypatch.setenv("NEPHOSCOPE_CACHE", str(lab.base / "cache"))
    try:
        yield lab
    finally:
        lab.close()


@pytest.fixture(scope="session")
def common_lab() -> Iterator[Lab]:
    """A lab for tests that leave the server's folder as they found it: its database is made once."""
    with lab_with_database() as lab:
        yield lab


@pytest.fixture
def ready_lab(lab: Lab, common_lab: Lab) -> Lab:
    """A lab of one's own that has a database already."""
    lab.take_database_of(common_lab)
    return lab
