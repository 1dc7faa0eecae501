"""URLs of endpoints, as a study has them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from nephoscope.settings.units import one_as_list

Urls = Annotated[list[str], BeforeValidator(one_as_list)]
