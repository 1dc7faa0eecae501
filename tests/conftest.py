"""What tests that carry the marker ``survives`` have proved is put on record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from survivals import Survival, record

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    mark = item.get_closest_marker("survives")
    if mark is not None and (report.skipped or (report.when == "call" and report.passed)):
        test = item.nodeid.partition("[")[0]
        record(Survival(test=test, proved=report.passed, **mark.kwargs), item.nodeid)
    return report
