"""Designs of experiments: which combinations of levels are run, and in which order. Pure: names and numbers alone.

A fractional design of two levels follows the algebra of its defining relation (Box, Hunter and Hunter, Statistics for
Experimenters): a word is a set of factors whose product is constant over the design, the words form a group
under the symmetric difference, and the resolution is the length of the shortest word.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Word = frozenset[str]
"""Factors whose product is constant; as a term, factors whose product it is."""


@dataclass(frozen=True)
class Design:
    """The combinations of levels that are run."""

    factors: tuple[str, ...]
    treatments: tuple[tuple[int, ...], ...]
    """The number of each factor's level, from 0."""
    words: tuple[Word, ...] = ()
    """The defining relation without the identity; empty for a full design."""

    @property
    def resolution(self) -> int | None:
        """The length of the shortest word; None for a full design."""
        return min(map(len, self.words), default=None)

    def aliases(self, term: Word) -> list[Word]:
        """List the terms that the design cannot tell from this one, the shortest first."""
        return sorted((term ^ word for word in self.words), key=self._rank)

    def _rank(self, term: Word) -> tuple[int, list[int]]:
        return len(term), sorted(map(self.factors.index, term))

    def write(self, term: Word) -> str:
        """Write a term: its factors in the order of the study."""
        return " × ".join(name for name in self.factors if name in term) or "1"  # noqa: RUF001 - times


@dataclass(frozen=True)
class Planned:
    """A run of a design."""

    treatment: int
    replicate: int
    block: int
    """The number of the stretch in which the factor of the blocks stands still; of the replicate without blocks."""


def full(levels: Mapping[str, int]) -> Design:
    """Return each combination of the levels; ``levels`` says how many a factor has."""
    return Design(tuple(levels), tuple(itertools.product(*(range(number) for number in levels.values()))))


def fractional(factors: Sequence[str], generators: Mapping[str, Sequence[str]]) -> Design:
    """Return the fraction of a two-level design where each generated factor is the product of others.

    Levels stand for −1 and +1.
    """  # noqa: RUF002 - minus
    base = [name for name in factors if name not in generators]
    treatments = []
    for signs in itertools.product((-1, 1), repeat=len(base)):
        of = dict(zip(base, signs, strict=True))
        of |= {name: int(np.prod([of[other] for other in product])) for name, product in generators.items()}
        treatments.append(tuple((of[name] + 1) // 2 for name in factors))
    group = _group([frozenset(product) | {name} for name, product in generators.items()])
    return Design(
        tuple(factors), tuple(treatments), tuple(sorted(group, key=lambda word: (len(word), sorted(word))))
    )


def _group(words: Sequence[Word]) -> set[Word]:
    """Close words under their products; the identity is left out."""
    found: set[Word] = set()
    for word in words:
        found |= {word} | {word ^ other for other in found}
    return found


def of_resolution(factors: Sequence[str], resolution: int) -> Design:
    """Return the smallest fraction of a two-level design with at least this resolution.

    Raises ``InputError`` where only the full design has it.
    """
    for size in range(2, len(factors)):
        base, rest = factors[:size], factors[size:]
        words = [
            frozenset(product)
            for length in range(resolution - 1, size + 1)
            for product in itertools.combinations(base, length)
        ]
        if (chosen := next(_choices(rest, words, resolution, set()), None)) is not None:
            return fractional(
                factors, dict(zip(rest, (sorted(p, key=factors.index) for p in chosen), strict=True))
            )
    raise InputError(
        f"experiment.resolution: {len(factors)} factors have no fraction of resolution {resolution}; allowed: a lower "
        'one, or design = "full"'
    )


def _choices(
    rest: Sequence[str], words: Sequence[Word], least: int, group: set[Word]
) -> Iterator[list[Word]]:
    """Choose a product for each factor of the rest, so that no word becomes shorter than the least."""
    if not rest:
        yield []
        return
    for at, product in enumerate(words):
        word = product | {rest[0]}
        grown = {word} | {word ^ other for other in group}
        if min(map(len, grown)) >= least:
            # Which of the factors has which product only names them anew.
            for others in _choices(rest[1:], words[at + 1 :], least, group | grown):
                yield [product, *others]


def ordered(design: Design, replicates: int, blocks: Sequence[str], seed: int) -> list[Planned]:
    """Put the runs into a random order, one replicate after another.

    With ``blocks`` a replicate goes through the combinations of those factors' levels in a random order, and through
    the treatments of each in a random order: these factors change once a combination.
    """
    bits = np.random.PCG64(seed)

    def shuffled(number: int) -> list[int]:
        return [int(at) for at in np.argsort(bits.random_raw(number), kind="stable")]

    places = [design.factors.index(name) for name in blocks]

    def of_blocks(treatment: Sequence[int]) -> tuple[int, ...]:
        return tuple(treatment[place] for place in places)

    found: list[Planned] = []
    block = 0
    for replicate in range(1, replicates + 1):
        levels = sorted(set(map(of_blocks, design.treatments)))
        for at in shuffled(len(levels)):
            block += 1
            of = [
                number
                for number, treatment in enumerate(design.treatments)
                if of_blocks(treatment) == levels[at]
            ]
            found += [Planned(of[number], replicate, block) for number in shuffled(len(of))]
    return found
