"""Labs of each product, for tests that run over all of them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from postgres_lab import lab_with_database
from products import EVERY_PRODUCT, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from postgres_lab import Lab


@pytest.fixture(scope="module", params=EVERY_PRODUCT)
def words(request: pytest.FixtureRequest) -> Words:
    """The product that a test is about."""
    words: Words = request.param
    return words


@pytest.fixture(scope="session")
def lab_of() -> Iterator[Callable[[type[Lab]], Lab]]:
    """Give a lab of a kind whose database is there; it is made once."""
    with ExitStack() as made:
        labs: dict[type[Lab], Lab] = {}

        def lab_of(kind: type[Lab]) -> Lab:
            if kind not in labs:
                labs[kind] = made.enter_context(lab_with_database(kind))
            return labs[kind]

        yield lab_of


def lab_without_database(kind: type[Lab], monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Make a lab, with a cache of its own."""
    lab = kind()
    monkeypatch.setenv("NEPHOSCOPE_CACHE", str(lab.base / "cache"))
    try:
        yield lab
    finally:
        lab.close()


@pytest.fixture
def new_lab(words: Words, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A lab of the product, without a database."""
    yield from lab_without_database(words.lab, monkeypatch)


@pytest.fixture
def full_lab(words: Words, new_lab: Lab, lab_of: Callable[[type[Lab]], Lab]) -> Lab:
    """A lab of the product that has a database already."""
    new_lab.take_database_of(lab_of(words.lab))
    return new_lab
