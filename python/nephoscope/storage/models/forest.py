"""The paper's model of Z (CDSBen section 4.3): a random forest that foretells each cell's share by itself.

Fitting takes scikit-learn (the extra ``forest``); a forest that was read from a file needs numpy alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nephoscope.storage.models.base import Placement, expect, shares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from nephoscope.storage.models.base import State, Training, Vector

_SEED = 1200


class ForestPlacement(Placement):
    """Regression trees from (transactions a second by type, segment, size) to a cell's share, of each stream.

    The paper weighs cells by their sizes before fitting, and does not say by what; here no cell is weighed.
    """

    SETTINGS: ClassVar[Mapping[str, int]] = {"trees": 1200, "leaves": 1024}

    def __init__(self, trees: int = SETTINGS["trees"], leaves: int = SETTINGS["leaves"]) -> None:
        """Set how many trees there are and how many leaves one may have; 0 for as many as there are examples."""
        self.trees, self.leaves = max(1, trees), max(0, leaves)
        self.cells: Vector = np.zeros((0, 2))
        """Segment and size of the C cells: (C, 2)."""
        self.present: Vector = np.zeros(2)
        """1 for a stream that has requests: (2,)."""
        self.nodes: list[dict[str, NDArray[Any]]] = []
        """By stream: ``roots``, where each tree begins, (B,); and of each node (N,) the two below it (``left``,
        ``right``, itself for a leaf), the ``feature`` it asks for, its ``threshold`` and its ``value``."""

    def fit(self, data: Training) -> None:
        """Learn."""
        from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415

        self.cells = np.array(data.cells, dtype=float)
        self.present = (data.z.sum(axis=(0, 2)) > 0).astype(float)
        asked = np.concatenate([_asked(rates, self.cells) for rates in data.rates])
        self.nodes = []
        for stream in range(2):
            forest = RandomForestRegressor(
                n_estimators=self.trees if self.present[stream] else 1,
                max_features=0.5,
                max_leaf_nodes=self.leaves if self.leaves > 1 else None,
                n_jobs=-1,
                random_state=_SEED,
            )
            forest.fit(asked, shares(data.z[:, stream]).ravel())
            self.nodes.append(_flat(forest.estimators_))

    def weights(self, rates: Vector) -> Vector:
        """Foretell each cell's share by stream, (2, C), at transactions a second by type, (T,)."""
        asked = _asked(rates, self.cells)
        found = np.array([_mean(nodes, asked) for nodes in self.nodes])
        return shares(np.maximum(found, 0) * self.present[:, None])

    def state(self) -> State:
        """Give all that was learned."""
        flat = {
            f"{name}{stream}": kept for stream, nodes in enumerate(self.nodes) for name, kept in nodes.items()
        }
        return {"cells": self.cells, "present": self.present, **flat}

    def restore(self, state: State) -> None:
        """Take it back."""
        self.cells = expect(state, "cells", (None, 2))
        self.present = expect(state, "present", (2,))
        self.nodes = [_checked(state, stream) for stream in range(2)]


def _asked(rates: Vector, cells: Vector) -> Vector:
    """Give the examples of all cells at transactions a second by type, (T,): (C, T + 2)."""
    return np.column_stack([np.repeat(rates[None], len(cells), axis=0), cells])


def _flat(trees: list[Any]) -> dict[str, NDArray[Any]]:
    """Lay trees one behind the other."""
    parts: dict[str, list[NDArray[Any]]] = {}
    roots, first = [], 0
    for estimator in trees:
        tree = estimator.tree_
        leaf = tree.children_left < 0
        itself = np.arange(tree.node_count)
        roots.append(first)
        for name, kept in (
            ("left", np.where(leaf, itself, tree.children_left) + first),
            ("right", np.where(leaf, itself, tree.children_right) + first),
            ("feature", np.where(leaf, 0, tree.feature)),
            ("threshold", tree.threshold),
            ("value", tree.value[:, 0, 0]),
        ):
            whole = name in {"left", "right", "feature"}
            parts.setdefault(name, []).append(kept.astype(np.int32 if whole else np.float64))
        first += tree.node_count
    return {
        "roots": np.array(roots, dtype=np.int32),
        **{name: np.concatenate(kept) for name, kept in parts.items()},
    }


def _mean(nodes: Mapping[str, NDArray[Any]], asked: Vector) -> Vector:
    """Give the mean of all trees' answers: (C, F) gives (C,)."""
    # Trees compare in single precision.
    questions = asked.astype(np.float32)
    rows = np.arange(len(questions))[:, None]
    total = np.zeros(len(questions))
    for some in np.array_split(nodes["roots"], max(1, len(nodes["roots"]) // _AT_ONCE)):
        at = np.repeat(some[None], len(questions), axis=0)
        while True:
            goes_left = questions[rows, nodes["feature"][at]] <= nodes["threshold"][at]
            below = np.where(goes_left, nodes["left"][at], nodes["right"][at])
            if (below == at).all():
                break
            at = below
        total += nodes["value"][at].sum(axis=1)
    return np.asarray(total / len(nodes["roots"]))


_AT_ONCE = 100
"""Trees that are asked together: bounds memory."""


def _checked(state: State, stream: int) -> dict[str, NDArray[Any]]:
    value = expect(state, f"value{stream}", (None,))
    nodes: dict[str, NDArray[Any]] = {
        "value": value,
        "threshold": expect(state, f"threshold{stream}", (len(value),)),
    }
    itself = np.arange(len(value))
    for name in ("left", "right"):
        below = nodes[name] = expect(state, f"{name}{stream}", (len(value),), "i")
        # Nodes below come behind: so no path is without end.
        if (below < itself).any() or (below >= len(value)).any():
            raise ValueError(f"{name}{stream} is not that of trees")
    if ((nodes["left"] == itself) != (nodes["right"] == itself)).any():
        raise ValueError(f"left{stream} and right{stream} are not those of trees")
    nodes["feature"] = expect(state, f"feature{stream}", (len(value),), "i")
    nodes["roots"] = expect(state, f"roots{stream}", (None,), "i")
    if not len(nodes["roots"]) or (nodes["roots"] < 0).any() or (nodes["roots"] >= len(value)).any():
        raise ValueError(f"roots{stream} are not those of trees")
    return nodes
