"""The evaluator ``consistency``: a planted law of staleness, planted rates of violations and long forks, and none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from nephoscope.calibration.base import Case, Reading
from nephoscope.calibration.planted import Planted
from nephoscope.collectors import cassandra
from nephoscope.errors import MeasurementError
from nephoscope.statistics import half_width
from nephoscope.systems.cassandra.install import is_installed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.calibration.base import Bench, Measured
    from nephoscope.settings.base import Role
    from nephoscope.systems.base import System

_QUICK = "latency=constant(20us)"
_SIGMAS = 4.0
"""How far a share may be from the planted one, in standard errors of as many independent draws as there were."""


def _situation(
    bench: Bench,
    planted: tuple[str, tuple[str, ...]],
    seconds: float,
    **settings: Any,  # noqa: ANN401 - the keys of the evaluator's table
) -> Mapping[str, Any]:
    """Measure consistency of an idle database whose nodes have something planted; give what was found."""
    name, (primary, replicas) = bench.name(), planted
    measured = bench.measure(
        {
            "provider": "url",
            "rw": f"sim://{name}?{_QUICK}{primary}",
            "ro": [f"sim://{name}?{_QUICK}{replica}" for replica in replicas],
        },
        {"evaluator": "consistency", "warmup": 0.5, "duration": seconds, **settings},
    )
    (situation,) = measured.scores["details"]["consistency"]["0"]["situations"]
    found: Mapping[str, Any] = situation
    return found


def _share(figure: str, planted: float, found: Mapping[str, Any], draws: float) -> Reading:
    """Expect a share of as many draws."""
    error = math.sqrt(planted * (1 - planted) / max(draws, 1))
    return Reading(
        figure=figure,
        planted=planted,
        read=found["share"],
        absolute=_SIGMAS * error,
        stated=half_width(found["ci95"]),
    )


_MEAN_MS = 20.0


def _law(bench: Bench) -> Iterator[Reading]:
    """Expect the mean of an exponential law, and its curve P(stale | t)."""
    replicas = tuple(f"&lag=exponential({_MEAN_MS:g}ms)&seed={seed}" for seed in (1, 2))
    found = _situation(
        bench,
        ("", replicas),
        bench.seconds(30, 15),
        readers=4,
        read_interval=0.002,
        writers=8,
        write_interval=0.4,
        limit=5,
    )
    visible = found["visible"][0]
    yield Reading(
        figure="mean time until visible",
        unit="ms",
        planted=_MEAN_MS,
        read=visible["mean_ms"],
        absolute=_SIGMAS * _MEAN_MS / math.sqrt(visible["count"]) + 1.0,
        stated=(half_width(visible["mean_ci95"]) or 0.0) + visible["half_width_mean_ms"],
    )
    wanted = (1.0, 10.0, 31.6)
    for after_ms in wanted:
        point = min(found["curve"], key=lambda point: abs(point["after_ms"] - after_ms))
        begin = point["after_ms"]
        end = begin * 10 ** (1 / 8)
        planted = _MEAN_MS * (math.exp(-begin / _MEAN_MS) - math.exp(-end / _MEAN_MS)) / (end - begin)
        # Reads after one write, of one replica, are as one draw.
        draws = min(point["reads"], visible["count"])
        yield _share(f"P(stale), {begin:.3g} ms after a write", planted, point, draws)
    yield Reading(figure="reads that went back", planted=0, read=_violations(found, "monotonic_reads"))


def _checked(found: Mapping[str, Any], guarantee: str) -> Mapping[str, Any]:
    """Give what checks of a guarantee came to. Raises ``MeasurementError`` where there were none."""
    if guarantee not in found["guarantees"]:
        raise MeasurementError(f"{guarantee.replace('_', ' ')} could not be checked")
    of: Mapping[str, Any] = found["guarantees"][guarantee]
    return of


def _violations(found: Mapping[str, Any], guarantee: str) -> int:
    return int(_checked(found, guarantee)["violations"])


_OLD = 0.02


def _rates(bench: Bench) -> Iterator[Reading]:
    """Expect the rate at which rows are read as they were before, in each guarantee."""
    found = _situation(
        bench,
        (f"&old_read={_OLD}", ()),
        bench.seconds(20, 10),
        readers=4,
        read_interval=0.002,
        write_interval=1.0,
    )
    # What is written after the register shows that it has gone back, unless it has gone back as well.
    alone = _OLD * (1 - _OLD)
    rates = {"monotonic_reads": _OLD, "read_your_writes": _OLD}
    rates |= {"monotonic_writes": alone, "writes_follow_reads": alone}
    for guarantee, planted in rates.items():
        of = _checked(found, guarantee)
        yield _share(f"violations of {guarantee.replace('_', ' ')}", planted, of, of["checks"])


def _forks(bench: Bench) -> Iterator[Reading]:
    """Expect two replicas that each have a write at once or later to see half of what they see in opposite orders."""
    replicas = tuple(f"&lag=bimodal(0ms,30ms,0.5)&seed={seed}" for seed in (5, 6))
    settings = {"readers": 4, "read_interval": 0.002, "write_interval": 0.1, "limit": 5, "read_from": "ro"}
    found = _situation(bench, ("", replicas), bench.seconds(40, 20), writers=4, long_fork=True, **settings)
    of = _checked(found, "long_fork")
    yield _share("long forks", 0.5, of, of["checks"])
    steady = _situation(
        bench,
        # The two writes of a round are commits at different times, or no read would show one alone.
        ("&latency=uniform(1ms,20ms)", ("&lag=constant(1ms)", "&lag=constant(20ms)")),
        bench.seconds(10, 5),
        writers=4,
        long_fork=True,
        **settings,
    )
    yield Reading(figure="long forks where there are none", planted=0, read=_violations(steady, "long_fork"))


_AT_ONCE = ("", ("&lag=constant(0s)", "&lag=constant(0s)"))
"""A store whose replicas have each write at once."""


def _linearizable(bench: Bench) -> Iterator[Reading]:
    """Expect nothing of a store whose replicas have each write at once."""
    found = _situation(
        bench,
        _AT_ONCE,
        bench.seconds(20, 10),
        writers=2,
        write_interval=0.05,
        limit=5,
        routing="round_robin",
    )
    yield Reading(figure="stale reads", planted=0, read=found["stale"]["hits"])
    for guarantee in ("monotonic_reads", "read_your_writes", "monotonic_writes", "writes_follow_reads"):
        figure = f"violations of {guarantee.replace('_', ' ')}"
        yield Reading(figure=figure, planted=0, read=_violations(found, guarantee))
    reads = found["reads"]
    accounted = reads["answered"] + reads["missed"] + reads["failed"]
    yield Reading(figure="reads dropped", planted=0, read=reads["due"] - accounted)


_MANY = 10_000_000


def _many(bench: Bench) -> Iterator[Reading]:
    """Expect nothing in ten million checks either, however long they take."""
    checks = violations = stale = 0
    while checks < _MANY:
        found = _situation(bench, _AT_ONCE, 20, readers=100, writers=4, write_interval=0.05, limit=5)
        checks += sum(of["checks"] for of in found["guarantees"].values())
        violations += sum(of["violations"] for of in found["guarantees"].values())
        stale += found["stale"]["hits"]
    yield Reading(figure=f"violations in {_MANY:,} checks and more", planted=0, read=violations)
    yield Reading(figure="stale reads", planted=0, read=stale)


_LATE_MS = 200.0
_LATE_SLACK_MS = 15.0
"""What a write takes until it is acknowledged, and until the late node has it once it has come."""
_WRITES_EVERY_S = 1.0


class FarApart(Planted):
    """A ring that is written at its first node and read at its last, which gets everything late."""

    def start(self) -> System:
        """Start the ring, and tell the two."""
        system = super().start()
        first, *_, last = cassandra.nodes(system.rw[0]).values()
        return system.model_copy(update={"rw": (first,), "ro": (last,)})

    def endpoints(self, role: Role, tenant: str | None = None) -> tuple[str, ...]:
        """Tell the one of a role."""
        first, *_, last = cassandra.nodes(super().endpoints("rw", tenant)[0]).values()
        return (first,) if role == "rw" else (last,)


def read_late_node(measured: Measured, late_ms: float) -> Iterator[Reading]:
    """Expect a node that gets every write so late to be as stale at ONE, and not at QUORUM, which asks another one.

    The run has written at QUORUM, at another node, every second.
    """
    situations = measured.scores["details"]["consistency"]["0"]["situations"]
    one, quorum = (next(of for of in situations if of["level"] == level) for level in LATE_LEVELS)
    visible = one["visible"][0]
    yield Reading(
        figure="time until visible at ONE, p50",
        unit="ms",
        planted=late_ms,
        read=visible["p50_ms"],
        absolute=_LATE_SLACK_MS,
        stated=visible["half_width_ms"],
    )
    stale = one["stale"]
    yield Reading(
        figure="stale reads at ONE",
        planted=late_ms / 1000 / _WRITES_EVERY_S,
        read=stale["share"],
        absolute=0.03,
        stated=half_width(stale["ci95"]),
    )
    yield Reading(figure="reads at ONE that went back", planted=0, read=_violations(one, "monotonic_reads"))
    yield Reading(figure="stale reads at QUORUM", planted=0, read=quorum["stale"]["hits"])
    for guarantee in ("monotonic_reads", "read_your_writes"):
        figure = f"violations of {guarantee.replace('_', ' ')} at QUORUM"
        yield Reading(figure=figure, planted=0, read=_violations(quorum, guarantee))
    yield Reading(
        figure="QUORUM was read", planted="yes", read="yes" if quorum["reads"]["answered"] else "no"
    )


LATE = "a late node of a ring of Cassandra, read at ONE and at QUORUM"
LATE_LEVELS = ("read ONE write QUORUM", "QUORUM")


def late_measure(seconds: float) -> dict[str, Any]:
    """Make the entry of ``[[measure]]`` that :func:`read_late_node` reads."""
    return {
        "evaluator": "consistency",
        "levels": list(LATE_LEVELS),
        "readers": 4,
        "read_interval": 0.005,
        "write_interval": _WRITES_EVERY_S,
        "read_timeout": 5.0,
        "warmup": 1.0,
        "duration": seconds,
    }


def _late(bench: Bench) -> Iterator[Reading]:
    measured = bench.measure(
        {
            "provider": "embedded-cassandra",
            "data": str(bench.folder / "cassandra"),
            "replica_delay": f"{_LATE_MS:g}ms",
            # A node that has a row reads it itself, however slow it has been.
            "settings": {"dynamic_snitch": False},
        },
        late_measure(bench.seconds(30, 10)),
        provider=lambda inner: FarApart(inner, {}),
        workload={"name": "ycsb"},
    )
    yield from read_late_node(measured, _LATE_MS)


CASES = (
    Case("consistency", "a law of staleness on sim", _law),
    Case("consistency", "rates of violations on sim", _rates),
    Case("consistency", "long forks on sim", _forks, 120.0),
    Case("consistency", "a linearizable store on sim", _linearizable),
    # A ring takes most of a minute to start, and not every machine has Cassandra.
    *((Case("consistency", LATE, _late, 300.0, in_short=False),) if is_installed() else ()),
    Case("consistency", "a linearizable store on sim, for long", _many, 240.0, in_short=False),
)
