"""What a tool gives: the files of a workload of ours, what they mean for a study, what its command line asks for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from nephoscope.errors import InputError
from nephoscope.files import USER_FILE_BYTES, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

ALL = "ALL"
"""The mix of all transactions, by the weights of the tool's files."""


@dataclass(frozen=True)
class NamedFile:
    """One of a workload's files, or what the tool has built in, and its weight among them."""

    name: str
    weight: int = 1

    def __str__(self) -> str:
        """Write it as a study names it."""
        return self.name if self.weight == 1 else f"{self.name}@{self.weight}"


@dataclass(frozen=True)
class Meant:
    """What a tool's files mean for the study that names them; the study's own keys are put over it."""

    workload: Mapping[str, Any] = field(default_factory=dict)
    """Keys of ``[workload]``; a ``name`` takes the place of the tool's files."""
    measure: Mapping[str, Any] = field(default_factory=lambda: {"mixes": [ALL], "mix": ALL})
    """Keys of each ``[[measure]]`` that knows them."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a command line of the tool asks for, in the keys of a study."""

    parts: Sequence[NamedFile]
    workload: Mapping[str, Any] = field(default_factory=dict)
    """Keys of ``[workload]``; a ``name`` takes the place of the tool's files."""
    measure: Mapping[str, Any] = field(default_factory=dict)
    """Keys of each ``[[measure]]`` that knows them, where the study does not have them."""
    load: Mapping[str, Any] = field(default_factory=dict)
    """Keys of ``[load]``."""
    phase: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the one phase of a study that is made for it: how much load, for how long."""
    seed: int | None = None
    """The key ``study.seed``."""
    notes: Sequence[str] = ()
    """What the tool would do and is not done here, a sentence each."""


class Tool(ABC):
    """A tool whose files can be run."""

    name: ClassVar[str]
    """How it is called: ``--pgbench``, and ``workload.name = "pgbench:FILE"``."""
    ending: ClassVar[str] = ""
    """A file with this ending is the tool's, whoever names it; empty where none is."""
    built_in: ClassVar[Sequence[str]] = ()
    """What may stand in the place of a file."""
    needs_url: ClassVar[str] = ""
    """Why a system has to be named on the command line, where no study does; empty if its workloads load data."""

    @abstractmethod
    def asked(self, files: Sequence[str], words: Sequence[str]) -> Asked:
        """Read the tool's own command line. Raises ``InputError`` that names the word and what is allowed."""

    @abstractmethod
    def made(self, parts: Sequence[NamedFile]) -> Mapping[str, str]:
        """Make the files of a workload's folder, by name: the same for the same input.

        Raises ``InputError`` with the tool's file and line.
        """

    def meant(self, parts: Sequence[NamedFile]) -> Meant:  # noqa: ARG002 - for those that need it
        """Say what the files mean for a study. Raises ``InputError``."""
        return Meant()


def text_of(path: Path) -> str:
    """Read a tool's file. Raises ``InputError``."""
    try:
        return read_regular(path, USER_FILE_BYTES).decode()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}:{line}: this is no text in UTF-8") from None


def refuse(path: Path | str, line: int, message: str) -> NoReturn:
    """Say what is wrong in a tool's file, and where."""
    raise InputError(f"{path}:{line}: {message}")


def lua_text(text: str) -> str:
    """Write a text as Lua reads it."""
    plain = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
    return '"' + "".join(plain.get(letter, letter) for letter in text) + '"'


def read_words(
    tool: str,
    words: Sequence[str],
    known: Mapping[str, Callable[[str], None]],
    flags: Mapping[str, Callable[[], None]],
    refused: Mapping[str, str],
) -> list[str]:
    """Read the words of a command line: ``-c 8``, ``-c8``, ``--client=8``, ``--client 8``.

    ``known`` has what is done with the value of each option, ``flags`` those without a value. ``refused`` says why an
    option has no counterpart. Gives the words that are no options. Raises ``InputError``.
    """
    rest: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        if word in known or word in flags or word in refused:  # -threads, as YCSB has it
            name, equals, value = word, "", ""
        if name in refused:
            raise InputError(f"{tool} {name}: {refused[name]}")
        if name not in known and name not in flags:
            raise InputError(f"{tool} {name}: not known here; known are {', '.join((*known, *flags))}")
        if name in flags:
            if equals:
                raise InputError(f"{tool} {name}: it takes no value")
            flags[name]()
            continue
        if not equals:
            if not left:
                raise InputError(f"{tool} {name}: its value is missing")
            value = left.pop(0)
        known[name](value)
    return rest


def whole(tool: str, option: str, value: str, least: int = 1) -> int:
    """Read a whole number of a command line. Raises ``InputError``."""
    if not value.isascii() or not value.isdigit() or int(value) < least:
        raise InputError(f"{tool} {option}: {value!r} must be a whole number from {least} on")
    return int(value)


def positive(tool: str, option: str, value: str) -> float:
    """Read a number above 0. Raises ``InputError``."""
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise InputError(f"{tool} {option}: {value!r} must be a number above 0")
    return number


def mix_lines(weights: Mapping[str, int], reading: Collection[str]) -> list[str]:
    """Declare the mixes of a workload in Lua: all transactions, those that only read, those that write.

    ``RW`` is all of them, as evaluators ask for it by default.
    """
    mixes = {
        ALL: weights,
        "RW": weights,
        "RO": {name: weight for name, weight in weights.items() if name in reading},
        "WO": {name: weight for name, weight in weights.items() if name not in reading},
    }
    return [
        f'w:mix("{mix}", {{ {", ".join(_weight(*one) for one in given.items())} }})'
        for mix, given in mixes.items()
        if any(given.values())
    ]


def _weight(name: str, weight: int) -> str:
    return f'["{name}"] = {weight}'
