"""All scores: their intervals, their measurement, absent scores with their reasons, and the terms of O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import scored, told
from nephoscope.report.kit.charts import category
from nephoscope.report.kit.method import text_of
from nephoscope.report.kit.parts import Estimate, Fact
from nephoscope.report.view import AbsentScores, OTerm, ScoreRow, Scores
from nephoscope.scoring.definitions import BY_ENDS, DEFINITIONS, PERFECT
from nephoscope.tables.numbers import duration, finite, number, plain, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.report.kit.run import Run
    from nephoscope.scoring.definitions import Definition


def build(run: Run) -> Scores:
    """Return the section."""
    rows, absent = _scores(run), _absent(run)
    return Scores(
        statement=_statement(rows, absent),
        rows=(*rows, *_starred(run)),
        absent=absent,
        terms=_terms(run),
        note=_note(run),
    )


def _known(run: Run) -> dict[str, Definition | None]:
    """Return the scores that are defined, and any that the run adds to them."""
    names = (*scored.table(run.scores.get("scores")), *scored.table(run.scores.get("absent")))
    return {**DEFINITIONS, **{str(key): None for key in names if key not in DEFINITIONS}}


def _scores(run: Run) -> tuple[ScoreRow, ...]:
    """Return the scores that were measured."""
    found = ((key, about, scored.score(run, key)) for key, about in _known(run).items())
    return tuple(_score(run, key, about, score) for key, about, score in found if _measured(score))


def _measured(score: Mapping[str, Any]) -> bool:
    return finite(score.get("value")) is not None


def _score(run: Run, key: str, about: Definition | None, score: Mapping[str, Any]) -> ScoreRow:
    return ScoreRow.model_validate(
        {
            "key": key,
            "name": about.name if about else key,
            "meaning": about.about if about else "",
            "better": about.better if about else None,
            "unit": str(score.get("unit") or (about.unit if about else "")),
            "estimate": Estimate(
                value=score.get("value"), ci95=scored.ci95(score.get("ci95")), by_ends=key in BY_ENDS
            ),
            "repetitions": score.get("repetitions"),
            "how": _how(run, key, score),
        }
    )


def _starred(run: Run) -> tuple[ScoreRow, ...]:
    """Return the scores by the actual prices, where there is a second price book."""
    starred = scored.table(run.scores.get("starred"))
    found = ((key, scored.table(score)) for key, score in scored.table(starred.get("scores")).items())
    how = f"by the price book {starred.get('price_book')}, for resources held {duration(finite(starred.get('held_s')))}"
    return tuple(
        _score(run, key, DEFINITIONS[key], score).model_copy(update={"key": f"{key}*", "how": how})
        for key, score in found
        if key in DEFINITIONS and _measured(score)
    )


def _absent(run: Run) -> tuple[AbsentScores, ...]:
    """Return the absent scores, grouped by reason."""
    reasons = scored.table(run.scores.get("absent"))
    groups: dict[str, list[Fact]] = {}
    for key, about in _known(run).items():
        if not _measured(scored.score(run, key)):
            reason = str(reasons.get(key) or "not measured in this run")
            groups.setdefault(reason, []).append(Fact(label=key, value=about.name if about else ""))
    return tuple(AbsentScores(scores=tuple(facts), reason=reason) for reason, facts in groups.items())


def _statement(rows: Sequence[ScoreRow], absent: Sequence[AbsentScores]) -> str:
    """Say in a sentence which scores there are."""
    said = [
        " ".join(
            part
            for part in (
                row.key,
                number(row.estimate.value),
                spread(row.estimate.value, row.estimate.ci95, by_ends=row.estimate.by_ends),
                row.unit,
            )
            if part
        )
        for row in rows
    ]
    missing = [fact.label for group in absent for fact in group.scores]
    if not said:
        return "No score was measured in this run."
    return f"Measured: {', '.join(said)}." + (f" Absent: {', '.join(missing)}." if missing else "")


# --- how they were measured -------------------------------------------------------------------------------------


def _how(run: Run, key: str, score: Mapping[str, Any]) -> str:
    """Describe the measurement of a score; empty where the run has no description."""
    detail = scored.table(score.get("detail"))
    if key == "O":
        return _how_o(detail)
    if told_by := told.how().get(key):
        return told_by(run, detail)
    plain_facts = (
        f"{name.replace('_', ' ')} {text_of(fact)}" for name, fact in detail.items() if _is_plain(fact)
    )
    return ", ".join(plain_facts)


def _is_plain(fact: object) -> bool:
    return isinstance(fact, str | int | float)


def _how_o(detail: Mapping[str, Any]) -> str:
    weights = {str(name): finite(weight) for name, weight in scored.table(detail.get("weights")).items()}
    odd = [f"{name} {plain(weight)}" for name, weight in weights.items() if weight != 1]
    how = f"scale factor {plain(detail.get('scale_factor'))}, weights {', '.join(odd) if odd else 'all 1'}"
    if assumes := scored.table(detail.get("interval")).get("assumes"):
        how += f"; its interval takes for granted: {assumes}"
    return how + (f"; no interval: {detail['no_interval']}" if detail.get("no_interval") else "")


# --- what makes up O --------------------------------------------------------------------------------------------


def _terms(run: Run) -> tuple[OTerm, ...]:
    """Return the parts of O, each from where the last one ended, and O itself at the end; none without an O."""
    o = scored.score(run, "O")
    given = scored.table(scored.table(o.get("detail")).get("terms"))
    parts = [(name, value) for name in PERFECT if (value := finite(given.get(name))) is not None]
    total = finite(o.get("value"))
    if total is None or not parts:
        return ()
    ends = [0.0]
    for _, value in parts:
        ends.append(ends[-1] + value)
    low, high = min(*ends, total), max(*ends, total)
    width = (high - low) or 1.0

    def place(start: float, end: float) -> dict[str, float]:
        return {
            "left": (min(start, end) - low) / width,
            "width": abs(end - start) / width,
            "zero": -low / width,
        }

    terms = [
        OTerm(key=name, value=value, color=category(index)[0], **place(ends[index], ends[index + 1]))
        for index, (name, value) in enumerate(parts)
    ]
    return (*terms, OTerm(key="O", value=total, color="ink-3", **place(0.0, total)))


def _note(run: Run) -> str:
    floored = scored.table(scored.table(scored.score(run, "O").get("detail")).get("floored"))
    return " ".join(
        f"{name} is shorter than can be told apart: it counts as {duration(at)}."
        for name, at in floored.items()
    )
