"""The words and figures of a whole page.

After a change that is meant: ``UPDATE_GOLDEN=1 pytest tests/report -k golden``, and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from report_evaluated import failover_run, lag_run
from report_html import Page
from report_runs import failed_run, killed_run, sweep_run
from report_scaling import parameters_run, scaleout_run

from nephoscope.report.build import build_view
from nephoscope.report.page import render

GOLDEN = Path(__file__).parent / "golden"
RUNS = {
    "sweep": lambda: sweep_run(repetitions=2, warm=1, measure=2),
    "killed": killed_run,
    "failures": failed_run,
    "failover": failover_run,
    "lag": lag_run,
    "scaleout": scaleout_run,
    "parameters": parameters_run,
}


@pytest.mark.parametrize("name", RUNS)
def test_the_page_says_what_it_said(name: str) -> None:
    outline = Page(render(build_view(RUNS[name]()))).outline()
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(outline, encoding="utf-8")
    assert outline == file.read_text(encoding="utf-8")
