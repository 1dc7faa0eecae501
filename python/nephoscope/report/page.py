"""From the view to the page: one HTML file that needs nothing but itself."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import ChoiceLoader, Environment, FunctionLoader, PackageLoader, StrictUndefined
from markupsafe import Markup

from nephoscope.report.kit import assets, toml
from nephoscope.report.kit.histograms import few_beyond
from nephoscope.scoring.definitions import FACTORS, TIMES, listed
from nephoscope.tables import numbers
from nephoscope.visible import visible

if TYPE_CHECKING:
    from pydantic import BaseModel

    from nephoscope.report.several import SeveralView
    from nephoscope.report.view import ReportView

# "<" could end the script element or open a comment in it; the other two are for good measure (they are
# escapes in JSON).
_JSON_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def render(view: ReportView) -> str:
    """Return the page of a run as HTML."""
    return render_with("page.html.j2", view)


def render_several(view: SeveralView) -> str:
    """Return the page of several runs as HTML."""
    return render_with("several.html.j2", view)


def render_with(template: str, view: BaseModel) -> str:
    """Return a page of another kind as HTML: its template extends ``frame.html.j2``.

    ``template`` stands among the report's, or in a package: ``nephoscope.storage/described.html.j2``. The page names
    the ``generator`` of the view.
    """
    page = (
        _environment()
        .get_template(template)
        .render(
            view=view,
            css=Markup(assets.css()),  # noqa: S704 - our own files, checked by the module that reads them
            early_script=Markup(assets.early_script()),  # noqa: S704
            page_script=Markup(assets.page_script()),  # noqa: S704
            chart_library=Markup(assets.chart_library()),  # noqa: S704
            policy=assets.content_security_policy(),
        )
    )
    # Our own files have nothing that is hidden: they, and the policy's hashes of them, stay as they are.
    return visible(page)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("nephoscope.report", "templates"), FunctionLoader(_of_package)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": numbers.number,
        "whole": numbers.count,
        "percent": numbers.percent,
        "dollars": numbers.dollars,
        "amount": numbers.amount,
        "plain": numbers.plain,
        "elapsed": numbers.elapsed,
        "toml": toml.highlight,
        "data": _data,
        "slug": _slug,
    }
    environment.globals |= {
        "spread": numbers.spread,
        "few_beyond": few_beyond,
        "milliseconds": numbers.milliseconds,
        "listed": listed,
        "factors": FACTORS,
        "times": TIMES,
    }
    return environment


def _of_package(name: str) -> str | None:
    """Return a template that stands in the folder of an evaluator: ``package/section.html.j2``."""
    package, _, file = name.partition("/")
    template = files(package) / file if file else None
    return template.read_text(encoding="utf-8") if template is not None and template.is_file() else None


def _data(part: BaseModel) -> Markup:
    """Return a part of the view as JSON that may stand in a script element."""
    text = json.dumps(
        _visible(part.model_dump(mode="json")), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return Markup(text.translate(_JSON_ESCAPES))  # noqa: S704 - escaped in this line


def _visible(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Make the texts of data visible: as escapes of JSON they would come back in a chart."""
    match value:
        case str():
            return visible(value)
        case list():
            return [_visible(entry) for entry in value]
        case dict():
            return {visible(key): _visible(entry) for key, entry in value.items()}
        case _:
            return value


def _slug(text: str) -> str:
    """Return a text as the id of an element."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
