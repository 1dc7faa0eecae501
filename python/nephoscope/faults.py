"""What is wrong with a study, in words: the key, the value, what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    Detail = Mapping[str, Any]
    """An error as pydantic tells it."""


def faults_of(
    table: str, model: type[BaseModel], details: Sequence[Detail], distributions: Collection[str]
) -> Iterator[str]:
    """Say what is wrong, once for each key: of the alternatives that a value could be, only one was meant.

    ``distributions`` are the tags of the union of access distributions.
    """
    tags = {*_UNION_TAGS, *distributions}
    found: dict[tuple[str, ...], list[Detail]] = {}
    for detail in details:
        # Tags of unions are no part of a key that a user wrote.
        parts = tuple(str(part) for part in detail["loc"] if not _is_tag(part, tags))
        found.setdefault(parts, []).append(detail)
    for parts, alternatives in found.items():
        # Where something deeper is wrong, the alternative that got so far was meant.
        if not any(len(other) > len(parts) and other[: len(parts)] == parts for other in found):
            yield f"{'.'.join([table, *parts])}: {_fault(model, parts, alternatives, distributions)}"


def _fault(
    model: type[BaseModel],
    parts: tuple[str, ...],
    alternatives: Sequence[Detail],
    distributions: Collection[str],
) -> str:
    """Say what is wrong with a key's value, and what is allowed."""
    detail = alternatives[0]
    match detail["type"]:
        case "extra_forbidden":
            return f"there is no such key; allowed are {', '.join(_keys(model, list(parts[:-1])))}"
        case "missing":
            return "it is missing"
        case "union_tag_not_found":
            return f'"distribution" is missing; it is one of {", ".join(distributions)}'
        case "union_tag_invalid":
            tag = detail["ctx"]["tag"]
            return f'"distribution" is {tag!r}; it must be one of {", ".join(distributions)}'
    messages = [alternative["msg"].removeprefix("Value error, ") for alternative in alternatives]
    messages = [f"{message[0].lower()}{message[1:]}" for message in messages]
    first, *others = messages
    text = " or ".join([first, *(message.removeprefix("input should be ") for message in others)])
    shown = _shown(detail.get("input"))
    return f"{text}; it is {shown}" if shown else text


def _is_tag(part: str | int, tags: Collection[str]) -> bool:
    return isinstance(part, str) and (part in tags or "[" in part)


_UNION_TAGS = {"bool", "constrained-str", "float", "int", "RampSetting", "str"}


def _keys(model: type[BaseModel], path: list[str]) -> list[str]:
    """List the keys that are allowed in the table at a path below a model."""
    for part in path:
        field = next((f for name, f in model.model_fields.items() if part in (name, f.alias)), None)
        inner = _model_in(field.annotation) if field else None
        if inner is None:
            break
        model = inner
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        if found := _model_in(inner):
            return found
    return None


def given(name: Any) -> str:  # noqa: ANN401 - whatever TOML can hold
    """Say what stands where a name should."""
    if name is None:
        return "it is missing"
    shown = _shown(name)
    return f"it is {shown}" if shown else "it is no name"


def _shown(value: Any) -> str:  # noqa: ANN401 - whatever TOML can hold
    if isinstance(value, dict | list) or value is None:
        return ""
    # What was meant for a URL may hold a password.
    text = repr(value) if isinstance(value, str | bool | int | float) else str(value)
    return "" if "://" in text or "=" in text else text
