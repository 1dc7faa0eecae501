"""Writes the generated parts of docs/: keys of studies and price books, columns of the tables that are kept, the
matrix of workloads.

A part stands between ``<!-- generated: module:Class -->`` and ``<!-- end -->``. What a key means is the docstring
under its field, or stands in its column. ``--check`` changes nothing and fails where something is out of date or
missing.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import re
import sys
import textwrap
import types
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import annotated_types as bounds
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from nephoscope import registry
from nephoscope.settings import loads
from nephoscope.settings.units import format_duration, parse_duration
from nephoscope.study import reading as study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nephoscope.tables.model import Table

DOCS = Path(__file__).parents[2] / "docs"
_PART = re.compile(r"(<!-- generated: (?P<name>[\w.:]+) -->\n).*?(<!-- end -->)", re.DOTALL)

# What a study may write in several ways has a section of its own.
_SECTIONS: dict[Any, str] = {
    loads.AccessSetting: "[access](studies.md#access-distributions)",
    loads.Think: "[think time](studies.md#think-time)",
    loads.Level: "number or [ramp](studies.md#ramps)",
    loads.MixSetting: "[mix](studies.md#mixes)",
}
_WORDS: dict[Any, str] = {
    str: "text",
    bool: "boolean",
    int: "integer",
    float: "number",
    Path: "path",
    Any: "any value",
}


# --- what a field is --------------------------------------------------------------------------------------------


def fields(model: type[BaseModel]) -> Iterator[str]:
    """Write a row for each key of a model."""
    hints = get_type_hints(model, include_extras=True)
    meanings = _docstrings(model)
    for name, field in model.model_fields.items():
        if _is_mark(hints[name]):
            meanings.setdefault(name, "Says that it is this one.")
        if name not in meanings:
            raise SystemExit(f"{model.__module__}:{model.__name__}.{name} has no docstring")
        limits = _limits(field.metadata) if get_origin(hints[name]) is not Annotated else ""
        kind = _kind(hints[name]) + limits
        cells = (f"`{field.alias or name}`", kind, _default(field, hints[name]), meanings[name])
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(model: type[BaseModel]) -> str:
    """Write the table of a model's keys."""
    head = "| key | type | default | meaning |\n|---|---|---|---|\n"
    return head + "".join(f"{row}\n" for row in fields(model))


def columns(tables: Sequence[Table]) -> str:
    """Write the columns of tables that are kept in files, each table under its name."""
    parts = []
    for one in tables:
        rows = "".join(f"| `{column.name}` | {column.kind} | {column.meaning} |\n" for column in one.columns)
        parts.append(f"`{one.name}`:\n\n| column | type | meaning |\n|---|---|---|\n{rows}")
    return "\n".join(parts)


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Read the docstrings under the fields of a class and of those that it inherits from."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not (issubclass(base, BaseModel) and base.__module__.startswith("nephoscope")):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(said))),
                ):
                    found[name] = " ".join(said.replace("``", "`").split())
                case _:
                    pass
    return found


def _is_mark(hint: Any) -> bool:
    """Whether a key has one value only: it tells models apart, and the study has to write it."""
    return get_origin(hint) is Literal and len(get_args(hint)) == 1


def _kind(hint: Any) -> str:  # noqa: PLR0911 - one for each sort of type
    """Say in words what a value may be."""
    for known, text in _SECTIONS.items():
        if _choices(hint) == _choices(known):
            return text
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        if any(getattr(extra, "func", None) is parse_duration for extra in inner[1:]):
            return "[time](studies.md#lengths-of-time)"
        return _kind(inner[0]) + _limits(inner[1:])
    if origin is Literal:
        return ", ".join(f"`{json.dumps(value)}`" for value in inner)
    if origin in (types.UnionType, typing.Union):
        kinds = [_kind(one) for one in inner if one is not type(None)]
        return ", ".join(kinds[:-1]) + (" or " if len(kinds) > 1 else "") + kinds[-1]
    if origin in (list, tuple):
        return f"list of {_kind(inner[0])}"
    if origin is dict:
        return f"table of {_kind(inner[1])}"
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return "table"
    return _WORDS[hint]


def _choices(hint: Any) -> Any:
    """Take a union apart, so that an optional one equals the same that is not."""
    if get_origin(hint) in (types.UnionType, typing.Union):
        return [one for one in get_args(hint) if one is not type(None)]
    return [hint]


def _limits(extras: Sequence[Any]) -> str:
    """Say which values are allowed."""
    limits: list[str] = []
    for extra in extras:
        for one in extra.metadata if isinstance(extra, FieldInfo) else (extra,):
            match one:
                case bounds.Ge(ge=low):
                    limits.append(f"≥ {low}")
                case bounds.Gt(gt=low):
                    limits.append(f"> {low}")
                case bounds.Le(le=int() | float() as high):
                    limits.append(f"≤ {int(high):,}" if high == int(high) else f"≤ {high}")
                case bounds.Lt(lt=high):
                    limits.append(f"< {'2⁶³' if high == 2**63 else high}")
                case bounds.MinLen(min_length=1):
                    limits.append("not empty")
                case _:
                    pass
    return f", {', '.join(limits)}" if limits else ""


def _default(field: FieldInfo, hint: Any) -> str:
    if field.is_required() or _is_mark(hint):
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value is PydanticUndefined:
        return "–"  # noqa: RUF001 - a dash for what is absent
    if isinstance(value, BaseModel):
        distribution = getattr(value, "distribution", None)
        return f'`"{distribution}"`' if distribution else "as below"
    if "parse_duration" in repr(hint):
        return f'`"{format_duration(value)}"`'
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{json.dumps(value)}`"


# --- the files --------------------------------------------------------------------------------------------------


def generated(text: str) -> str:
    """Write every generated part of a page anew."""

    def part(found: re.Match[str]) -> str:
        module, _, name = found["name"].partition(":")
        named = getattr(importlib.import_module(module), name)
        return f"{found[1]}{_made(named)}{found[3]}"

    return _PART.sub(part, text)


def _made(named: Any) -> str:
    """Make a part of a model of keys, or of a function that gives tables or the text itself."""
    if isinstance(named, type) and issubclass(named, BaseModel):
        return table(named)
    made = named()
    return made if isinstance(made, str) else columns(made)


def models() -> set[type[BaseModel]]:
    """Find every model that a study may reach: its tables, and what is registered."""
    found: set[type[BaseModel]] = set()
    waiting: list[Any] = [field.annotation for field in study.Study.model_fields.values()]
    waiting += [registry.load("systems", name).settings_type for name in registry.names("systems")]
    waiting += [registry.load("evaluators", name).settings_type for name in registry.names("evaluators")]
    while waiting:
        hint = waiting.pop()
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            if hint not in found:
                found.add(hint)
                waiting += get_type_hints(hint, include_extras=True).values()
        else:
            waiting += [inner for inner in get_args(hint) if not isinstance(inner, str | int | float)]
    # Each provider's and evaluator's own table holds the keys of these two.
    return {model for model in found if model.__name__ not in ("SystemSettings", "MeasureSettings")}


def main() -> None:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if something would change")
    only_check = parser.parse_args().check
    faults, named = [], set[str]()
    for page in sorted(DOCS.glob("*.md")):
        old = page.read_text(encoding="utf-8")
        named |= {found["name"] for found in _PART.finditer(old)}
        if (new := generated(old)) != old:
            faults.append(f"{page.name} is out of date: run make docs")
            if not only_check:
                page.write_text(new, encoding="utf-8")
    missing = {f"{model.__module__}:{model.__name__}" for model in models()} - named
    silent = [f"no page has the keys of {name}" for name in sorted(missing)]
    if silent or (only_check and faults):
        sys.exit("\n".join(silent + (faults if only_check else [])))


if __name__ == "__main__":
    main()
