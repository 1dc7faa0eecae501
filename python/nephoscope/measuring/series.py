"""A study of several scale factors: a run for each, and which are measured already."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from nephoscope.errors import InputError
from nephoscope.measuring.preparing import any_url, prepare
from nephoscope.store import FILES, StoredRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from nephoscope.study.reading import Study


def parts(study: Study) -> list[Study]:
    """Split a study into one for each scale factor, with its measurements; a study of one scale is returned as it is.

    All are checked before the first is measured. Raises ``InputError``.
    """
    if study.workload.scales is None:
        return [study]
    made = [_at(study, scale) for scale in study.workload.scales]
    for part in made:
        prepare(part, any_url(part))
    return made


def _at(study: Study, scale: float) -> Study:
    name = f"{study.study.name}-sf{scale:.12g}".replace("+", "")
    entries = [
        entry.model_copy(update={"scales": None})
        for entry in study.measure
        if entry.scales is None or scale in entry.scales
    ]
    return study.model_copy(
        update={
            "study": study.study.model_copy(update={"name": name}),
            "workload": study.workload.model_copy(update={"scale": scale, "scales": None}),
            "measure": tuple(entries),
            "words": (*study.words, "--set", f"workload.scale={scale:.12g}"),
        }
    )


def unmeasured(found: Iterable[Study], runs: Path, say: Callable[[str], object]) -> Iterator[Study]:
    """Leave out the parts that have been measured, and say where."""
    for part in found:
        if (folder := measured_before(part, runs)) is None:
            yield part
        else:
            say(f"{part.study.name} has been measured already: {folder}")


def measured_before(study: Study, runs: Path) -> Path | None:
    """Find the last complete run of the same study in a folder of runs."""
    wanted = study.to_toml()
    for folder in sorted(runs.glob(f"*-{study.study.name}*"), reverse=True):
        if (folder / FILES.study).is_file() and not folder.is_symlink() and _is_whole(folder, wanted):
            return folder
    return None


def whole_runs(runs: Path) -> list[StoredRun]:
    """List the runs in a folder that were measured to their end, the earliest first."""
    folders = sorted(folder for folder in runs.iterdir() if folder.is_dir() and not folder.is_symlink())
    found = []
    for folder in folders:
        with contextlib.suppress(InputError):  # a damaged run is measured again
            if (run := StoredRun(folder)).manifest.get("status") == "measured":
                found.append(run)
    return found


def runs_in(place: Path) -> list[StoredRun]:
    """Read a run directory, or the whole runs of a folder, the earliest first. Raises ``InputError``."""
    if (place / FILES.manifest).is_file() or not place.is_dir() or not (found := whole_runs(place)):
        return [StoredRun(place)]
    return found


def runs_at(place: Path) -> list[StoredRun]:
    """Read a run directory, or a folder of runs of one study, the earliest first. Raises ``InputError``."""
    found = runs_in(place)
    if other := next((run for run in found if run.study != found[0].study), None):
        raise InputError(
            f"{place} holds runs of several studies, {found[0].name} and {other.name} among them; "
            "allowed: a run directory, or a folder of runs of one study"
        )
    return found


def _is_whole(folder: Path, wanted: str) -> bool:
    try:
        run = StoredRun(folder)
        return run.manifest.get("status") == "measured" and run.study == wanted
    except InputError:
        return False  # a damaged run is measured again
