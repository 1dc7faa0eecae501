"""YCSB: its property files, as options of the workload ``ycsb``, and its command line.

B. Cooper and others, "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010; the properties are those of YCSB's
documentation, "Core Properties" and "Running a Workload".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope.errors import InputError
from nephoscope.foreign.base import (
    Asked,
    Meant,
    NamedFile,
    Tool,
    positive,
    read_words,
    refuse,
    text_of,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PROPORTIONS = {
    "readproportion": ("read", 0.95),
    "updateproportion": ("update", 0.05),
    "insertproportion": ("insert", 0.0),
    "scanproportion": ("scan", 0.0),
    "readmodifywriteproportion": ("read_modify_write", 0.0),
}
"""The transactions that they are the shares of, and YCSB's defaults."""

_ONLY = {
    "table": "usertable",
    "fieldnameprefix": "field",
    "minscanlength": "1",
    "minfieldlength": "1",
    "scanlengthdistribution": "uniform",
    "dataintegrity": "false",
    "insertstart": "0",
    "zeropadding": "1",
}
"""Properties that have one value here."""

_UNUSED = {
    "operationcount": "a run ends by time: maxexecutiontime, in seconds",
    "insertcount": "all records are loaded",
    "measurementtype": "every percentile is kept",
    "histogram.buckets": "every percentile is kept",
    "timeseries.granularity": "load.interval says how long an interval is",
    "core_workload_insertion_retry_limit": "load.retry says what is tried again",
    "core_workload_insertion_retry_interval": "load.retry says what is tried again",
}
_REFUSED = {
    "-db": "the system is named by --url",
    "-load": "nephoscope load --ycsb FILE loads",
    "-t": "nephoscope run --ycsb FILE does that",
}
_CLASSES = ("site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload")
_LINE = re.compile(r"(?P<key>(?:\\.|[^\s:=\\])+)(?:\s*[:=]\s*|\s+|$)(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True)
class Property:
    """The value of a property, and where it was read."""

    value: str
    file: str
    line: int

    def refuse(self, message: str) -> None:
        """Say what is wrong with it. Raises ``InputError``."""
        if self.line:
            refuse(self.file, self.line, message)
        raise InputError(f"{self.file}: {message}")


Properties = dict[str, Property]


def read_properties(file: str, text: str) -> Properties:
    """Read a file of Java's properties. Raises ``InputError`` with file and line."""
    found: Properties = {}
    whole_line, begun = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.lstrip()
        if not whole_line and (not stripped or stripped[0] in "#!"):
            continue
        begun = begun or number
        whole_line += stripped
        if (len(stripped) - len(stripped.rstrip("\\"))) % 2:
            whole_line = whole_line[:-1]
            continue
        match = _LINE.fullmatch(whole_line.rstrip())
        if match is None:
            refuse(file, begun, "expected NAME=VALUE")
        found[match["key"]] = Property(match["value"], file, begun)
        whole_line, begun = "", 0
    return found


class Ycsb(Tool):
    """YCSB's property files."""

    name: ClassVar[str] = "ycsb"
    ending: ClassVar[str] = ".properties"

    def asked(self, files: Sequence[str], words: Sequence[str]) -> Asked:
        """Read YCSB's command line."""
        parts = [NamedFile(file) for file in files]
        over: Properties = {}

        def define(text: str) -> None:
            name, equals, value = text.partition("=")
            if not equals or not name:
                raise InputError("ycsb -p: expected NAME=VALUE")
            over[name] = Property(value, "ycsb -p", 0)

        def property_of(name: str) -> Callable[[str], None]:
            return lambda value: over.update({name: Property(value, f"ycsb -{name}", 0)})

        known = {
            "-P": lambda file: parts.append(NamedFile(file)),
            "-p": define,
            "-threads": property_of("threadcount"),
            "-target": property_of("target"),
        }
        rest = read_words("ycsb", words, known, {"-s": lambda: None}, _REFUSED)
        if rest:
            raise InputError(
                f"ycsb: {rest[0]!r}: the system is named by --url, and a study stands before --ycsb"
            )
        wanted = _Wanted({**_of(parts), **over})
        meant = wanted.meant()
        wanted.check_all_known()
        load, phase = wanted.load()
        return Asked(
            parts=parts,
            workload=meant.workload,
            measure=meant.measure,
            load=load,
            phase=phase,
            notes=wanted.notes,
        )

    def meant(self, parts: Sequence[NamedFile]) -> Meant:
        """Name the workload ``ycsb`` and its options, the mix and the access distribution."""
        wanted = _Wanted(_of(parts))
        meant = wanted.meant()
        wanted.check_all_known()
        if any(wanted.load()):
            raise InputError(
                f"{parts[0].name}: threadcount, target and maxexecutiontime are the study's own to say here"
            )
        return meant

    def made(self, parts: Sequence[NamedFile]) -> Mapping[str, str]:
        """Make nothing: the workload is one that comes with nephoscope."""
        raise InputError(
            f"{parts[0].name}: YCSB's files are run by nephoscope run --ycsb FILE, or named in a study"
        )


def _of(parts: Sequence[NamedFile]) -> Properties:
    found: Properties = {}
    for part in parts:
        found |= read_properties(part.name, text_of(Path(part.name)))
    return found


class _Wanted:
    """What properties ask for."""

    def __init__(self, properties: Properties) -> None:
        self._properties = properties
        self._known: set[str] = set()
        self.notes: list[str] = []

    def _text(self, name: str, default: str, allowed: Sequence[str] = ()) -> str:
        self._known.add(name)
        found = self._properties.get(name)
        if found is None:
            return default
        if allowed and found.value not in allowed:
            found.refuse(f"{name}={found.value}: allowed are {', '.join(allowed)}")
        return found.value

    def _number(self, name: str, default: float, least: float = 0.0) -> float:
        text = self._text(name, repr(default))
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not least <= number < float("inf"):
            self._properties[name].refuse(f"{name}={text}: it must be a number from {least:g} on")
        return number

    def _whole(self, name: str, default: int, least: int = 1) -> int:
        number = self._number(name, default, least)
        if number % 1:
            self._properties[name].refuse(f"{name}={number:g}: it must be a whole number")
        return int(number)

    def _flag(self, name: str, default: str) -> bool:
        return self._text(name, default, ("true", "false")) == "true"

    def meant(self) -> Meant:
        self._text("workload", _CLASSES[0], _CLASSES)
        for name, value in _ONLY.items():
            self._text(name, value, (value,))
        for name, why in _UNUSED.items():
            if name in self._properties:
                self._known.add(name)
                self.notes.append(f"{self._properties[name].file}: {name} is not used: {why}")
        mix = {name: self._number(key, share) for key, (name, share) in _PROPORTIONS.items()}
        mix = {name: share for name, share in mix.items() if share}
        if not mix:
            raise InputError(f"ycsb: no proportion is above 0; proportions are {', '.join(_PROPORTIONS)}")
        options = {
            "fields": self._whole("fieldcount", 10),
            "field_length": self._whole("fieldlength", 100),
            "field_length_distribution": self._text(
                "fieldlengthdistribution", "constant", ("constant", "uniform", "zipfian")
            ),
            "insert_order": self._text("insertorder", "hashed", ("hashed", "ordered")),
            "max_scan_length": self._whole("maxscanlength", 1000),
            "read_all_fields": self._flag("readallfields", "true"),
            "write_all_fields": self._flag("writeallfields", "false"),
        }
        workload = {"name": "ycsb", "scale": self._whole("recordcount", 1000) / 1000, "options": options}
        return Meant(workload, {"mixes": [mix], "mix": mix, "access": self._access()})

    def _access(self) -> Any:  # noqa: ANN401 - a value of a study
        hot = {
            "keys": self._number("hotspotdatafraction", 0.2),
            "accesses": self._number("hotspotopnfraction", 0.8),
        }
        known = {
            "uniform": "uniform",
            "zipfian": "zipfian-0.99",
            "latest": "latest-zipfian-0.99",
            "hotspot": {"distribution": "hotspot", **hot},
        }
        return known[self._text("requestdistribution", "uniform", tuple(known))]

    def load(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give the keys of ``[load]``, and those of the phase."""
        load: dict[str, Any] = {}
        phase: dict[str, Any] = {}
        if "threadcount" in self._properties:
            phase["concurrency"] = self._whole("threadcount", 1)
        if "target" in self._properties:
            phase["rate"] = positive("ycsb", "target", self._text("target", ""))
            phase["arrivals"] = "constant"
            if "concurrency" in phase:
                load["sessions"] = phase.pop("concurrency")
        if "maxexecutiontime" in self._properties:
            phase["duration"] = whole("ycsb", "maxexecutiontime", self._text("maxexecutiontime", ""))
        return load, phase

    def check_all_known(self) -> None:
        self._known |= {"threadcount", "target", "maxexecutiontime"}
        for name, found in self._properties.items():
            if name not in self._known:
                known = ", ".join(sorted({*self._known, *_UNUSED}))
                found.refuse(f"{name}: not known here; known are {known}")
