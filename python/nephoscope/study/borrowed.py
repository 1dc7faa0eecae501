"""Studies whose workload is described by another tool's files, or by its command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope import registry
from nephoscope.errors import InputError
from nephoscope.files import read_toml
from nephoscope.foreign.naming import Named, named
from nephoscope.foreign.sysbench import COMMAND, Sysbench
from nephoscope.foreign.tools import TOOLS
from nephoscope.study.packaged import find_study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.foreign.base import Asked, Tool
    from nephoscope.study.reading import Study

_SECONDS = 30.0
"""How long a load runs whose tool says nothing."""


class Given:
    """What a command line says beside ``--set``: a system's URL; a tool, its files and its own words."""

    def __init__(
        self,
        url: str | None = None,
        tool: str | None = None,
        files: Sequence[str] = (),
        words: Sequence[str] = (),
    ) -> None:
        """Read the tool's words. Raises ``InputError``."""
        self._url = url
        self._tool = None if tool is None else TOOLS[tool]
        self._asked = None if self._tool is None else self._tool.asked(files, words)
        urls = [] if url is None else ["--url", url]
        self.words = (*urls, *(word for file in files for word in (f"--{tool}", file)), *words)

    @property
    def notes(self) -> Sequence[str]:
        """What the tool would do and is not done here."""
        return self._asked.notes if self._asked is not None else ()

    def put(self, tables: dict[str, Any], *, whole: bool) -> None:
        """Put it into the tables of a study; ``whole`` where the study is made for it.

        Raises ``InputError``.
        """
        if self._url is not None:
            tables["system"] = {"provider": "url", "rw": self._url}
        if self._tool is None or self._asked is None:
            return
        asked = self._asked
        if asked.phase and not whole:
            keys = ", ".join(asked.phase)
            raise InputError(
                f"--{self._tool.name}: the study says how much load there is and for how long ({keys}); leave that out "
                "of the tool's words, or leave out the study"
            )
        tables["workload"] = {"name": str(Named(self._tool, asked.parts)), **asked.workload}
        tables["load"] = {**_table(tables, "load"), **asked.load}
        if asked.seed is not None:
            tables["study"] = {**_table(tables, "study"), "seed": asked.seed}
        if whole:
            _one_load(tables, self._tool, asked)
        _fill(tables.get("measure"), asked.measure)


def command_of(study: Study) -> str | None:
    """Name the command of a tool's script that a study asks for in place of its load, such as sysbench's prepare."""
    found = named(study.workload.name)
    command = study.workload.options.get(COMMAND, "run")
    is_command = found is not None and isinstance(found.tool, Sysbench) and command != "run"
    return str(command) if is_command else None


def _one_load(tables: dict[str, Any], tool: Tool, asked: Asked) -> None:
    phase = {"name": "load", "duration": _SECONDS, **asked.phase}
    if "rate" not in phase:
        phase = {"concurrency": 1, **phase}
    tables["study"] = {
        "name": f"{tool.name}-load",
        "description": f"one load of a workload that {tool.name} describes",
        **_table(tables, "study"),
    }
    tables["measure"] = [{"evaluator": "load", "phases": [phase]}]
    if "system" not in tables:
        if tool.needs_url and not all(part.name in tool.built_in for part in asked.parts):
            raise InputError(f"--{tool.name}: {tool.needs_url}; --url says where they are")
        quickstart = read_toml(find_study("quickstart"))
        tables["system"] = {"provider": quickstart["system"]["provider"]}


def _table(tables: dict[str, Any], name: str) -> dict[str, Any]:
    found = tables.get(name)
    return found if isinstance(found, dict) else {}


def resolve(tables: dict[str, Any]) -> None:
    """Write out what files of another tool mean, if a study's workload is named by them.

    What the study says itself stays. Raises ``InputError``.
    """
    workload = _table(tables, "workload")
    name = workload.get("name")
    found = named(name) if isinstance(name, str) else None
    if found is None:
        return
    meant = found.meant()
    options = {**meant.workload.get("options", {}), **_table(workload, "options")}
    tables["workload"] = {**meant.workload, **workload, "name": meant.workload.get("name", name)}
    if options:
        tables["workload"]["options"] = options
    _fill(tables.get("measure"), meant.measure)


def _fill(entries: object, defaults: Mapping[str, Any]) -> None:
    """Fill in the keys of measurements that a study leaves to the workload."""
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("evaluator") not in registry.names("evaluators"):
            continue  # refused where the study is validated
        known = registry.load("evaluators", entry["evaluator"]).settings_type.model_fields
        phases = entry.get("phases")
        if isinstance(phases, list) and phases and isinstance(phases[0], dict):
            for key in {"mix", "access"} & defaults.keys():
                phases[0].setdefault(key, defaults[key])
        for key in known.keys() & defaults.keys():
            entry.setdefault(key, defaults[key])
