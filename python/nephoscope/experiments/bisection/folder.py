"""The folder of a bisection: its plan, and ordinary run directories, by which it is resumed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nephoscope.errors import InputError, MeasurementError
from nephoscope.experiments.bisection.versions import BisectVersion
from nephoscope.files import check_writable, is_file, make_folders, read_regular
from nephoscope.settings.variables import redacted_url
from nephoscope.store.writer import write_whole

if TYPE_CHECKING:
    from pathlib import Path

FILES = SimpleNamespace(plan="bisect.json", runs="runs", results="results.json")
"""The files of a bisection's folder; in ``runs`` are ordinary run directories."""
_MOST_BYTES = 64 << 20


class Bisection(BaseModel):
    """A bisection; what ``bisect.json`` holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    study: str
    """The study with every default written out, without passwords."""
    name: str
    """The name of the study."""
    response: str
    """The figure that is followed."""
    least: Annotated[float, Field(gt=0, lt=1)]
    """The smallest change that is looked for, as a share."""
    command: str | None
    """What makes the system ready at a version, without secrets."""
    versions: Annotated[list[BisectVersion], Field(min_length=2)]
    """Without passwords."""
    skipped: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)
    """The places of versions at which the command failed."""

    @property
    def measurable(self) -> list[int]:
        """The places of the versions that can be measured."""
        return [place for place in range(len(self.versions)) if place not in self.skipped]

    def study_name(self, place: int) -> str:
        """Name the study of a version's runs."""
        return f"{self.name[:70]}-v{place:04d}"


def without_passwords(versions: list[BisectVersion]) -> list[BisectVersion]:
    """Return versions as a file may keep them."""
    return [
        version.model_copy(update={"name": redacted_url(version.name)}) if "://" in version.name else version
        for version in versions
    ]


def resume(asked: Bisection, folder: Path) -> Bisection:
    """Make the folder of a bisection, or find it there: then what it has skipped stays skipped.

    Raises ``InputError`` where the folder is another one's, or cannot be written.
    """
    if is_file(folder / FILES.plan):
        kept = _read(folder / FILES.plan)
        for name in Bisection.model_fields:
            if name != "skipped" and getattr(kept, name) != getattr(asked, name):
                raise InputError(
                    f"{folder} holds another bisection: its {name} is another one; --out names another folder"
                )
        return kept
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty, and no bisection's folder; --out names another one")
        make_folders(folder / FILES.runs)
        check_writable(folder)
        keep(asked, folder)
    except (OSError, MeasurementError) as error:
        raise InputError(
            f"no bisection can be kept in {folder}: {getattr(error, 'strerror', None) or error}"
        ) from None
    return asked


def keep(plan: Bisection, folder: Path) -> None:
    """Write the plan. Raises ``MeasurementError``."""
    write_whole(folder / FILES.plan, plan.model_dump_json(indent=1) + "\n")


def _read(file: Path) -> Bisection:
    try:
        found = Bisection.model_validate_json(read_regular(file, _MOST_BYTES))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(f"{file}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if wrong := next((place for place in found.skipped if not 0 < place < len(found.versions) - 1), None):
        raise InputError(f"{file}: skipped: {wrong} is no place between the good and the bad version")
    return found
