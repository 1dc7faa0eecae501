"""Parameters of the server that were swept: TPS and P over their values (the paper's Figure 8)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import method, scored
from nephoscope.report.kit.charts import Axis, Line, XYChart, category, course
from nephoscope.report.kit.method import text_of
from nephoscope.report.kit.parts import Estimate
from nephoscope.tables.numbers import count, finite, number, plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.report.kit.run import Run

from nephoscope.report.kit.parts import Method, Number, Part

PLACE, ANCHOR, LABEL = 60, "parameters", "Parameters"
NO_MIX, HIDDEN = {"parameter"}, {"of_mix", "place"}


class ValueRow(Part):
    """A mix at a level, at a value of the parameter; ``held`` is what the server said, where that reads otherwise."""

    value: str
    held: str = ""
    mix: str
    color: str
    sessions: Number = None
    tps: Estimate
    most_tps: bool = False
    p: Estimate
    most_p: bool = False
    cost_per_minute: Number = None
    p50_ms: Number = None
    p99_ms: Number = None
    set_s: Number = None
    failed: int | None = None
    repetitions: int | None = None


class ParameterEntry(Part):
    """What an entry of ``[[measure]]`` came to that sweeps a parameter of the server."""

    parameter: str
    statement: str
    charts: tuple[XYChart, ...]
    rows: tuple[ValueRow, ...]
    note: str = ""


class ParameterSection(Part):
    """Parameters of the server, and what each of their values brought (the paper's Figure 8)."""

    entries: tuple[ParameterEntry, ...]
    method: tuple[Method, ...] = ()


_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")
_BYTES = {"B": 1, "kB": 2**10, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS: tuple[Mapping[str, float], ...] = ({"": 1.0}, _BYTES, _SECONDS)
"""What the units of a number are worth that a server knows: those of a row can be compared with each other."""
_FAR = 4.0
"""Values so many times apart stand on a logarithmic axis."""
_MARGIN = 0.4
_P_UNIT = "TPS per $/min"


@dataclass(frozen=True)
class _Value:
    """A value of the parameter, as the evaluator tells it."""

    label: str
    told: Mapping[str, Any]

    @property
    def per_minute(self) -> float | None:
        return finite(self.told.get("cost_per_minute"))

    @property
    def mixes(self) -> Mapping[str, Any]:
        return scored.table(self.told.get("mixes"))

    def points(self, mix: str) -> list[Mapping[str, Any]]:
        """Return what a mix brought at each level."""
        of_mix = scored.table(self.mixes.get(mix))
        return [scored.table(point) for point in scored.sequence(of_mix.get("points"))]

    def mean(self, mix: str, key: str) -> float | None:
        """Return the TPS or the P of a mix: the mean over the levels."""
        return finite(scored.table(self.mixes.get(mix)).get(key))


@dataclass(frozen=True)
class _Swept:
    """A parameter with its values, in the study's order."""

    parameter: str
    values: tuple[_Value, ...]

    @property
    def mixes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(mix for value in self.values for mix in value.mixes))

    def levels(self, mix: str) -> tuple[float, ...]:
        """Return the numbers of sessions that a mix was measured with."""
        return tuple(dict.fromkeys(_level(point) for value in self.values for point in value.points(mix)))

    @property
    def courses(self) -> tuple[tuple[str, float], ...]:
        """Return each mix with each of its levels: a line of the charts."""
        return tuple((mix, level) for mix in self.mixes for level in self.levels(mix))

    def best(self, mix: str, key: str) -> _Value | None:
        """Return the value with the highest TPS or P of a mix; None where none has any."""
        known = [(mean, value) for value in self.values if (mean := value.mean(mix, key)) is not None]
        return max(known, key=lambda one: one[0])[1] if known else None


def _level(point: Mapping[str, Any]) -> float:
    return finite(point.get("concurrency")) or 0.0


def build(run: Run) -> ParameterSection | None:
    """Return the section; None where no parameter was swept."""
    entries = []
    for place, found in scored.entries(run, "sweep").items():
        values = [scored.table(value) for value in scored.sequence(found.get("values"))]
        swept = _Swept(
            str(found.get("parameter")), tuple(_Value(text_of(told.get("value")), told) for told in values)
        )
        if any(swept.best(mix, "tps") for mix in swept.mixes):
            entries.append(_entry(place, swept, found))
    return ParameterSection(entries=tuple(entries), method=method.of(run, "sweep")) if entries else None


def _entry(place: str, swept: _Swept, found: Mapping[str, Any]) -> ParameterEntry:
    before = found.get("before")
    return ParameterEntry(
        parameter=swept.parameter,
        statement=_statement(swept),
        charts=_charts(place, swept),
        rows=tuple(row for value in swept.values for row in _rows(swept, value)),
        note="" if before is None else f"Before the sweep {swept.parameter} was {text_of(before)}.",
    )


# --- words ------------------------------------------------------------------------------------------------------


def _statement(swept: _Swept) -> str:
    """Say in a sentence which value has the best P, and which the highest TPS, in each mix."""
    single = len(swept.values) == 1
    among = (
        f"With {swept.parameter} at {swept.values[0].label}"
        if single
        else f"Of {count(len(swept.values))} values of {swept.parameter}"
    )
    of_mix = _only if single else _best
    several = len(swept.mixes) > 1
    said = [
        f"in {mix} {of_mix(swept, mix)}" if several else of_mix(swept, mix)
        for mix in swept.mixes
        if swept.best(mix, "tps")
    ]
    sentences = [f"{among}{':' if single or several else ','} {'; '.join(said)}."]
    costs = {value.per_minute for value in swept.values}
    if costs == {None}:
        sentences.append("There is no P: no resources are declared.")
    elif len(costs) == 1 and not single:
        sentences.append("Every value costs the same, so P only follows the TPS.")
    return " ".join(sentences)


def _only(swept: _Swept, mix: str) -> str:
    [value] = swept.values
    p = value.mean(mix, "p")
    return f"{number(value.mean(mix, 'tps'))} TPS" + ("" if p is None else f", {number(p)} {_P_UNIT}")


def _best(swept: _Swept, mix: str) -> str:
    fastest, best = swept.best(mix, "tps"), swept.best(mix, "p")
    named = [] if best is None else [f"{best.label} has the best P ({number(best.mean(mix, 'p'))} {_P_UNIT})"]
    if fastest is not None:
        has = "" if best is fastest else f"{fastest.label} " if named else f"{fastest.label} has "
        named.append(f"{has}the highest TPS ({number(fastest.mean(mix, 'tps'))})")
    return " and ".join(named)


def _message(swept: _Swept, key: str) -> str:
    """Say which value is the best, and which ones the intervals do not tell from it."""
    said = []
    for mix in swept.mixes:
        best = swept.best(mix, key)
        if best is None:
            continue
        alike = [
            value.label for value in swept.values if value is not best and _overlap(best, value, mix, key)
        ]
        but = f", its interval overlaps with that of {' and '.join(alike)}" if alike else ""
        said.append(f"{f'{mix}: ' if len(swept.mixes) > 1 else ''}highest at {best.label}{but}")
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."


def _overlap(one: _Value, other: _Value, mix: str, key: str) -> bool:
    """Tell whether the intervals of two values overlap; of a mean over several levels none is known."""
    points = (one.points(mix), other.points(mix))
    if any(len(of_value) != 1 for of_value in points):
        return False
    first, second = (_interval(of_value[0], key) for of_value in points)
    return first is not None and second is not None and first[0] <= second[1] and second[0] <= first[1]


def _interval(point: Mapping[str, Any], key: str) -> tuple[float, float] | None:
    return scored.ci95(point.get("p_ci95" if key == "p" else "ci95"))


# --- the charts -------------------------------------------------------------------------------------------------


def _charts(place: str, swept: _Swept) -> tuple[XYChart, ...]:
    shown = [("tps", "TPS", "transactions per second")]
    if any(swept.best(mix, "p") for mix in swept.mixes):
        shown.append(("p", "P", _P_UNIT))
    several = any(len(swept.levels(mix)) > 1 for mix in swept.mixes)
    means = " The best is by the mean over the levels." if several else ""
    places, axis = _axis(swept)
    return tuple(
        XYChart(
            id=f"parameter-{place}-{key}",
            title=f"{title} over {swept.parameter}",
            unit=unit,
            message=_message(swept, key),
            note=f"Means of the repetitions with their 95 % intervals.{means}",
            x=axis,
            y=Axis(title=title),
            lines=tuple(_lines(swept, places, key)),
        )
        for key, title, unit in shown
    )


def _axis(swept: _Swept) -> tuple[tuple[float, ...], Axis]:
    """Return where the values stand: numbers by their size, anything else in the study's order."""
    sizes = _sizes([value.told.get("value") for value in swept.values])
    places = sizes or tuple(float(index) for index in range(len(swept.values)))
    ticks = tuple((at, value.label) for at, value in zip(places, swept.values, strict=True))
    low, high = min(places), max(places)
    if sizes and high / low >= _FAR:
        return places, Axis(title=swept.parameter, scale="log2", ticks=ticks)
    margin = 0.1 * (high - low) if sizes else _MARGIN
    return places, Axis(title=swept.parameter, low=low - margin, high=high + margin, ticks=ticks)


def _sizes(values: Sequence[object]) -> tuple[float, ...] | None:
    """Return how large values are: None unless there are several, all above 0 and of one kind."""
    for units in _UNITS:
        sizes = [_size(value, units) for value in values]
        known = [size for size in sizes if size is not None and size > 0]
        if len(known) == len(values) == len(set(known)) > 1:
            return tuple(known)
    return None


def _size(value: object, units: Mapping[str, float]) -> float | None:
    """Read a number with one of these units, such as ``"128MB"``."""
    found = _NUMBER.fullmatch(str(value).strip()) if not isinstance(value, bool) else None
    if found is None or found[2] not in units:
        return None
    size = float(found[1]) * units[found[2]]
    return size if math.isfinite(size) else None


def _lines(swept: _Swept, places: Sequence[float], key: str) -> list[Line]:
    ascending = sorted(zip(places, swept.values, strict=True), key=lambda one: one[0])
    lines: list[Line] = []
    for index, (mix, level) in enumerate(swept.courses):
        name = mix if len(swept.levels(mix)) == 1 else f"{mix}, {plain(level)} sessions"
        points = [
            (at, finite(point.get(key)), _interval(point, key))
            for at, value in ascending
            for point in value.points(mix)
            if _level(point) == level
        ]
        lines += course(name, category(index), points)
    return lines


# --- the table --------------------------------------------------------------------------------------------------


def _rows(swept: _Swept, value: _Value) -> list[ValueRow]:
    held = value.told.get("held")
    times = [finite(given) for given in scored.sequence(value.told.get("took_s"))]
    rows = []
    for mix in swept.mixes:
        for point in value.points(mix):
            latency = scored.table(point.get("latency_ms"))
            row = ValueRow(
                value=value.label,
                held="" if held is None or text_of(held) == value.label else text_of(held),
                mix=mix,
                color=category(swept.courses.index((mix, _level(point))))[0],
                sessions=point.get("concurrency"),
                tps=Estimate(value=point.get("tps"), ci95=_interval(point, "tps")),
                most_tps=swept.best(mix, "tps") is value,
                p=Estimate(value=point.get("p"), ci95=_interval(point, "p")),
                most_p=swept.best(mix, "p") is value,
                cost_per_minute=value.per_minute,
                p50_ms=latency.get("p50"),
                p99_ms=latency.get("p99"),
                set_s=scored.mean(times),
                failed=scored.whole(point.get("failed")),
                repetitions=scored.whole(point.get("repetitions")),
            )
            rows.append(row)
    return rows
