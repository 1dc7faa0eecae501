"""Messages about a wrong study: the key, the value, the allowed values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ValidationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    Detail = Mapping[str, Any]
    """An error as pydantic tells it."""


Model = TypeVar("Model", bound=BaseModel)


def faults_of(
    table: str, model: type[BaseModel], details: Sequence[Detail], distributions: Collection[str]
) -> Iterator[str]:
    """Give one message for each wrong key: of a value's alternatives only one was meant.

    ``distributions`` are the tags of the union of access distributions.
    """
    tags = {*_UNION_TAGS, *distributions}
    found: dict[tuple[str, ...], list[Detail]] = {}
    for detail in details:
        parts = tuple(str(part) for part in detail["loc"] if not _is_tag(part, tags))
        found.setdefault(parts, []).append(detail)
    for parts, alternatives in found.items():
        # Where something deeper is wrong, the alternative that got so far was meant.
        if not any(len(other) > len(parts) and other[: len(parts)] == parts for other in found):
            yield f"{'.'.join([table, *parts])}: {_fault(model, alternatives, distributions)}"


def validated(
    model: type[Model],
    table: Any,  # noqa: ANN401 - whatever TOML can hold
    name: str,
    faults: list[str],
    distributions: Collection[str] = (),
) -> Model | None:
    """Read a table of a TOML file; None if it is wrong, with the messages added to ``faults``."""
    if not isinstance(table, dict):
        faults.append(f"{name}: expected a table")
        return None
    try:
        return model.model_validate(table)
    except ValidationError as error:
        faults += faults_of(name, model, error.errors(include_url=False), distributions)
        return None


def one_of(what: str, names: Callable[[], Sequence[str]]) -> AfterValidator:
    """Make a validator of a text that has to be one of these names; ``what`` begins the message."""

    def check(name: str) -> str:
        if name not in names():
            raise ValueError(f"{what} is one of {', '.join(names())}")
        return name

    return AfterValidator(check)


def _fault(model: type[BaseModel], alternatives: Sequence[Detail], distributions: Collection[str]) -> str:
    """Write the message about a key's value, with the allowed values."""
    detail = alternatives[0]
    match detail["type"]:
        case "extra_forbidden":
            return f"there is no such key; allowed are {', '.join(_keys(model, detail['loc'][:-1]))}"
        case "missing":
            return "it is missing"
        case "union_tag_not_found":
            return f'"distribution" is missing; it is one of {", ".join(distributions)}'
        case "union_tag_invalid":
            tag = detail["ctx"]["tag"]
            return f'"distribution" is {tag!r}; it must be one of {", ".join(distributions)}'
    first, *others = (_message(alternative) for alternative in alternatives)
    text = " or ".join([first, *(message.removeprefix("input should be ") for message in others)])
    shown = _shown(detail.get("input"))
    return f"{text}; it is {shown}" if shown else text


def _message(detail: Detail) -> str:
    match detail["type"]:
        case "model_type" | "dict_type" | "model_attributes_type":
            return "input should be a table"
        case "too_short":
            return "it needs at least one entry"
    message = str(detail["msg"]).removeprefix("Value error, ")
    return f"{message[0].lower()}{message[1:]}"


def _is_tag(part: str | int, tags: Collection[str]) -> bool:
    """Tell whether a part names an alternative of a union, which is no part of the user's key."""
    return isinstance(part, str) and (part in tags or part.startswith("constrained-") or "[" in part)


_UNION_TAGS = {
    "bool",
    "float",
    "int",
    "RampSetting",
    "str",
    "PatternName",
    "CustomSettings",
    "ParetoSettings",
}


def _keys(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """List the keys that are allowed in the table at a path below a model."""
    choice: list[type[BaseModel]] = []
    for part in path:
        if tagged := next((one for one in choice if part in _tags(one)), None):
            model = tagged
            continue
        field = next((f for name, f in model.model_fields.items() if part in (name, f.alias)), None)
        if field is not None and (choice := list(_models_in(field.annotation))):
            model = choice[0]
    return [field.alias or name for name, field in model.model_fields.items()]


def _tags(model: type[BaseModel]) -> set[str]:
    """List the names of a model in a path: its class, or its distribution."""
    field = model.model_fields.get("distribution")
    return {model.__name__, *([str(field.default)] if field else [])}


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _models_in(inner)


def given(name: Any) -> str:  # noqa: ANN401 - whatever TOML can hold
    """Say what stands where a name should."""
    if name is None:
        return "it is missing"
    shown = _shown(name)
    return f"it is {shown}" if shown else "it is no name"


def _shown(value: Any) -> str:  # noqa: ANN401 - whatever TOML can hold
    if isinstance(value, dict | list) or value is None:
        return ""
    # A value that was meant as a URL may hold a password.
    text = repr(value) if isinstance(value, str | bool | int | float) else str(value)
    return "" if "://" in text or "=" in text else text
