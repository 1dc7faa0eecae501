"""Which rows of a table a run may have written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nephoscope.store.schema import MOST_COUNT, MOST_NAME, MOST_NAMES, MOST_NUMBER, MOST_SECONDS, Refused

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COUNTS = frozenset({pa.int32(), pa.int64()})
_compute: Any = pc
"""As its types have it, columns are no arguments of these functions."""


def fitting(table: pa.Table, optional: frozenset[str]) -> NDArray[np.bool_]:
    """Tell which rows of a table a run may have written: its nulls, its numbers and its names."""
    good = np.ones(table.num_rows, np.bool_)
    for field in table.schema:
        column = table.column(field.name)
        if field.type == pa.string():
            fine = _compute.less_equal(_compute.binary_length(column), MOST_NAME)
        elif field.type in _COUNTS:
            fine = _compute.and_(
                _compute.greater_equal(column, 0), _compute.less_equal(column, _most_of(field.type))
            )
        else:
            most = MOST_SECONDS if field.name.endswith("_s") else MOST_NUMBER
            fine = _compute.less_equal(_compute.abs(column), most)  # not true of NaN
        good &= _compute.fill_null(fine, field.name in optional).to_numpy().astype(np.bool_)
    if {"start_s", "end_s"} <= set(table.column_names):
        good &= table.column("start_s").to_numpy() <= table.column("end_s").to_numpy()
    return good


def _most_of(kind: pa.DataType) -> int:
    return MOST_COUNT if kind == pa.int64() else 2**31 - 1


def has_long_text(batch: pa.RecordBatch) -> bool:
    """Tell whether a name is longer than any of a run; dictionaries are looked at, and not what they stand for."""
    columns: list[Any] = [batch.column(place) for place in range(batch.num_columns)]
    words = [column.dictionary if pa.types.is_dictionary(column.type) else column for column in columns]
    return any(
        (_compute.max(_compute.binary_length(column)).as_py() or 0) > MOST_NAME
        for column in words
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type)
    )


def check_names(table: pa.Table) -> None:
    """Refuse a table with more different names in a column than any run has."""
    for field in table.schema:
        if field.type == pa.string() and len(_compute.unique(table.column(field.name))) > MOST_NAMES:
            raise Refused(f"{field.name} has more than {MOST_NAMES:,} different names")
