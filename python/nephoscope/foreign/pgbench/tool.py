"""pgbench: its scripts, its built-in scripts and its command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from nephoscope.errors import InputError
from nephoscope.foreign.base import Asked, Meant, NamedFile, Tool, positive, read_words, text_of, whole
from nephoscope.foreign.pgbench.lua import RUNTIME, write_workload
from nephoscope.foreign.pgbench.script import OWN, Script, read_script

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_BUILT_IN = {"tpcb-like": "tpcb_like", "simple-update": "simple_update", "select-only": "select_only"}
"""pgbench's built-in scripts, and the transactions of the workload ``tpcb`` that they are."""

_OF_URL = "the server and its database are named by --url"
_REFUSED = {
    **dict.fromkeys(("-h", "--host", "-p", "--port", "-U", "--username"), _OF_URL),
    **dict.fromkeys(
        ("-i", "--initialize"),
        "nephoscope load --pgbench tpcb-like -s SCALE makes pgbench's tables; those of pgbench -i serve as well",
    ),
    **dict.fromkeys(("-t", "--transactions"), "a run ends by time: -T SECONDS"),
    **dict.fromkeys(
        ("-L", "--latency-limit"), "goodput counts those within a bound: --set measure.0.slo=100ms"
    ),
    **dict.fromkeys(("-C", "--connect"), "sessions keep their connections here"),
    **dict.fromkeys(("-r", "--report-per-command"), "latencies are those of transactions here"),
    **dict.fromkeys(("-v", "--vacuum-all"), "nothing is vacuumed: psql -c VACUUM does it before"),
    **dict.fromkeys(("-l", "--log", "--sampling-rate", "--aggregate-interval", "--log-prefix"),
                    "the run directory has histograms of each interval, and no log of transactions"),
    "--show-script": "nephoscope workloads tpcb shows what pgbench's built-in scripts do",
}  # fmt: skip


class Pgbench(Tool):
    """Scripts of pgbench."""

    name: ClassVar[str] = "pgbench"
    built_in: ClassVar[Sequence[str]] = tuple(_BUILT_IN)
    needs_url: ClassVar[str] = "scripts of pgbench have no tables of their own"

    def asked(self, files: Sequence[str], words: Sequence[str]) -> Asked:
        """Read pgbench's command line."""
        parts = [_part(file) for file in files]
        asked = _Options(parts)
        rest = read_words("pgbench", words, asked.known(), asked.flags(), _REFUSED)
        if rest:
            raise InputError(f"pgbench: {rest[0]!r}: {_OF_URL}, and a study stands before --pgbench")
        return Asked(parts=parts, **asked.found())

    def meant(self, parts: Sequence[NamedFile]) -> Meant:
        """Name the workload ``tpcb`` where all is built in; else there are no tables to be made."""
        built_in = [part for part in parts if part.name in _BUILT_IN]
        if len(built_in) < len(parts):
            return Meant({"external": True} if not built_in else {})
        mix = _extended(parts)
        return Meant({"name": "tpcb"}, {"mixes": [mix], "mix": mix})

    def made(self, parts: Sequence[NamedFile]) -> Mapping[str, str]:
        """Make a workload of scripts: a transaction each."""
        scripts: list[Script] = []
        weights: dict[str, int] = {}
        for part in parts:
            if part.name in _BUILT_IN:
                continue
            name = _transaction_name(Path(part.name).stem, weights)
            weights[name] = part.weight
            scripts.append(read_script(part.name, name, text_of(Path(part.name))))
        if not any((*weights.values(), *_extended(parts).values())):
            raise InputError("pgbench: no script has a weight above 0")
        return write_workload(scripts, weights, _extended(parts))


def _extended(parts: Sequence[NamedFile]) -> dict[str, int]:
    weights: dict[str, int] = {}
    for part in parts:
        if part.name in _BUILT_IN:
            weights[_BUILT_IN[part.name]] = weights.get(_BUILT_IN[part.name], 0) + part.weight
    return weights


def _transaction_name(stem: str, taken: Mapping[str, int]) -> str:
    name = re.sub(r"\W", "_", stem, flags=re.ASCII)
    name = f"_{name}" if not name or name[0].isdigit() else name
    known = {"workload", RUNTIME, *_BUILT_IN.values(), *taken}
    return next(
        one for one in (name, *(f"{name}_{number}" for number in range(2, 10**6))) if one not in known
    )


def _part(text: str) -> NamedFile:
    name, at, weight = text.rpartition("@")
    if not at:
        return NamedFile(text)
    return NamedFile(name, whole("pgbench", "-f", weight, 0))


def _wants_seed(part: NamedFile) -> bool:
    return part.name not in _BUILT_IN and ":random_seed" in text_of(Path(part.name))


class _Options:
    """What pgbench's options ask for."""

    def __init__(self, parts: list[NamedFile]) -> None:
        self._parts = parts
        self._workload: dict[str, Any] = {}
        self._variables: dict[str, str] = {}
        # pgbench's own: statements as text, and nothing tried again.
        self._load: dict[str, Any] = {"statement_mode": "simple", "retry": {"attempts": 1}}
        self._phase: dict[str, Any] = {}
        self._seed: int | None = None

    def found(self) -> dict[str, Any]:
        if self._seed is not None and any(map(_wants_seed, self._parts)):
            self._variables.setdefault("random_seed", str(self._seed))
        options: dict[str, str | int] = {
            name: whole("pgbench", f"-D {name}", value, 0)
            if name.endswith("_seed") and name in OWN
            else value
            for name, value in self._variables.items()
        }
        if "rate" in self._phase and "concurrency" in self._phase:
            self._load["sessions"] = self._phase.pop("concurrency")
        if (scale := options.pop("scale", None)) is not None:
            self._workload["scale"] = whole("pgbench", "-D scale", str(scale))
        workload = {**self._workload, **({"options": options} if options else {})}
        return {"workload": workload, "load": self._load, "phase": self._phase, "seed": self._seed}

    def known(self) -> dict[str, Any]:
        """Give each option, by all of its names, and what is done with its value."""
        named = {
            ("-f", "--file"): lambda value: self._parts.append(_part(value)),
            ("-b", "--builtin"): self._add_built_in,
            ("-c", "--client"): lambda value: self._in_phase("concurrency", whole("pgbench", "-c", value)),
            ("-j", "--jobs"): lambda value: self._in_load("threads", whole("pgbench", "-j", value)),
            ("-T", "--time"): lambda value: self._in_phase("duration", whole("pgbench", "-T", value)),
            ("-R", "--rate"): self._set_rate,
            ("-D", "--define"): self._define,
            ("-s", "--scale"): lambda value: self._workload.update(scale=whole("pgbench", "-s", value)),
            ("-M", "--protocol"): self._set_protocol,
            ("--max-tries",): self._set_tries,
            ("--random-seed",): self._set_seed,
            # The progress is shown anyway.
            ("-P", "--progress"): lambda value: positive("pgbench", "-P", value),
        }
        return {name: take for names, take in named.items() for name in names}

    def flags(self) -> dict[str, Any]:
        """Give each option that has no value, and what is done."""
        named = {
            # Failures are told apart, and nothing is vacuumed.
            ("-n", "--no-vacuum", "--failures-detailed"): lambda: None,
            ("-S", "--select-only"): lambda: self._add_built_in("select-only"),
            ("-N", "--skip-some-updates"): lambda: self._add_built_in("simple-update"),
        }
        return {name: do for names, do in named.items() for name in names}

    def _in_phase(self, key: str, value: float) -> None:
        self._phase[key] = value

    def _in_load(self, key: str, value: object) -> None:
        self._load[key] = value

    def _add_built_in(self, value: str) -> None:
        part = _part(value)
        fitting = [name for name in _BUILT_IN if name.startswith(part.name)]
        if len(fitting) != 1:
            raise InputError(f"pgbench -b {value}: built-in scripts are {', '.join(_BUILT_IN)}")
        self._parts.append(NamedFile(fitting[0], part.weight))

    def _set_rate(self, value: str) -> None:
        self._phase["rate"] = positive("pgbench", "-R", value)
        self._phase["arrivals"] = "poisson"

    def _define(self, value: str) -> None:
        name, equals, text = value.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise InputError(f"pgbench -D {value}: expected NAME=VALUE")
        if name == "client_id":
            raise InputError("pgbench -D client_id: each session has its own number")
        self._variables[name] = text

    def _set_tries(self, value: str) -> None:
        self._load["retry"] = {"attempts": whole("pgbench", "--max-tries", value)}

    def _set_protocol(self, value: str) -> None:
        if value not in ("simple", "extended", "prepared"):
            raise InputError(f"pgbench -M {value}: protocols are simple, extended, prepared")
        self._load["statement_mode"] = value

    def _set_seed(self, value: str) -> None:
        if not value.isascii() or not value.isdigit() or int(value) >= 2**63:
            raise InputError(
                f"pgbench --random-seed {value}: runs are repeatable, so the seed is a whole number"
            )
        self._seed = int(value)
