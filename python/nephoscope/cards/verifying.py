"""Whether a card tells the truth: its signature, the hashes of the run's files, and each figure computed anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nephoscope import __version__
from nephoscope.cards import ssh
from nephoscope.cards.making import card_of, hash_over

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nephoscope.cards.card import Card
    from nephoscope.store import StoredRun

_NOT_COMPARED = frozenset({"nephoscope", "files", "sha256", "signature"})
"""Fields that have a check of their own."""
_SHOWN = 120


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    level: Literal["ok", "note", "problem"]
    said: str


@dataclass(frozen=True)
class Verified:
    """The outcome of verifying a card."""

    checks: Sequence[Check]

    @property
    def differs(self) -> bool:
        """Whether anything is not as the card says."""
        return any(check.level == "problem" for check in self.checks)

    @property
    def checked(self) -> bool:
        """Whether there was anything to check it by: a signature, or the run."""
        return any(check.level != "note" for check in self.checks)


def verify(card: Card, signed: str, run: StoredRun | None, signers: Path | None = None) -> Verified:
    """Verify a card by its signature, if it has one, and by its run, if there is one.

    ``signed`` is the text that its signature is of. With ``signers`` a card without a signature differs. Raises
    ``InputError`` where the run cannot be read.
    """
    checks = list(_signature(card, signed, signers))
    if card.sha256 != hash_over(card.files):
        checks.append(Check("problem", "sha256: it is not the hash over the files that the card lists"))
    if run is None:
        checks.append(Check("note", "no run directory: hashes and figures were not checked"))
        return Verified(checks)
    found = card_of(run)
    if card.nephoscope != __version__:
        said = f"the card is by nephoscope {card.nephoscope}, and its figures were computed anew by {__version__}"
        checks.append(Check("note", said))
    wrong = list(_files(card, found))
    checks += wrong or [Check("ok", f"the {len(found.files)} files of the run are those of the card")]
    differing = list(_fields(card, found))
    figures = len(found.scores) + sum(map(len, found.points.values()))
    said = f"{figures} figures computed anew are those of the card, and so is all else"
    return Verified([*checks, *(differing or [Check("ok", said)])])


def _signature(card: Card, signed: str, signers: Path | None) -> Iterator[Check]:
    if card.signature is not None:
        found = ssh.check(signed, card.signature, signers)
        yield Check("ok" if found.holds else "problem", found.said)
    elif signers is not None:
        yield Check("problem", "it is not signed")
    else:
        yield Check("note", "it is not signed")


def _files(card: Card, found: Card) -> Iterator[Check]:
    told, there = ({file.name: file for file in one.files} for one in (card, found))
    for name in sorted(told.keys() | there.keys()):
        if name not in there:
            yield Check("problem", f"{name}: the run directory has no such file")
        elif name not in told:
            yield Check("problem", f"{name}: the card does not have this file")
        elif told[name] != there[name]:
            sizes = f"{told[name].bytes:,} bytes in the card, {there[name].bytes:,} in the run directory"
            yield Check("problem", f"{name}: another content ({sizes})")


def _fields(card: Card, found: Card) -> Iterator[Check]:
    """Compare each field with the one computed anew, numbers exactly."""
    ours, theirs = (one.model_dump(mode="json", exclude=set(_NOT_COMPARED)) for one in (found, card))
    for place, computed, told in _different(ours, theirs, ""):
        yield Check("problem", f"{place}: {_short(told)} in the card, {_short(computed)} in the run")


_NOTHING = object()


def _different(ours: Any, theirs: Any, place: str) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401 - JSON
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in dict.fromkeys((*ours, *theirs)):
            inner = f"{place}.{key}" if place else key
            yield from _different(ours.get(key, _NOTHING), theirs.get(key, _NOTHING), inner)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _different(one, other, f"{place}.{at}")
    elif ours != theirs:
        yield place, ours, theirs


def _short(value: object) -> str:
    if value is _NOTHING:
        return "nothing"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
