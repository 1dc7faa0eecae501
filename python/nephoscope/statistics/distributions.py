"""Quantiles of the distributions that intervals rest on.

scipy is loaded by the first that is asked for: it takes a quarter of a second, and most commands need none.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

Z95 = 1.959963984540054
"""The quantile of the normal distribution at 0.975."""


@functools.cache
def _special() -> ModuleType:
    from scipy import special  # noqa: PLC0415 - see above

    return special


def normal_quantile(share: float) -> float:
    """Give the value below which a share of the standard normal distribution lies."""
    return float(_special().ndtri(share))


def t_quantile(freedom: float, share: float) -> float:
    """Give the value below which a share of Student's distribution lies, by its degrees of freedom."""
    return float(_special().stdtrit(freedom, share))


def t_share(freedom: float, value: float) -> float:
    """Give the share of Student's distribution that lies below a value, by its degrees of freedom."""
    return float(_special().stdtr(freedom, value))


def chi_square_quantile(freedom: float, share_above: float) -> float:
    """Give the value above which a share of the chi-square distribution lies, by its degrees of freedom."""
    return float(_special().chdtri(freedom, share_above))


def logistic(value: float) -> float:
    """Give the share whose logarithm of the odds is a value."""
    return float(_special().expit(value))
