"""From a study with ``[[factor]]`` to the runs of its experiment, each of them a study that has been checked."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from nephoscope.errors import InputError
from nephoscope.experiments.design import Design, fractional, full, of_resolution, ordered
from nephoscope.experiments.folder import Experiment, PlannedRun
from nephoscope.experiments.responses import check_response
from nephoscope.measuring.preparing import any_url, prepare
from nephoscope.study.factors import ExperimentTable, settings_of, without_passwords
from nephoscope.study.overrides import put, read_tables, relative_to
from nephoscope.study.reading import make_study, read_study

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nephoscope.study.factors import FactorTable
    from nephoscope.study.reading import Study

_RESOLUTION = 4


def plan_of(
    path: Path, overrides: Sequence[str] = (), name: str | None = None
) -> tuple[Experiment, list[Study]]:
    """Read a study and plan its experiment: the design, and the study of each run in the order of the runs.

    Each treatment is checked, and nothing is touched. Raises ``InputError``.
    """
    study = read_study(path, overrides, name)
    if not study.factor:
        raise InputError(f"{path}: there is no [[factor]]: {study.command('run')} measures it as it is")
    if study.workload.scales is not None:
        raise InputError(
            f"{path}: workload.scales: scale factors are levels of a [[factor]] in an experiment"
        )
    table = study.experiment or ExperimentTable()
    for response in (*table.responses, *table.objectives):
        check_response(response)
    design = design_of(study.factor, table)
    own = {"factor", "experiment", "reference"}
    tables = {key: value for key, value in read_tables(path, overrides).items() if key not in own}
    made = [_tables_of(tables, study.factor, treatment, path) for treatment in design.treatments]
    for one, treatment in zip(made, design.treatments, strict=True):
        try:
            part = _study(one, study, 1, 1, path)
            prepare(part, any_url(part))
        except InputError as error:
            levels = zip(study.factor, treatment, strict=True)
            shown = ", ".join(f"{factor.name} {factor.names[level]}" for factor, level in levels)
            raise InputError(f"{error} (with {shown})") from None
    planned = ordered(design, table.replicates, table.blocks, table.seed)
    studies = [
        _study(made[run.treatment], study, at, run.replicate, path) for at, run in enumerate(planned, start=1)
    ]
    runs = tuple(
        PlannedRun(**vars(run), study=part.to_toml()) for run, part in zip(planned, studies, strict=True)
    )
    experiment = Experiment(
        name=study.study.name,
        description=study.study.description,
        factors=tuple(map(without_passwords, study.factor)),
        experiment=table,
        references=study.reference,
        treatments=design.treatments,
        words=tuple(tuple(sorted(word)) for word in design.words),
        runs=runs,
    )
    return experiment, studies


def design_of(factors: Sequence[FactorTable], table: ExperimentTable) -> Design:
    """Return the design of an experiment. Raises ``InputError`` where there is none."""
    names = [factor.name for factor in factors]
    if table.design == "full":
        return full({factor.name: len(factor.levels) for factor in factors})
    if table.generators:
        return fractional(names, table.generators)
    return of_resolution(names, table.resolution or _RESOLUTION)


def _tables_of(
    tables: dict[str, Any], factors: Sequence[FactorTable], treatment: Sequence[int], path: Path
) -> dict[str, Any]:
    """Put the levels of a treatment into the tables of the study."""
    made = copy.deepcopy(tables)
    for factor, level in zip(factors, treatment, strict=True):
        for key, value in settings_of(factor, factor.levels[level]).items():
            where = f"{path}: factor {factor.name}, level {factor.names[level]}"
            put(made, key.split("."), copy.deepcopy(value), where)
    relative_to(path.parent, made)
    return made


def _study(tables: dict[str, Any], study: Study, number: int, replicate: int, path: Path) -> Study:
    """Make the study of a run: its name has its number, and each replicate has a seed of its own."""
    head = {
        **tables.get("study", {}),
        "name": f"{study.study.name}-{number:03d}",
        "seed": study.study.seed + replicate - 1,
    }
    return make_study({**tables, "study": head}, str(path)).model_copy(update={"words": study.words})
