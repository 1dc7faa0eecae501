"""Running a bisection: the version that tells the most is made ready and measured, until there is an answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nephoscope.errors import InputError, MeasurementError
from nephoscope.experiments.bisection.folder import FILES, Bisection, keep, without_passwords
from nephoscope.experiments.bisection.progress import Values, progress
from nephoscope.experiments.responses import check_response
from nephoscope.masking import masked
from nephoscope.measuring.preparing import any_url, prepare
from nephoscope.settings.variables import endpoint
from nephoscope.study.reading import read_study
from nephoscope.systems.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nephoscope.experiments.bisection.progress import Progress
    from nephoscope.experiments.bisection.versions import BisectVersion
    from nephoscope.study.reading import Study

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")


class VersionRunner:
    """How the study is measured at versions; what can be wrong is found before the first run."""

    def __init__(
        self,
        study: tuple[Path, Sequence[str], str],
        versions: Sequence[BisectVersion],
        command: str | None,
        limit_s: float,
    ) -> None:
        """Take the study (its file, what is set, its name) and the versions. Raises ``InputError``."""
        self._study, self._versions, self._command = study, versions, command
        self._shell = Shell(limit_s)
        self._ready: tuple[int, str | None] | None = None
        self.base = self._read(None)
        if self.base.workload.scales is not None or self.base.factor:
            raise InputError(
                f"{study[2]}: a bisection measures one run: no workload.scales and no [[factor]]"
            )
        if command is None:
            for version in versions:
                if not _URL.fullmatch(version.name):
                    raise InputError(
                        f"{version.shown} is no URL: --command makes the system ready at such a version"
                    )
                endpoint(version.name, "--versions")
                self._at(version.name)
        else:
            prepare(self.base, any_url(self.base))

    def plan(self, response: str, least: float) -> Bisection:
        """Return the plan of the bisection. Raises ``InputError`` for what is no response."""
        check_response(response)
        return Bisection(
            study=self.base.to_toml(),
            name=self.base.study.name,
            response=response,
            least=least,
            command=None if self._command is None else masked(self._command),
            versions=without_passwords(list(self._versions)),
        )

    def study_at(self, place: int, name: str, number: int) -> Study:
        """Make the system ready at a version; gives the study of a run. Raises ``MeasurementError`` where that fails.

        Each run has a seed of its own.
        """
        if self._ready is None or self._ready[0] != place:
            self._ready = None
            self._ready = (place, self._make_ready(self._versions[place].name))
        chosen = self._at(self._ready[1])
        head = chosen.study.model_copy(update={"name": name, "seed": chosen.study.seed + number})
        return chosen.model_copy(update={"study": head})

    def _make_ready(self, version: str) -> str | None:
        """Run the command; gives the URL on the last line that it prints, if there is one."""
        if self._command is None:
            return version
        said = self._shell.run("--command", self._command, {"NEPHOSCOPE_VERSION": version}).strip()
        last = said.splitlines()[-1].strip() if said else ""
        return last if _URL.fullmatch(last) else None

    def _at(self, url: str | None) -> Study:
        study = self._read(url)
        prepare(study, any_url(study))
        return study

    def _read(self, url: str | None) -> Study:
        path, settings, name = self._study
        study = read_study(path, settings, name)
        if url is None:
            return study
        if study.system.provider != "url":
            raise InputError(
                f"{path}: system.provider is {study.system.provider}; for versions at URLs it has to be url"
            )
        return read_study(path, [*settings, f"system.rw={url}"], name)


def go_on(
    plan: Bisection,
    folder: Path,
    measured: VersionRunner,
    run: Callable[[Study, Path], None],
    *,
    most: int,
    say: Callable[[str], object],
) -> Progress:
    """Measure until there is an answer, or ``most`` runs; ``run`` measures a study into a folder of runs.

    A version between the ends at which the command fails is skipped. Raises ``MeasurementError`` where an end cannot be
    made ready, or a run fails: the same bisection goes on from there.
    """
    values = Values(plan)
    while True:
        found = progress(plan, folder, values)
        place, number = found.following, len(found.observed)
        if place is None or number >= most:
            return found
        version = plan.versions[place]
        say(f"run {number + 1}: {version.shown}")
        try:
            study = measured.study_at(place, plan.study_name(place), number)
        except MeasurementError as error:
            if place in (0, len(plan.versions) - 1):
                raise
            say(f"skipped, as it cannot be made ready: {error}")
            plan = plan.model_copy(update={"skipped": [*plan.skipped, place]})
            keep(plan, folder)
            continue
        run(study, folder / FILES.runs)
