"""The page's style sheets and scripts, as the text that is put into it.

The page holds everything that it needs: it is handed on as one file and opened without a network.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

_ROOT = files("nephoscope.report")

STYLES = ("page.css", "tables.css", "figures.css", "print.css")
EARLY_SCRIPT = "early.js"
"""Runs in the head, so that the page is never painted in the wrong theme."""
SCRIPTS = ("theme.js", "format.js", "frame.js", "phases.js", "time.js", "xy.js", "cells.js", "page.js")
"""Share one scope, in this order."""
VENDORED = "echarts.common.min.js"


class UnsafeAssetError(ValueError):
    """A script or a style sheet would end the element that it is put into."""


@cache
def css() -> str:
    """All style sheets; each palette is written once and used for its theme, the toggle and paper."""
    light = f"color-scheme: light;\n{_asset('light.css')}"
    dark = f"color-scheme: dark;\n{_asset('dark.css')}"
    palettes = (
        f":root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme]) {{ {dark} }} }}\n"
        f':root[data-theme="dark"] {{ {dark} }}\n'
        f"@media print {{ :root, :root[data-theme], :root:not([data-theme]) {{ {light} }} }}\n"
    )
    return _checked(palettes + "\n".join(_asset(name) for name in STYLES), "</style")


@cache
def early_script() -> str:
    """Return the script of the head."""
    return _checked(_asset(EARLY_SCRIPT), "</script")


@cache
def page_script() -> str:
    """Return the page's own scripts, in one function so that they leave nothing behind."""
    body = "\n".join(_asset(name) for name in SCRIPTS)
    return _checked(f'(() => {{\n"use strict";\n{body}\n}})();\n', "</script")


@cache
def chart_library() -> str:
    """Apache ECharts, as vendored."""
    return _checked(_ROOT.joinpath("vendor", VENDORED).read_text(encoding="utf-8"), "</script")


@cache
def content_security_policy() -> str:
    """Return the page's content security policy: run exactly these scripts, and load nothing."""
    scripts = " ".join(f"'{_digest(text)}'" for text in (early_script(), chart_library(), page_script()))
    return f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:"


def _asset(name: str) -> str:
    return _ROOT.joinpath("static", name).read_text(encoding="utf-8")


def _checked(text: str, forbidden: str) -> str:
    if forbidden in text.lower() or "<!--" in text:
        raise UnsafeAssetError(f"an asset of the report contains {forbidden!r} or an HTML comment")
    return text


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
