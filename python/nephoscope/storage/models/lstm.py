"""The paper's model of Y (CDSBen section 4.2): an LSTM that foretells a second from the one before it.

As in the text: two two-layer nets make the first states c and h of X; stacked LSTM layers with skip connections
take the requests of the second before and give the change to the next; a linear layer brings it to the streams; a
penalty on the kernels of the last layer; a three-layer net foretells the first second; mean absolute error, Adam at
1e-4. The paper unrolls 5 layers of 1,024 units: settings here, and smaller by default. What the text leaves open, and
how it is read here: each layer has its own embedding of X; a window of ``window`` seconds is learned with the captured
value of each second before; requests and X are divided by their training means; both streams are foretold together.
Foretelling is recursive and draws nothing: a run's forecast is the same each time.

Fitting takes JAX and optax (the extra ``neural``); a model that was read from a file needs numpy alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nephoscope.storage.models.base import Intensity, expect, in_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from nephoscope.storage.models.base import State, Training, Vector

    Weights = dict[str, Any]
    """Arrays by name, of numpy or JAX."""

_SEED = 5
_PENALTY = 1e-4
_RATE = 1e-4
_BATCH = 32
_FEWEST = 2


class LstmIntensity(Intensity):
    """The paper's recurrent network; ``window`` in seconds, ``steps`` of Adam."""

    SETTINGS: ClassVar[Mapping[str, int]] = {"layers": 2, "units": 64, "window": 50, "steps": 4000}

    def __init__(
        self,
        layers: int = SETTINGS["layers"],
        units: int = SETTINGS["units"],
        window: int = SETTINGS["window"],
        steps: int = SETTINGS["steps"],
    ) -> None:
        """Set its size and how long it learns."""
        self.layers, self.units = max(1, layers), max(1, units)
        self.window, self.steps = max(_FEWEST, window), max(1, steps)
        self.weights: Weights = {}
        self.scale_x: Vector = np.ones(1)
        """What transactions a second are divided by, by type: (T,)."""
        self.scale_y: Vector = np.ones(2)
        """What requests a second are divided by, by stream: (2,)."""
        self._foretold: dict[tuple[bytes, int], Vector] = {}
        """The last course that was asked for: it is the same at each draw, and a large network takes seconds for it."""

    def fit(self, data: Training) -> None:
        """Learn."""
        self._foretold = {}
        self.scale_x = np.maximum(data.rates.mean(axis=0), _TINY)
        self.scale_y = np.maximum(data.means.mean(axis=0), _TINY)
        x, y = self._windows(data)
        random = np.random.default_rng(_SEED)
        begun = _begin(random, len(data.types), self.units, self.layers)
        self.weights = _learned(begun, x, y, layers=self.layers, steps=self.steps, random=random)

    def _windows(self, data: Training) -> tuple[Vector, Vector]:
        """Cut runs into windows: X of their run, (n, T), and requests, (n, window, 2). None reaches across runs."""
        length = min(self.window, int(data.seconds.min()))
        step = max(1, length // 5)
        x, y = [], []
        for rates, of_run in zip(data.rates, data.y, strict=True):
            for start in range(0, of_run.shape[1] - length + 1, step):
                x.append(rates / self.scale_x)
                y.append(of_run[:, start : start + length].T / self.scale_y)
        return np.array(x), np.array(y)

    def _course(self, rates: Vector, seconds: int) -> Vector:
        """Foretell requests a second one from the other: (S, 2)."""
        asked = (rates.tobytes(), seconds)
        if asked not in self._foretold:
            self._foretold = {asked: self._unrolled(rates, seconds)}
        return self._foretold[asked]

    def _unrolled(self, rates: Vector, seconds: int) -> Vector:
        x = rates / self.scale_x
        states = _embed(np, self.weights, x[None], self.layers)
        value = _first(np, self.weights, x[None])
        course = np.empty((seconds, 2))
        for second in range(seconds):
            # A network may run away: what it says is held to what a storage tier could do.
            value = np.clip(value, 0, _MOST)
            course[second] = value[0]
            change, states = _step(np, self.weights, value, states, self.layers)
            value = value + change
        return course * self.scale_y

    def mean(self, rates: Vector) -> Vector:
        """Foretell the mean requests a second by stream, (2,), at transactions a second by type, (T,)."""
        return np.asarray(self._course(rates, _MINUTE).mean(axis=0))

    def sample(self, rates: Vector, seconds: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Foretell the requests of S seconds by stream, (2, S), at transactions a second by type, (T,)."""
        return in_whole(self._course(rates, seconds).T, random)

    def state(self) -> State:
        """Give all that was learned."""
        sizes = np.array([self.layers, self.units, self.window, self.steps])
        return {**self.weights, "sizes": sizes, "scale_x": self.scale_x, "scale_y": self.scale_y}

    def restore(self, state: State) -> None:
        """Take it back."""
        self._foretold = {}
        sizes = expect(state, "sizes", (4,), "i")
        if (sizes < 1).any() or (sizes > _LARGEST).any():
            raise ValueError("sizes are not those of a network")
        self.layers, self.units, self.window, self.steps = map(int, sizes)
        self.scale_x = expect(state, "scale_x", (None,))
        self.scale_y = expect(state, "scale_y", (2,))
        wanted = _begin(np.random.default_rng(_SEED), len(self.scale_x), self.units, self.layers)
        self.weights = {name: expect(state, name, array.shape) for name, array in wanted.items()}


_TINY = 1e-9
_MOST = 1e4
_MINUTE = 60
_LARGEST = 10**6


def _begin(random: np.random.Generator, types: int, units: int, layers: int) -> Weights:
    """Make a network's weights: each kernel by Glorot's uniform law."""

    def kernel(into: int, out: int) -> NDArray[np.float64]:
        bound = np.sqrt(6 / (into + out))
        return random.uniform(-bound, bound, (into, out))

    weights: Weights = {}

    def dense(name: str, into: int, out: int) -> None:
        weights[f"{name}.w"], weights[f"{name}.b"] = kernel(into, out), np.zeros(out)

    for layer in range(layers):
        for part in ("c", "h"):
            dense(f"embed.{part}{layer}.0", types, units)
            dense(f"embed.{part}{layer}.1", units, units)
        # The four gates side by side: input, forget, output, cell.
        dense(f"lstm{layer}", 2 if layer == 0 else units, 4 * units)
        weights[f"lstm{layer}.u"] = kernel(units, 4 * units)
    dense("out", units, 2)
    for place, (into, out) in enumerate(((types, units), (units, units), (units, 2))):
        dense(f"first.{place}", into, out)
    return weights


def _dense(weights: Weights, name: str, value: Any) -> Any:  # noqa: ANN401 - arrays of numpy or JAX
    return value @ weights[f"{name}.w"] + weights[f"{name}.b"]


def _embed(np_: Any, weights: Weights, x: Any, layers: int) -> list[tuple[Any, Any]]:  # noqa: ANN401
    """Make the first states of each layer of X, (n, T): two layers with ReLU for each."""

    def of(name: str) -> Any:  # noqa: ANN401
        return _dense(weights, f"{name}.1", np_.maximum(_dense(weights, f"{name}.0", x), 0))

    return [(of(f"embed.c{layer}"), of(f"embed.h{layer}")) for layer in range(layers)]


def _first(np_: Any, weights: Weights, x: Any) -> Any:  # noqa: ANN401
    """Foretell the first second of X, (n, T): (n, 2)."""
    hidden = np_.maximum(_dense(weights, "first.0", x), 0)
    return _dense(weights, "first.2", np_.maximum(_dense(weights, "first.1", hidden), 0))


def _step(
    np_: Any,  # noqa: ANN401
    weights: Weights,
    value: Any,  # noqa: ANN401
    states: list[tuple[Any, Any]],
    layers: int,
) -> tuple[Any, list[tuple[Any, Any]]]:
    """Foretell the change to the next second from this one, (n, 2): (n, 2), and the new states."""
    after = []
    for layer in range(layers):
        c, h = states[layer]
        gates = _dense(weights, f"lstm{layer}", value) + h @ weights[f"lstm{layer}.u"]
        i, f, o, g = np_.split(gates, 4, axis=-1)
        c = _sigmoid(np_, f) * c + _sigmoid(np_, i) * np_.tanh(g)
        h = _sigmoid(np_, o) * np_.tanh(c)
        after.append((c, h))
        value = h if layer == 0 else value + h
    return _dense(weights, "out", value), after


def _sigmoid(np_: Any, value: Any) -> Any:  # noqa: ANN401
    return 0.5 * (np_.tanh(0.5 * value) + 1)


def _learned(
    begun: Weights, x: Vector, y: Vector, *, layers: int, steps: int, random: np.random.Generator
) -> Weights:
    """Let a network learn windows: X, (n, T), and requests, (n, window, 2)."""
    import jax  # noqa: PLC0415
    import optax  # noqa: PLC0415

    optimizer = optax.adam(_RATE)
    loss = _loss(layers)

    @jax.jit  # type: ignore[untyped-decorator, unused-ignore]
    def improve(weights: Weights, state: Any, of_x: Any, of_y: Any) -> tuple[Weights, Any]:  # noqa: ANN401
        gradient = jax.grad(loss)(weights, of_x, of_y)
        changes, state = optimizer.update(gradient, state)
        return optax.apply_updates(weights, changes), state

    weights = {name: jax.numpy.asarray(array, dtype="float32") for name, array in begun.items()}
    state = optimizer.init(weights)
    for _ in range(steps):
        batch = random.integers(len(x), size=min(_BATCH, len(x)))
        weights, state = improve(weights, state, x[batch], y[batch])
    return {name: np.asarray(array, dtype=np.float64) for name, array in weights.items()}


def _loss(layers: int) -> Callable[[Weights, Any, Any], Any]:
    import jax  # noqa: PLC0415
    from jax import numpy as jnp  # noqa: PLC0415

    def loss(weights: Weights, x: Any, y: Any) -> Any:  # noqa: ANN401
        """Mean absolute error of each second foretold from the one before, and of the first."""

        def step(states: Any, value: Any) -> tuple[Any, Any]:  # noqa: ANN401
            change, states = _step(jnp, weights, value, states, layers)
            return states, value + change

        _, found = jax.lax.scan(step, _embed(jnp, weights, x, layers), jnp.swapaxes(y, 0, 1)[:-1])
        error = jnp.mean(jnp.abs(found - jnp.swapaxes(y, 0, 1)[1:]))
        first = jnp.mean(jnp.abs(_first(jnp, weights, x) - y[:, 0]))
        last = layers - 1
        penalty = sum(jnp.sum(weights[f"lstm{last}.{kernel}"] ** 2) for kernel in ("w", "u"))
        return error + first + _PENALTY * penalty

    return loss
