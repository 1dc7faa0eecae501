"""A table of a study, and the words that all of them share."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A table of a study, which nothing changes after validation.

    Unknown keys, infinite numbers and values of another type (``true`` for 1, ``"4"`` for 4) are errors.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


Role = Literal["rw", "ro"]
"""What an endpoint takes: writes as well, or reads only."""


ROLES: tuple[Role, ...] = ("rw", "ro")
