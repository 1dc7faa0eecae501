"""The tables of a study's file before they are validated: paths made absolute, keys put over them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.files import check_toml, is_file, parse_toml, read_toml
from nephoscope.foreign.naming import named
from nephoscope.study.borrowed import resolve
from nephoscope.study.packaged import PACKAGED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.study.borrowed import Given


def read_tables(
    path: Path | None, overrides: Sequence[str] = (), given: Given | None = None
) -> dict[str, Any]:
    """Read the tables of a study's file, with ``key=value`` put over them. Raises ``InputError``."""
    tables = {} if path is None else read_toml(path)
    # Paths in a study are relative to its file: it should mean the same wherever it is run from.
    relative_to(Path.cwd() if path is None else path.parent, tables)
    if given is not None:
        given.put(tables, whole=path is None)
    for override in overrides:
        _override(tables, override)
    # Those of the command line are relative to where that is typed.
    relative_to(Path.cwd(), tables)
    try:
        check_toml(tables)  # keys of the command line may have made it deeper
    except ValueError as error:
        raise InputError(f"--set: {error}") from None
    resolve(tables)
    return tables


def relative_to(folder: Path, tables: dict[str, Any]) -> None:
    """Make the paths among the values absolute; they are relative to a folder."""
    for table, key in (("workload", "name"), ("cost", "price_book"), ("cost", "starred"), ("system", "data")):
        values = tables.get(table)
        value = values.get(key) if isinstance(values, dict) else None
        if not isinstance(value, str) or not value:
            continue
        # Of "~" where nobody is at home, and of a NUL byte.
        with contextlib.suppress(RuntimeError, ValueError):
            if table == "workload" and (found := named(value)) is not None:
                tables[table][key] = str(found.below(folder))
            elif _is_path(f"{table}.{key}", value, folder):
                tables[table][key] = str((folder / Path(value).expanduser()).resolve())


def _is_path(key: str, value: str, folder: Path) -> bool:
    """Tell a path from the name of something that comes with nephoscope."""
    if "://" in value:
        return False
    if "/" in value or value.startswith("."):
        return True
    match key:
        case "workload.name":
            known = is_file(PACKAGED / value / "workload.lua")
            return not known and is_file(folder / value / "workload.lua")
        case "cost.price_book" | "cost.starred":
            return value.endswith(".toml")
        case _:
            return True


def _override(tables: dict[str, Any], override: str) -> None:
    """Put one ``--set key=value`` into the tables. The value is TOML, or else a text."""
    key, equals, value = override.partition("=")
    parts = key.strip().split(".")
    # The value may hold a password.
    shown = _engine.redact(override)
    if not equals or not all(parts):
        raise InputError(f"--set {shown}: expected key=value, such as workload.scale=10")
    put(tables, parts, given_value(value), f"--set {shown}")


def put(tables: dict[str, Any], parts: Sequence[str], value: Any, where: str) -> None:  # noqa: ANN401 - whatever TOML can hold
    """Put a value at the path of a key; ``where`` begins the message. Raises ``InputError``."""
    place: Any = tables
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if isinstance(place, list):
            if not part.isdigit() or int(part) >= len(place):
                have = f"0 to {len(place) - 1}" if place else "none"
                raise InputError(f"{where}: {'.'.join(parts[:at])} has no entry {part}; it has {have}")
            index = int(part)
            if last:
                place[index] = value
            place = place[index]
        elif isinstance(place, dict):
            if last:
                place[part] = value
            else:
                place = place.setdefault(part, {})
        else:
            raise InputError(f"{where}: {'.'.join(parts[:at])} is a value and has no {part}")


def given_value(text: str) -> Any:  # noqa: ANN401 - whatever TOML can hold
    """Read a value of the command line: TOML, or else a text."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text
