"""From a stored run to ``scores.json``: what the evaluators read, the verdicts, the cost."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from nephoscope.errors import InputError
from nephoscope.evaluators.base import Measurements, evaluator_class
from nephoscope.evaluators.stored import Stored
from nephoscope.files import parse_toml
from nephoscope.results import beside_paper, histories
from nephoscope.results.client import client
from nephoscope.results.course import course_of
from nephoscope.results.inputs import price_book_of, workload_of
from nephoscope.results.limits import limits_of
from nephoscope.results.observed import Observed
from nephoscope.results.verdicts import FEW, connected, names, overloaded, steady, verdict
from nephoscope.scoring.definitions import BY_ENDS, SCORES, STARRED, ScoreName, listed
from nephoscope.scoring.formulas import Absent, Score, lacking, o_score
from nephoscope.scoring.offers import NotPricedError
from nephoscope.scoring.prices import Prices, bill, cost
from nephoscope.settings.resources import Resources
from nephoscope.settings.units import describe_count
from nephoscope.store import StoredRun
from nephoscope.store.schema import check_plain
from nephoscope.study.reading import make_study
from nephoscope.tables.model import figure, with_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from nephoscope.evaluators.connected import Shortfall
    from nephoscope.evaluators.points import Point
    from nephoscope.study.reading import Study
    from nephoscope.study.workload import DescribedWorkload

_FAILED_LIMIT = 0.01
_SOON_BYTES = 32 << 20
"""The largest run directory, in bytes, that is read while the run goes on."""
_MOST_INTERVALS = 10_000_000


def scores_of(run: StoredRun) -> dict[str, Any]:
    """Compute ``scores.json`` from a stored run, and from nothing else.

    Raises ``InputError`` if the run is damaged, or its evaluators are not installed.
    """
    study = _study_of(run)
    _check_length(run, study)
    prices = Prices(price_book_of(run, "price_book", study.cost.price_book))
    workload = workload_of(run, study.workload)
    found = _measurements(run, study, workload, prices)
    resources = _resources_of(run)
    scores = perfect(found, study)
    points = [point for part in found for point in part.points]
    shortfalls = [shortfall for part in found for shortfall in part.shortfalls]
    observed = Observed(run)
    starred = _starred(run, study, workload, found, scores)
    split = _split(scores)
    return {
        **split,
        "starred": starred,
        "verdicts": [
            *_verdicts(points, shortfalls, run),
            *histories.verdicts(run, study.load.isolation),
            *beside_paper.verdicts(study, resources, split["scores"]),
        ],
        "warnings": [*_warnings(found, points, study), *_wide(scores), *_noticed(starred), *_told(run)],
        "points": [point.model_dump(mode="json") for point in points],
        "limits": limits_of(run, points, workload),
        "course": course_of(run),
        "waits": observed.waits(),
        "transaction_costs": observed.costs({point.phase: point.cpu_us for point in points}),
        "shortfalls": [vars(shortfall) for shortfall in shortfalls],
        "saturation": {mix: entry for part in found for mix, entry in part.saturation.items()},
        "details": _details(found),
        "cost": cost(resources, prices.book).model_dump(mode="json") if resources else None,
    }


def scores_so_far(folder: Path, index: int) -> dict[ScoreName, Score]:
    """Compute the scores of an entry of ``[[measure]]`` while the run goes on; none of a very long run.

    Reading takes about 0.1 s for each MB of journals; the next evaluator waits for it.
    """
    if sum(path.stat().st_size for path in folder.iterdir()) > _SOON_BYTES:
        return {}
    run = StoredRun(folder)
    study = _study_of(run)
    prices = Prices(price_book_of(run, "price_book", study.cost.price_book))
    (part,) = _measurements(run, study, workload_of(run, study.workload), prices, [index])
    return {name: score for name, score in part.scores.items() if isinstance(score, Score)}


def scores_or_why(run: StoredRun) -> dict[str, Any]:
    """Compute scores as `scores_of`; on an error there are none, and a warning says why."""
    try:
        return scores_of(run)
    except InputError as error:
        # What else was stored can be shown all the same.
        return {"scores": {}, "absent": {}, "verdicts": [], "points": [], "warnings": [f"no scores: {error}"]}


def _details(found: Sequence[Measurements]) -> dict[str, Any]:
    """Join the details of all entries of ``[[measure]]``, by evaluator."""
    gathered: dict[str, Any] = {}
    for part in found:
        for name, entry in part.details.items():
            gathered.setdefault(name, {}).update(entry)
    return gathered


def scores_text(scores: dict[str, Any]) -> str:
    """Write scores as the file holds them."""
    return json.dumps(scores, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _study_of(run: StoredRun) -> Study:
    where = f"{run.folder}/study.toml"
    try:
        tables = parse_toml(run.study)
        check_plain(tables)
    except ValueError as error:
        raise InputError(f"{where} cannot be read: {error}") from None
    return make_study(tables, where)


def _check_length(run: StoredRun, study: Study) -> None:
    """Refuse a run with an impossible number of intervals: each takes memory."""
    longest = max((phase.end_s - phase.start_s for phase in run.phases), default=0.0)
    if longest / study.load.interval > _MOST_INTERVALS:
        raise InputError(f"{run.folder} has a phase of more than {_MOST_INTERVALS:,} intervals")


def _resources_of(run: StoredRun) -> Resources | None:
    given = run.manifest.get("system", {}).get("resources")
    return Resources.model_validate(given) if given else None


def _measurements(
    run: StoredRun,
    study: Study,
    workload: DescribedWorkload,
    prices: Prices,
    only: Collection[int] | None = None,
) -> list[Measurements]:
    """Let the evaluators read the run: all entries of ``[[measure]]``, or ``only`` some."""
    resources = _resources_of(run)
    found = []
    for index, settings in enumerate(study.measure):
        if only is None or index in only:
            evaluator = evaluator_class(settings.evaluator)(settings, workload, index)
            stored = Stored(run, index, resources, prices, study.load.interval)
            try:
                found.append(evaluator.read(stored))
            except (LookupError, ValueError) as error:
                # Only the evaluator knows whether its phases and their labels fit together.
                where = f"{run.folder}: what was stored of measure.{index} ({settings.evaluator})"
                raise InputError(f"{where} does not fit together: {type(error).__name__}: {error}") from error
    return found


_Found = dict[ScoreName, Score | Absent]


def _split(found: Mapping[ScoreName, Score | Absent]) -> dict[str, Any]:
    """Write scores as ``scores.json`` has them: those that were measured, and why the others were not."""
    return {
        "scores": {
            name: one.model_dump(mode="json") for name, one in found.items() if isinstance(one, Score)
        },
        "absent": {name: one.reason for name, one in found.items() if isinstance(one, Absent)},
    }


def perfect(found: Sequence[Measurements], study: Study) -> _Found:
    """Gather all scores, absent ones with their reasons."""
    gathered: _Found = {}
    for part in found:
        for name, score in part.scores.items():
            if isinstance(gathered.get(name), Score):
                continue
            gathered[name] = score
    for name in SCORES:
        gathered.setdefault(name, Absent(reason="no evaluator of this study measures it"))
    gathered["O"] = _overall(gathered, study)
    return gathered


def _overall(found: Mapping[ScoreName, Score | Absent], study: Study) -> Score | Absent:
    """Compute O of the others; times are floored at each evaluator's resolution."""
    if lacks := lacking(found):
        return lacks
    resolutions: dict[ScoreName, float] = {
        name: float(score.detail["resolution_s"])
        for name, score in found.items()
        if isinstance(score, Score) and score.detail.get("resolution_s")
    }
    return o_score(
        found, scale_factor=study.workload.scale, weights=study.score.weights, resolution_s=resolutions
    )


def _starred(
    run: StoredRun,
    study: Study,
    workload: DescribedWorkload,
    measured: Sequence[Measurements],
    scores: Mapping[ScoreName, Score | Absent],
) -> dict[str, Any] | None:
    """Compute the starred scores, by the prices that are really paid."""
    if study.cost.starred is None:
        return None
    held_s = study.cost.held or max((phase.end_s for phase in run.phases), default=0.0)
    if held_s <= 0:
        nothing: _Found = {name: Absent(reason="nothing was measured") for name in STARRED}
        return {**_split(nothing), "price_book": study.cost.starred, "held_s": 0.0}
    prices = Prices(price_book_of(run, "starred", study.cost.starred), held_s)
    priced = [name for name in STARRED if name != "O"]
    priced_at = {at for at, part in enumerate(measured) if part.scores.keys() & set(priced)}
    read = partial(_measurements, run, study, workload, prices)
    again = perfect([_priced(partial(read, [at]), measured[at]) for at in sorted(priced_at)], study)
    found: _Found = dict(scores)
    for name in priced:
        found[name] = again[name]
    found["O"] = _overall(found, study)
    return {
        **_split({name: found[name] for name in STARRED}),
        "price_book": prices.book.name,
        "held_s": held_s,
        "bill": _bill(run, prices),
        "notice": prices.book.notice,
    }


def _noticed(starred: Mapping[str, Any] | None) -> list[str]:
    """Warn of prices that are to be checked."""
    if not starred or not starred.get("notice"):
        return []
    names = listed([f"{name}*" for name in STARRED])
    return [f"{names} are by the price book {starred['price_book']}: {starred['notice']}"]


def _priced(read: Callable[[], list[Measurements]], measured: Measurements) -> Measurements:
    """Read an entry by other prices; its scores are absent if the book lacks a price."""
    try:
        (part,) = read()
    except NotPricedError as error:
        return Measurements(scores={name: Absent(reason=str(error)) for name in measured.scores})
    return part


def _bill(run: StoredRun, prices: Prices) -> dict[str, Any] | None:
    """Write the bill of the declared resources, line by line; None where there are none or no price."""
    resources = _resources_of(run)
    if resources is None or prices.held_s is None:
        return None
    try:
        return bill(resources, prices.book, prices.held_s).model_dump(mode="json")
    except NotPricedError:
        return None


# --- verdicts ---------------------------------------------------------------------------------------------------


def _verdicts(
    points: Sequence[Point], shortfalls: Sequence[Shortfall], run: StoredRun
) -> list[dict[str, str]]:
    """Return the verdicts on how the figures were measured."""
    return [
        *connected(shortfalls),
        *client(points, run),
        *overloaded(points),
        *steady(points),
        *_failure_verdict(points),
        _identity_verdict(run),
        *_uncertain_verdict(run),
    ]


def _failure_verdict(points: Sequence[Point]) -> list[dict[str, str]]:
    bad = [
        point
        for point in points
        if point.failed > _FAILED_LIMIT * max(point.committed + point.aborted + point.failed, 1)
    ]
    if not bad:
        return []
    failed, ended = (
        sum(point.failed for point in bad),
        sum(point.committed + point.aborted + point.failed for point in bad),
    )
    return [verdict("warning", "transactions failed", f"{failed:,} of {ended:,} in {names(bad)}")]


def _identity_verdict(run: StoredRun) -> dict[str, str]:
    totals = run.manifest.get("totals") or {}
    if not totals:
        return verdict("warning", "the run has no end", "it is not known what was in flight when it ended")
    ended = sum(totals.get(key, 0) for key in ("committed", "aborted", "failed", "in_flight"))
    if totals.get("started") != ended:
        detail = (
            f"{totals.get('started'):,} started and {ended:,} accounted for: please report this as a defect"
        )
        return verdict("problem", "the accounts do not balance", detail)
    return verdict(
        "ok", "every transaction is accounted for", f"{ended:,} started, and as many ended or in flight"
    )


def _uncertain_verdict(run: StoredRun) -> list[dict[str, str]]:
    """Return the verdict if commits were never answered: the data may hold more than the committed count."""
    uncertain = (run.manifest.get("totals") or {}).get("uncertain", 0)
    if not uncertain:
        return []
    detail = (
        f"{uncertain:,} {'attempt' if uncertain == 1 else 'attempts'} ended after the commit was sent and before its "
        "answer came, or had committed a part: the server may have committed; none was run again"
    )
    return [verdict("note", "the outcome of some commits is not known", detail)]


def _wide(scores: _Found) -> list[str]:
    """Warn of scores with wide intervals; O is a logarithm, of which no share can be taken."""
    wide = [
        f"{name} {with_interval(figure(score.value), score.value, score.ci95, by_ends=name in BY_ENDS)} {score.unit}"
        for name, score in scores.items()
        if name != "O" and isinstance(score, Score) and score.ci95 is not None
        if score.ci95[1] - score.ci95[0] > abs(score.value)
    ]
    if not wide:
        return []
    return [
        f"the interval is wider than the figure itself: {'; '.join(wide)}; more repetitions make it narrower"
    ]


def _told(run: StoredRun) -> list[str]:
    """List the warnings that were given while the run went on."""
    return [str(event.get("message")) for event in run.events if event.get("event") in ("warning", "gap")]


def _warnings(found: Sequence[Measurements], points: Sequence[Point], study: Study) -> list[str]:
    warnings = [warning for part in found for warning in part.warnings]
    repetitions = max((point.repetition for point in points), default=0)
    if 0 < repetitions < FEW:
        number = describe_count(repetitions, "repetition")
        warnings.append(f"{number} only: what changes from one repetition to the next is hardly known")
    dropped = sum(point.dropped for point in points)
    if dropped:
        warnings.append(f"{dropped:,} arrivals were dropped in measured phases: the backlog was full")
    if study.workload.external:
        warnings.append("the data was made by something else: whether it is whole was not checked")
    return warnings
