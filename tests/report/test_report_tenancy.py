"""The section on tenants: what it says, and that damaged scores do not break the page."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from report_pages import run, section

from nephoscope.evaluators.tenancy.section import TenancySection
from nephoscope.report.build import build_view
from nephoscope.report.page import render

if TYPE_CHECKING:
    from nephoscope.report.view import ReportView

GIVEN = {
    "tenants": ["a", "<i2>"],
    "share": "schema",
    "patterns": {
        "high_contention": {
            "t": 1234.5,
            "sessions": [[24, 24], [12, 0]],
            "repetitions": 1,
            "jain": 0.9,
            "tenants": {
                "a": {"tps": 200.0, "slots": [200.0], "latency_ms": {"p50": 1.0, "p99": 9.0}, "share": 0.66},
                "<i2>": {"tps": 100.0, "slots": [100.0], "latency_ms": None, "share": 0.33},
            },
        }
    },
}


def view_with(tenancy: Any) -> ReportView:
    given = run("sweep")
    scores = {**(given.scores or {}), "details": {"tenancy": tenancy}}
    return build_view(dataclasses.replace(given, scores=scores))


def test_the_tenant_that_loses_the_most_is_named() -> None:
    found = section(view_with(GIVEN), TenancySection)
    assert found is not None
    assert found.statement == (
        "Beside the others <i2> keeps 33 % of the throughput that it has alone, the least of all tenants and "
        "patterns (high contention); Jain's fairness index there is 0.900."
    )
    (pattern,) = found.patterns
    assert [(row.tenant, row.sessions, row.tps, row.p99_ms) for row in pattern.rows] == [
        ("a", "24, 24", 200.0, 9.0),
        ("<i2>", "12, 0", 100.0, None),
    ]


def test_the_page_has_the_section_and_escapes_names() -> None:
    page = render(view_with(GIVEN))
    assert '<section id="tenancy">' in page
    assert '<a href="#tenancy">' in page
    assert "Beside the others &lt;i2&gt;" in page
    assert "<i2>" not in page
    assert '<section id="tenancy">' not in render(build_view(run("sweep")))


def test_tenants_without_a_measurement_alone_have_no_interference() -> None:
    pattern = GIVEN["patterns"]["high_contention"]  # type: ignore[index]
    tenants = {name: {**entry, "share": None} for name, entry in pattern["tenants"].items()}
    found = section(
        view_with({**GIVEN, "patterns": {"mine": {**pattern, "tenants": tenants, "jain": None}}}),
        TenancySection,
    )
    assert found is not None
    assert found.statement.startswith("No tenant was measured both alone and beside others")


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        [],
        "x",
        {"patterns": 3},
        {"patterns": {"p": None}},
        {"patterns": {"p": {"tenants": {"a": 1}, "sessions": 2}}},
    ],
)
def test_damaged_scores_give_a_page(damaged: Any) -> None:
    assert "</html>" in render(view_with(damaged))
