"""The folder of an experiment: its design, its runs, and the result."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nephoscope.errors import InputError, MeasurementError
from nephoscope.experiments.design import Design, Planned
from nephoscope.files import check_writable, is_file, make_folders, read_regular
from nephoscope.store.writer import write_whole
from nephoscope.study.factors import ExperimentTable, FactorTable
from nephoscope.study.references import ReferenceTable

if TYPE_CHECKING:
    from pathlib import Path

FILES = SimpleNamespace(
    experiment="experiment.json", runs="runs", results="results.json", report="report.html"
)
"""The files of an experiment's folder; in ``runs`` are ordinary run directories."""
_MOST_BYTES = 256 << 20
_Count = Annotated[int, Field(ge=0)]


class PlannedRun(BaseModel):
    """A run of an experiment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    treatment: _Count
    replicate: _Count
    block: _Count
    study: str
    """The run's study with every default written out, without passwords."""

    @property
    def planned(self) -> Planned:
        """Its place in the design."""
        return Planned(self.treatment, self.replicate, self.block)


class Experiment(BaseModel):
    """An experiment: its design, and its runs in their order; what ``experiment.json`` holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    name: str
    description: str
    factors: tuple[FactorTable, ...]
    experiment: ExperimentTable
    references: tuple[ReferenceTable, ...] = ()
    treatments: tuple[tuple[_Count, ...], ...]
    words: tuple[tuple[str, ...], ...]
    """The defining relation of a fractional design."""
    runs: tuple[PlannedRun, ...]

    @property
    def design(self) -> Design:
        """The design of its treatments."""
        names = tuple(factor.name for factor in self.factors)
        return Design(names, self.treatments, tuple(frozenset(word) for word in self.words))

    @property
    def objectives(self) -> list[str]:
        """The responses of the Pareto front."""
        return self.experiment.objectives or self.experiment.responses

    @property
    def responses(self) -> list[str]:
        """All responses that are read of the runs."""
        return list(dict.fromkeys((*self.experiment.responses, *self.objectives)))

    def levels(self, treatment: int) -> dict[str, str]:
        """Return the levels of a treatment by factor."""
        chosen = zip(self.factors, self.treatments[treatment], strict=True)
        return {factor.name: factor.names[level] for factor, level in chosen}

    def label(self, treatment: int) -> str:
        """Write the levels of a treatment."""
        return ", ".join(f"{name} {level}" for name, level in self.levels(treatment).items())


def is_experiment(folder: Path) -> bool:
    """Tell whether a folder is an experiment's."""
    return is_file(folder / FILES.experiment)


def read_folder(folder: Path) -> Experiment:
    """Read the design of an experiment's folder. Raises ``InputError``."""
    file = folder / FILES.experiment
    try:
        found = Experiment.model_validate_json(read_regular(file, _MOST_BYTES))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(f"{file}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    sizes = [len(factor.levels) for factor in found.factors]
    for number, treatment in enumerate(found.treatments):
        if len(treatment) != len(sizes) or any(at >= size for at, size in zip(treatment, sizes, strict=True)):
            raise InputError(f"{file}: treatments.{number}: expected a level of each of {len(sizes)} factors")
    if wrong := next((run.treatment for run in found.runs if run.treatment >= len(found.treatments)), None):
        raise InputError(f"{file}: runs: there is no treatment {wrong}")
    if unknown := {name for word in found.words for name in word} - set(found.design.factors):
        raise InputError(f"{file}: words: there is no factor {min(unknown)!r}")
    return found


def keep(experiment: Experiment, folder: Path) -> bool:
    """Make the folder of an experiment, or find it there; gives whether it was there.

    Raises ``InputError`` where the folder is another experiment's, or cannot be written.
    """
    if is_experiment(folder):
        if differs := _difference(read_folder(folder), experiment):
            raise InputError(
                f"{folder} holds another experiment: {differs}; --out names another folder, or run the study as it was"
            )
        return True
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty, and no experiment's folder; --out names another one")
        make_folders(folder / FILES.runs)
        check_writable(folder)
        write_whole(folder / FILES.experiment, experiment.model_dump_json(indent=1, exclude_none=True) + "\n")
    except (OSError, MeasurementError) as error:
        raise InputError(
            f"no experiment can be kept in {folder}: {getattr(error, 'strerror', None) or error}"
        ) from None
    return False


def _difference(kept: Experiment, asked: Experiment) -> str | None:
    """Say what differs between an experiment as it is kept and as it is asked for."""
    for name in Experiment.model_fields:
        if name != "runs" and getattr(kept, name) != getattr(asked, name):
            return f"its {name} is not what the study says"
    pairs = zip(kept.runs, asked.runs, strict=False)
    if different := next((one.study for one, other in pairs if one != other), None):
        return f"its runs have another study than this one ({different.splitlines()[1]})"
    return None if len(kept.runs) == len(asked.runs) else "it has another number of runs"
