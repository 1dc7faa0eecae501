"""Workloads as the control plane sees them: their files and their description."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.settings.loads import parse_access
from nephoscope.study.packaged import PACKAGED, find_workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nephoscope.settings.loads import AccessSetting, MixSetting
    from nephoscope.study.reading import WorkloadTable


_RATIO = re.compile(r"\d+(\.\d+)?(:\d+(\.\d+)?)+")


def _digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


class DescribedWorkload(ABC):
    """The description of a workload, from its files or from a run: evaluators need nothing else."""

    @property
    @abstractmethod
    def description(self) -> Mapping[str, Any]:
        """The name, the transactions and the mixes at least."""

    @property
    def name(self) -> str:
        """The name that the file gives it."""
        return str(self.description["name"])

    @property
    def transactions(self) -> list[str]:
        """The names of its transactions, in their order."""
        return [transaction["name"] for transaction in self.description["transactions"]]

    def check_consistency(self, levels: Iterable[str], where: str) -> None:
        """Check that the system has consistency levels; a stored run had. Raises ``InputError``."""
        capabilities = self.description.get("capabilities", {})
        if "consistency_levels" not in capabilities:
            return
        reads, writes = capabilities["consistency_apart"]
        for level in levels:
            apart = re.fullmatch("read (.*) write (.*)", level)
            if level in capabilities["consistency"] or (apart and apart[1] in reads and apart[2] in writes):
                continue
            name, allowed = self.description["dialect"], capabilities["consistency_levels"]
            raise InputError(f"{where}: {name} has no {level!r}; {allowed}")

    def mixes(self, mixes: Iterable[MixSetting], where: str) -> dict[str, dict[str, float]]:
        """Resolve mixes: the weights of each by its name. Raises ``InputError`` with what is allowed."""
        return dict(self.mix(mix, f"{where}.{index}") for index, mix in enumerate(mixes))

    def mix(self, mix: MixSetting, where: str) -> tuple[str, dict[str, float]]:
        """Resolve a mix: its name for labels, and its weights by transaction.

        Raises ``InputError`` with what is allowed.
        """
        names = self.transactions
        if isinstance(mix, dict):
            if stray := [name for name in mix if name not in names]:
                raise InputError(
                    f"{where}: {self.name} has no transaction {stray[0]!r}; it has {', '.join(names)}"
                )
            weights = {name: float(mix[name]) for name in names if mix.get(name)}
            named = [f"{weight:g} {name}" for name, weight in weights.items()]
            label = ", ".join(named) if len(named) > 1 else "".join(weights)
        elif _RATIO.fullmatch(mix):
            parts = [float(part) for part in mix.split(":")]
            if len(parts) > len(names):
                raise InputError(
                    f"{where}: {mix!r} has {len(parts)} parts, and {self.name} has {', '.join(names)}"
                )
            weights = {name: share for name, share in zip(names, parts, strict=False) if share}
            label = mix
        else:
            mixes = {known["name"]: known["weights"] for known in self.description["mixes"]}
            if mix not in mixes:
                known = ", ".join(mixes)
                raise InputError(
                    f"{where}: {self.name} has no mix {mix!r}; its mixes are {known}, "
                    f"and a ratio such as 15:5:80 stands for {', '.join(names[:4])}"
                )
            weights, label = dict(mixes[mix]), mix
        if not weights:
            raise InputError(f"{where}: no transaction has a weight above 0")
        return label, weights

    def access(self, mix: MixSetting | None) -> AccessSetting:
        """Return the access distribution of a mix: its own, or uniform. Raises ``InputError`` with what is allowed."""
        own = {known["name"]: known.get("access") for known in self.description["mixes"]}
        given = own.get(mix) if isinstance(mix, str) else None
        try:
            return parse_access(given or "uniform")
        except ValueError as error:
            raise InputError(f"{self.name}: the access of the mix {mix} is {given!r}: {error}") from None


@dataclass(frozen=True)
class KeptWorkload(DescribedWorkload):
    """A workload as a run keeps it (``inputs.workload`` of its manifest): its files are not asked for."""

    kept: Mapping[str, Any]

    @property
    def description(self) -> Mapping[str, Any]:
        """What was kept."""
        return self.kept


@dataclass(frozen=True)
class Workload(DescribedWorkload):
    """A workload with its options, its scale and the seed of its data, in the dialect of a system."""

    folder: Path
    scale: float
    data_seed: int
    options: Mapping[str, str | bool | float]
    url: str
    """Any URL of the system: its driver decides about the dialect."""

    @classmethod
    def of(cls, table: WorkloadTable, url: str) -> Workload:
        """Find and read the workload of a study. Raises ``InputError`` with file and line."""
        found = cls(find_workload(table.name), table.scale, table.data_seed, dict(table.options), url)
        for mix in found.description["mixes"]:
            found.access(mix["name"])
        return found

    def spec(self, handed_out: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Describe the workload for the engine."""
        return {
            "folder": str(self.folder),
            "packaged": str(PACKAGED),
            "options": dict(self.options),
            "scale": self.scale,
            "data_seed": self.data_seed,
            "handed_out": dict(handed_out or {}),
        }

    @cached_property
    def description(self) -> dict[str, Any]:
        """What the files say: name, tables, transactions, options, mixes, statements, and the schema."""
        description: dict[str, Any] = json.loads(_engine.workload(json.dumps(self.spec()), self.url))
        return description

    def hashes(self) -> dict[str, str]:
        """Hash the files, for the manifest: by file name, ``sha256:…``.

        Files of a workload that this one extends have its folder's name before their own.
        """
        files = [Path(file) for file in self.description["files"]]
        return {
            file.name if file.parent == self.folder else f"{file.parent.name}/{file.name}": _digest(
                file.read_bytes()
            )
            for file in files
        }

    @property
    def data_options(self) -> dict[str, str | bool | float]:
        """The options that the data depends on, with their values."""
        options = self.description["options"]
        return {option["name"]: option["value"] for option in options if option["data"]}

    @property
    def schema_digest(self) -> str:
        """A digest of what is to be made: the schema's SQL, and the tables with their rows and columns.

        They may depend on anything that the Lua file sees, so options and scale alone do not tell them.
        """
        said = self.description
        made = [said["schema"]["create"], said["schema"]["keys"], said["tables"]]
        return _digest(json.dumps(made).encode())

    def kept(self) -> dict[str, Any]:
        """Return the part that a run keeps, so that its figures can be read without the files."""
        said = self.description
        return {
            "name": said["name"],
            "dialect": said["dialect"],
            "blocking": said["capabilities"]["blocking"],
            "transactions": [
                {key: transaction[key] for key in ("name", "read_only", "limits")}
                for transaction in said["transactions"]
            ],
            "mixes": [
                {key: mix[key] for key in ("name", "weights", "at_least", "rate", "access")}
                for mix in said["mixes"]
            ],
        }
