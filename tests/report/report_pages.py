"""The views and pages of all runs, each made once for all tests."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from report_html import Page
from report_runs import RUNS

from nephoscope.report.build import build_view
from nephoscope.report.page import render

if TYPE_CHECKING:
    from report_stored import SyntheticRun

    from nephoscope.report.view import ReportView


@cache
def run(name: str) -> SyntheticRun:
    return RUNS[name]()


@cache
def view(name: str) -> ReportView:
    return build_view(run(name))


@cache
def html(name: str) -> str:
    return render(view(name))


@cache
def page(name: str) -> Page:
    return Page(html(name))
