"""A trained model as a file: arrays and JSON in one ``.npz``; reading it executes nothing."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.errors import InputError, MeasurementError
from nephoscope.files import check_named, read_regular, replacing
from nephoscope.storage.features import NEAR, Cell
from nephoscope.storage.models.base import VALIDATED, Known, Model, expect
from nephoscope.storage.models.drift import Drift
from nephoscope.storage.models.growth import Growth
from nephoscope.storage.models.registry import halves
from nephoscope.storage.sizes import WriteSizes

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from nephoscope.storage.models.base import State

FORMAT = 2
MOST_BYTES = 2**30
"""The largest file that is read, and the most that its arrays may take."""


def save(model: Model, path: Path) -> None:
    """Write a model.

    Raises:
        InputError: the file cannot be written.
        MeasurementError: it could have been, and failed.

    """
    check_named(path)
    header = {
        "format": FORMAT,
        "model": model.name,
        "types": list(model.types),
        "mixes": list(model.known.mixes),
        "origin": dict(model.origin),
    }
    arrays: dict[str, Any] = {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "cells": np.array(model.cells, dtype=np.int64).reshape(-1, 2),
        "rates": model.known.rates,
        "targets": model.known.targets,
        "errors": model.known.errors,
    }
    for part, state in (
        ("intensity", model.intensity.state()),
        ("placement", model.placement.state()),
        ("patterns", model.patterns),
        ("write_bytes", _sizes_state(model.write_bytes)),
        ("drift", {} if model.drift is None else model.drift.state()),
        ("growth", {} if model.growth is None else model.growth.state()),
    ):
        arrays.update({f"{part}.{name}": array for name, array in state.items()})
    try:
        with replacing(path) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise MeasurementError(f"{path} cannot be written: {error.strerror or error}") from None


def load(path: Path) -> Model:
    """Read a model.

    Raises:
        InputError: there is none, or it is damaged, or of another version.

    """
    try:
        content = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"{path}: no model: {error.strerror or error}") from None
    try:
        return _model(_arrays(content))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except KeyError as error:
        raise InputError(f"{path}: this is no whole model: {error} is missing") from None
    except Exception as error:  # noqa: BLE001 - whatever damage does to numpy, zip or JSON
        raise InputError(f"{path}: this is no whole model: {error or type(error).__name__}") from None


def _arrays(content: bytes) -> dict[str, NDArray[Any]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        whole = sum(member.file_size for member in archive.infolist())
    if whole > MOST_BYTES:
        raise ValueError(f"its arrays take {whole:,} bytes; allowed: {MOST_BYTES:,}")
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _model(arrays: dict[str, NDArray[Any]]) -> Model:
    header = json.loads(expect(arrays, "header", (None,), "u").tobytes())
    if header["format"] != FORMAT:
        raise ValueError(f"the format is {header['format']!r}; allowed: {FORMAT}")
    intensity, placement = halves(header["model"])
    types = [str(name) for name in header["types"]]
    cells = [Cell(*map(int, cell)) for cell in expect(arrays, "cells", (None, 2), "i")]
    rates = expect(arrays, "rates", (None, len(types)))
    mixes = [str(name) for name in header["mixes"]]
    errors = expect(arrays, "errors", (None, len(VALIDATED)))
    known = Known(rates, expect(arrays, "targets", (len(mixes),)), mixes, errors)
    expect(arrays, "rates", (len(mixes), len(types)))
    intensity.restore(_part(arrays, "intensity"))
    placement.restore(_part(arrays, "placement"))
    model = Model(
        header["model"],
        intensity,
        placement,
        types,
        cells,
        _sizes(_part(arrays, "write_bytes")),
        known,
        dict(header["origin"]),
        _part(arrays, "patterns"),
        Drift.restored(drift, len(cells)) if (drift := _part(arrays, "drift")) else None,
        Growth.restored(growth, cells, len(types)) if (growth := _part(arrays, "growth")) else None,
    )
    if model.growth is None and any(cell.segment >= NEAR for cell in cells):
        raise ValueError("cells are counted from the ends of relations, and no growth says where these are")
    mean, weights, placed = model.predict(rates.mean(axis=0))
    if mean.shape != (2,) or weights.shape != (2, len(placed)):
        raise ValueError("its parts do not fit each other")
    return model


def _part(arrays: dict[str, NDArray[Any]], part: str) -> dict[str, NDArray[Any]]:
    return {
        name.removeprefix(f"{part}."): array for name, array in arrays.items() if name.startswith(f"{part}.")
    }


def _sizes_state(sizes: WriteSizes) -> State:
    found = [(*key, len(kept)) for key, kept in sizes.found.items()]
    return {
        "relation": sizes.relation,
        "found": np.array(found, dtype=np.int64).reshape(-1, 3),
        "bytes": np.concatenate([np.zeros(0, np.uint32), *sizes.found.values()]),
    }


def _sizes(state: State) -> WriteSizes:
    found = expect(state, "found", (None, 3), "i")
    if (found[:, 2] < 1).any():
        raise ValueError("a relation has no sizes of its writes")
    ends = np.cumsum(found[:, 2])
    whole = expect(state, "bytes", (int(ends[-1]) if len(ends) else 0,), "u")
    parts = np.split(whole.astype(np.uint32), ends[:-1])
    keys = [(int(relation), int(size)) for relation, size, _ in found]
    return WriteSizes(expect(state, "relation", (None,), "i"), dict(zip(keys, parts, strict=True)))
