"""What a card holds, how it is written, and how one that anybody may have made is read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nephoscope.errors import InputError
from nephoscope.files import read_regular
from nephoscope.settings.resources import Resources
from nephoscope.store.schema import Count, Name, Repetition, parsed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MOST_BYTES = 4 * 2**20
"""The largest card."""
_MOST = 5000
"""The most entries of a list of a card."""

Text = Annotated[str, Field(max_length=20_000)]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Interval = Annotated[list[float], Field(min_length=2, max_length=2)]


class CardPart(BaseModel):
    """A part of a card: each key is known, and each number finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class CardFigure(CardPart):
    """A figure of the run, with its repetitions."""

    value: float
    """All repetitions together, as the run's report has it."""
    unit: Name
    better: Literal["higher", "lower"]
    ci95: Interval | None
    """The 95 % confidence interval, in its unit; absent of percentiles, and where nothing is known of the spread."""
    repetitions: Repetition
    median: float | None
    """The median of the repetitions; absent where there is one, or where they are not kept."""
    worst: float | None
    """The worst of them, in the direction of the figure."""


class CardVerdict(CardPart):
    """A verdict on how the figures were measured."""

    level: Literal["ok", "note", "warning", "problem"]
    verdict: Text
    detail: Text


class CardFile(CardPart):
    """A file of the run directory."""

    name: Annotated[str, Field(pattern=r"^([a-z]+/[0-9]+\.[a-z]+|[a-z]+(\.[a-z]+)?)$", max_length=40)]
    bytes: Count
    sha256: Hash


class CardRun(CardPart):
    """When and with what the run was made."""

    study: Name
    """The name of its study."""
    origin: Name
    """The time of day at which its load began."""
    finished: Name
    nephoscope: Name
    format: Annotated[int, Field(ge=1)]
    """The format of the run directory."""
    seed: int


class CardTuning(CardPart):
    """Whether the system was tuned for the workload, and what the study sets of it."""

    tuned: bool
    stated: bool | None
    """`study.tuned`; absent where the study does not say."""
    settings: Annotated[list[Text], Field(max_length=_MOST)]
    """The server's settings and each session's SQL that the study sets."""


class CardSystem(CardPart):
    """The system that was measured."""

    provider: Name
    version: Name
    rw: Count
    """How many endpoints take writes."""
    ro: Count
    """How many only read."""
    resources: Resources | None
    facts: dict[Name, Text]
    """What the server and its provider told: versions, settings."""


class CardWorkload(CardPart):
    """The workload, by which cards may be compared at all."""

    name: Name
    scale: float
    options: dict[Name, str | bool | int | float]
    files: dict[Name, Name]
    """The hashes of its files."""


class Card(CardPart):
    """The result of a run; `docs/cards.md` is the contract."""

    format: Literal[1] = 1
    nephoscope: Name
    """The version that computed the figures."""
    run: CardRun
    tuning: CardTuning
    system: CardSystem
    workload: CardWorkload
    host: dict[Name, Text]
    """The machine that the load came from."""
    price_book: Name
    scores: dict[Name, CardFigure]
    """By letter; by the second price book with a star."""
    absent: dict[Name, Text]
    """Why scores are absent."""
    points: dict[Name, dict[Name, CardFigure]]
    """The figures of each point: `"RW c=16"`, then TPS, p50, p95, p99, client CPU."""
    verdicts: Annotated[list[CardVerdict], Field(max_length=_MOST)]
    warnings: Annotated[list[Text], Field(max_length=_MOST)]
    study: Annotated[str, Field(max_length=2**20)]
    """The study as it was run, without passwords."""
    files: Annotated[list[CardFile], Field(min_length=1, max_length=_MOST)]
    """The files of the run directory but those that are computed from them, `scores.json` and `report.html`."""
    sha256: Hash
    """Of the lines `<sha256>  <name>` of these files, as `sha256sum` writes them."""
    signature: Annotated[str, Field(max_length=100_000)] | None = None
    """An OpenSSH signature of all the rest, in its armour; absent where the card is not signed."""


def text_of(card: Card) -> str:
    """Write a card as its file holds it: the same card has the same bytes."""
    fields = card.model_dump(mode="json")
    if card.signature is None:
        del fields["signature"]
    return json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def signed_text(fields: Mapping[str, Any]) -> str:
    """Write what a signature is of: the card without it, in JSON with sorted keys, ASCII alone and no spaces."""
    signed = {key: value for key, value in fields.items() if key != "signature"}
    return json.dumps(signed, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


def read_card(path: Path) -> tuple[Card, str]:
    """Read a card, and the text that its signature is of. Raises ``InputError`` for what is none."""
    try:
        content = read_regular(path, MOST_BYTES)
        fields = parsed(content)
        if isinstance(fields, dict) and isinstance(number := fields.get("format"), int) and number > 1:
            raise InputError(f"{path} was made by a later nephoscope (format {number})")
        # Anew from its bytes: of a list in JSON a tuple can be made, and of one in Python it cannot.
        return Card.model_validate_json(content), signed_text(fields)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))[:80]
        raise InputError(f"{path} is no card: {place}: {first['msg'][:200]}") from None
    except ValueError as error:
        raise InputError(f"{path} is no card: {str(error)[:200]}") from None


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a card (draft 2020-12)."""
    schema = Card.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
