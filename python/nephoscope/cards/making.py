"""From a stored run to its card: computed from the run directory alone, so the same run has the same card."""

from __future__ import annotations

import hashlib
import json
from statistics import median
from typing import TYPE_CHECKING, Any

from nephoscope import __version__
from nephoscope.cards.card import (
    Card,
    CardFigure,
    CardFile,
    CardRun,
    CardSystem,
    CardTuning,
    CardVerdict,
    CardWorkload,
)
from nephoscope.errors import InputError
from nephoscope.files import open_regular, parse_toml
from nephoscope.results.figures import KINDS, Key, label_of, points_of, together, values_of
from nephoscope.results.inputs import price_book_of
from nephoscope.results.scores import scores_of
from nephoscope.scoring.definitions import DEFINITIONS
from nephoscope.settings.resources import Resources
from nephoscope.statistics import mean_ci
from nephoscope.store.layout import FILES, HISTORIES, LIMITS, histories_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.store import StoredRun

_OUTPUT = (FILES.scores, FILES.report)
"""Files that are computed from the others and written anew by ``nephoscope report``."""
_CHUNK = 2**20


def card_of(run: StoredRun) -> Card:
    """Compute the card of a run that was measured to its end. Raises ``InputError`` for any other."""
    if (status := run.manifest["status"]) != "measured":
        raise InputError(
            f"{run.folder}: its status is {status}; a card is of a run that was measured to its end"
        )
    if "storage" in run.manifest:
        raise InputError(f"{run.folder} is a run of a storage tier: it has no scores, and no card")
    scores = scores_of(run)
    manifest, study = run.manifest, parse_toml(run.study)
    files = hashes_of(run)
    clock = manifest.get("clock", {})
    return Card(
        nephoscope=__version__,
        run=CardRun(
            study=manifest.get("study", ""),
            origin=clock.get("origin", ""),
            finished=clock.get("finished", ""),
            nephoscope=manifest.get("nephoscope", ""),
            format=manifest["format"],
            seed=manifest.get("seed", 0),
        ),
        tuning=_tuning(study),
        system=_system(manifest.get("system", {})),
        workload=_workload(manifest.get("workload", {})),
        host={key: _text(value) for key, value in manifest.get("host", {}).items()},
        price_book=price_book_of(run, "price_book", study.get("cost", {}).get("price_book", "")).name,
        scores=_scores(scores),
        absent=dict(scores["absent"]),
        points=_points(run, scores),
        verdicts=[CardVerdict.model_validate(verdict) for verdict in scores["verdicts"]],
        warnings=list(scores["warnings"]),
        study=run.study,
        files=files,
        sha256=hash_over(files),
    )


def hashes_of(run: StoredRun) -> list[CardFile]:
    """Hash what a run directory has of the measurement, in the order of the names."""
    names = [name for name in vars(FILES).values() if name not in _OUTPUT and (run.folder / name).exists()]
    limits = {name: LIMITS[name] for name in names}
    limits |= {f"{HISTORIES}/{file.name}": LIMITS[HISTORIES] for file in histories_of(run.folder)}
    return [_hash(run, name, limit) for name, limit in sorted(limits.items())]


def _hash(run: StoredRun, name: str, limit: int) -> CardFile:
    digest, size = hashlib.sha256(), 0
    try:
        with open_regular(run.folder / name, limit, links=False) as file:
            while part := file.read(_CHUNK):
                digest.update(part)
                size += len(part)
    except OSError as error:
        raise InputError(f"{run.folder / name} cannot be read: {error.strerror or error}") from None
    return CardFile(name=name, bytes=size, sha256=digest.hexdigest())


def hash_over(files: Sequence[CardFile]) -> str:
    """Hash what ``sha256sum`` prints of the files, in the order of their names."""
    lines = "".join(f"{file.sha256}  {file.name}\n" for file in sorted(files, key=lambda file: file.name))
    return hashlib.sha256(lines.encode()).hexdigest()


def _tuning(study: Mapping[str, Any]) -> CardTuning:
    """Say whether the system was tuned: as the study states, or where it sets anything of the server."""
    given = study.get("system", {}).get("settings", {})
    settings = [f"{key} = {_text(value)}" for key, value in sorted(given.items())]
    settings += [str(sql) for sql in study.get("load", {}).get("on_connect", [])]
    stated = study.get("study", {}).get("tuned")
    return CardTuning(tuned=bool(settings) if stated is None else stated, stated=stated, settings=settings)


def _system(system: Mapping[str, Any]) -> CardSystem:
    facts = {key: _text(value) for key, value in system.get("facts", {}).items()}
    endpoints, resources = system.get("endpoints", {}), system.get("resources")
    return CardSystem(
        provider=system.get("provider", ""),
        version=(facts.get("server_version") or facts.get("version") or "")[:200],
        rw=len(endpoints.get("rw", ())),
        ro=len(endpoints.get("ro", ())),
        resources=Resources.model_validate(resources) if resources else None,
        facts=facts,
    )


def _workload(workload: Mapping[str, Any]) -> CardWorkload:
    return CardWorkload(
        name=workload.get("name", ""),
        scale=float(workload.get("scale", 1.0)),
        options=dict(workload.get("options", {})),
        files=dict(workload.get("files", {})),
    )


def _text(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    return (value if isinstance(value, str) else json.dumps(value, sort_keys=True))[:20_000]


def _scores(scores: Mapping[str, Any]) -> dict[str, CardFigure]:
    starred = (scores.get("starred") or {}).get("scores", {})
    found = {**scores["scores"], **{f"{name}*": score for name, score in starred.items()}}
    return {name: _score(name.removesuffix("*"), score) for name, score in found.items()}


def _score(name: str, score: Mapping[str, Any]) -> CardFigure:
    about = DEFINITIONS.get(name)
    higher = about is None or about.higher_is_better
    detail = score.get("detail", {})
    # Of failures each role has its own.
    values = detail.get("by_repetition") or [
        value for role in detail.get("roles", {}).values() for value in role.get("values", ())
    ]
    ci95 = score["ci95"]
    return _figure(
        score["value"], score["unit"], values, higher=higher, ci95=ci95, repetitions=score["repetitions"]
    )


def _points(run: StoredRun, scores: Mapping[str, Any]) -> dict[str, dict[str, CardFigure]]:
    found: dict[str, dict[str, CardFigure]] = {}
    of = points_of(run, scores)
    names = _names(of)
    for key, points in of.items():
        for kind in KINDS:
            if values := values_of(points, kind):
                value = together([run], [points], kind)
                # A percentile of all repetitions together is no mean of theirs: it has no such interval.
                ci95 = mean_ci(values).ci95 if kind.quantile is None else None
                figure = _figure(value, kind.unit, values, higher=kind.higher_is_better, ci95=ci95)
                found.setdefault(names[key], {})[kind.name] = figure
    return found


def _names(keys: Mapping[Key, object]) -> dict[Key, str]:
    """Name points; those of several entries of ``[[measure]]`` that are alike by their entries, too."""
    labels = [label_of(key) for key in keys]
    return {
        key: label if labels.count(label) == 1 else f"{label} ({key[3]})"
        for key, label in zip(keys, labels, strict=True)
    }


def _figure(
    value: float,
    unit: str,
    values: Sequence[float],
    *,
    higher: bool,
    ci95: Sequence[float] | None = None,
    repetitions: int | None = None,
) -> CardFigure:
    several = len(values) > 1
    return CardFigure(
        value=float(value),
        unit=unit,
        better="higher" if higher else "lower",
        ci95=None if ci95 is None else [float(end) for end in ci95],
        repetitions=repetitions or len(values),
        median=float(median(values)) if several else None,
        worst=float(min(values) if higher else max(values)) if several else None,
    )
