"""The views and pages of all runs, each made once for all tests."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar

from report_html import Page
from report_runs import RUNS

from nephoscope.report.build import build_view
from nephoscope.report.kit.parts import Part
from nephoscope.report.page import render

if TYPE_CHECKING:
    from report_stored import SyntheticRun

    from nephoscope.report.view import ReportView


P = TypeVar("P", bound=Part)


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


def section(shown: ReportView, kind: type[P]) -> P | None:
    """Return what a measurement shows on the page."""
    return next((one.part for one in shown.sections if isinstance(one.part, kind)), None)
