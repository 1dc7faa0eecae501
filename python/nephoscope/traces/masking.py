"""A trace with other values of the same form."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.traces.trace import StoredTrace, writing

if TYPE_CHECKING:
    from pathlib import Path


def mask_trace(path: Path, out: Path) -> int:
    """Write a trace again with every value replaced, the same value by the same; gives how many statements it has.

    Raises:
        InputError: the first is no trace, or the other cannot be made there.

    """
    trace, mask = StoredTrace(path), _engine.SqlTraceMask()

    def masked(batch: pa.RecordBatch) -> pa.RecordBatch:
        column: Any = batch.column("parameters")
        kinds: Any = batch.column("kinds")
        values = mask.masked(column.flatten().to_pylist(), "".join(kinds.to_pylist()))
        # Of a piece of a file the offsets need not begin at 0, and flatten takes what is before them away.
        offsets: Any = pc.subtract(column.offsets, column.offsets[0])
        place = batch.schema.get_field_index("parameters")
        made = pa.ListArray.from_arrays(offsets, pa.array(values, pa.string()))
        return batch.set_column(place, batch.schema.field(place), made)

    try:
        with writing(out) as draft:
            if trace.statements == 0:
                raise InputError(f"{path}: no statement is in it")
            trace.changed(masked, draft)
            draft.meta = replace(trace.meta, masked=True)
    finally:
        trace.close()
    return trace.statements
