"""Labs with a server for whoever asks for one; and what the marker ``survives`` promises is put on record."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from law import corpus, runs  # noqa: F401 - fixtures for the tests of models
from postgres_lab import Lab
from product_labs import full_lab, lab_of, lab_without_database, new_lab, words  # noqa: F401 - fixtures for everybody
from remeasure import Remeasure
from survivals import Survival, record

from nephoscope import masking

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator


@pytest.fixture(autouse=True)
def _secrets_of_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test mask what another one has made known: a password such as ``wrong`` is a word elsewhere."""
    monkeypatch.setattr(masking, "_known", set(masking._known))


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    yield from lab_without_database(Lab, monkeypatch)


@pytest.fixture(scope="session")
def common_lab(lab_of: Callable[[type[Lab]], Lab]) -> Lab:  # noqa: F811 - the fixture
    """A lab for tests that leave the server's folder as they found it: its database is made once."""
    return lab_of(Lab)


@pytest.fixture
def ready_lab(lab: Lab, common_lab: Lab) -> Lab:
    """A lab of one's own that has a database already."""
    lab.take_database_of(common_lab)
    return lab


def pytest_sessionstart(session: pytest.Session) -> None:
    # What is started inherits what is ignored here: by nohup, or as a job in the background.
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    session.config.pluginmanager.register(Remeasure(session.config._tmp_path_factory.getbasetemp()))  # type: ignore[attr-defined]


_LABS = frozenset({"databases", "groups_lab", "patroni_lab", "postgres_lab", "products", "tls_server"})
"""The modules that start servers."""


def _starts_servers(item: pytest.Item) -> bool:
    """Whether a test asks for a server, or stands in a module that has something of a lab."""
    fixtures: set[str] = set(getattr(item, "fixturenames", ()))
    module = vars(getattr(item, "module", None) or object)
    labs = {getattr(thing, "__module__", None) for thing in module.values()}
    return bool(_LABS & labs or {"lab", "new_lab", "lab_of"} & fixtures)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts servers. Begin with what takes long, then with servers: the quick tests fill up the end."""
    for item in items:
        if _starts_servers(item):
            item.add_marker("servers")
        # What a fixture of a module has measured is for all of the module's tests; cases of calibration share nothing.
        if item.get_closest_marker("light") and "case" not in item.fixturenames:  # type: ignore[attr-defined]
            item.add_marker(pytest.mark.xdist_group(item.location[0]))
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("long", "servers")])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    mark = item.get_closest_marker("survives")
    if mark is not None and (report.skipped or (report.when == "call" and report.passed)):
        test = item.nodeid.partition("[")[0]
        record(Survival(test=test, proved=report.passed, **mark.kwargs), item.nodeid)
    return report
