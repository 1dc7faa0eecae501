"""Against pgbench: what a transaction costs the client, and how late it starts."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from benches.client import load_spec, measure
from benches.costs import ROUNDS, SECONDS, Question, by_turns, cost, exchange, median, ratios, told, ways
from benches.results import Result, at_most, result
from benches.servers import BIN, SCALE, Server, load_data, pgbench_tables, server

if TYPE_CHECKING:
    from collections.abc import Iterator

_SALES_SCALE = 0.1
_SCRIPT = Path(__file__).parent / "order_payment.sql"


def pgbench(on: Server, sessions: int, *arguments: str) -> dict[str, float]:
    """Run pgbench on a thread for some seconds; give its processor time per transaction."""
    command = [str(BIN / "pgbench"), "-n", "-M", "prepared", "-c", str(sessions), "-j", "1"]
    used = on.timed([*command, "-T", f"{SECONDS:g}", *arguments])
    line = next(line for line in used.output.splitlines() if "actually processed" in line)
    count = int(line.split(":")[1].split("/")[0])
    return cost(used, count)


def point_select(folder: Path) -> Iterator[Result]:
    """Client CPU per point select against pgbench, on one thread: Lua, histograms and error handling on."""
    bars = {"epoll": 0.95, "uring": 0.75}
    user: list[float] = []
    with server(folder) as on:
        pgbench_tables(on)
        spec = load_spec(on.url, "tpcb", SCALE, "SELECT")
        for sessions in (8, 32, 128):
            theirs, ours = by_turns(spec, sessions, lambda sessions: pgbench(on, sessions, "-S"))
            for io, found in ours.items():
                name = f"client CPU per point select, {sessions} sessions, {io}"
                peer = "pgbench -S -M prepared"
                yield result(name, peer, ratios(found, theirs), at_most(bars[io]), told(found, theirs))
                user += [entry["user_us"] for entry in found]
    yield result("user time per point select", "1 µs", user, at_most(1.0))


def floor(folder: Path) -> Iterator[Result]:
    """Client CPU per point select against the bare exchange of the same bytes by a minimal client."""
    bars = {8: 1.25, 32: 1.15, 128: 1.15}
    user: list[float] = []
    io = ways()[-1]
    with server(folder) as on:
        pgbench_tables(on)
        spec = load_spec(on.url, "tpcb", SCALE, "SELECT")
        for sessions, bar in bars.items():
            theirs, ours = by_turns(spec, sessions, lambda sessions: _exchange(on, sessions), [io])
            found = ours[io]
            name = f"client CPU per point select, {sessions} sessions, {io}, against the floor"
            detail = f"{told(found, theirs)}; {median(theirs, 'each'):.1f} answers a wait of the peer's"
            peer = "the bare exchange by epoll"
            yield result(name, peer, ratios(found, theirs), at_most(bar), detail)
            user += [entry["user_us"] for entry in found]
    yield result(f"user time per point select, {io}", "1 µs", user, at_most(0.8))


_POINT_SELECT = b"SELECT abalance FROM pgbench_accounts WHERE aid = $1"
_QUESTION = bytes.fromhex(
    # Bind of s0: one parameter in binary, a number of four bytes; one column in binary.
    "42 0000001a 00 733000 0001 0001 0001 00000004 00000001 0001 0001"
    # Execute, Sync.
    "45 00000009 00 00000000 53 00000004"
)
_READY = bytes.fromhex("5a 00000005 49")


def _exchange(on: Server, sessions: int) -> dict[str, float]:
    """Have the minimal client exchange the bytes of point selects for some seconds."""
    with contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(sessions):
            connection = stack.enter_context(psycopg.connect(on.url, autocommit=True)).pgconn
            connection.prepare(b"s0", _POINT_SELECT)
            sockets.append(connection.socket)
        offset = _QUESTION.index(b"\0\0\0\4\0\0\0\1") + 4
        return exchange(sockets, Question(_QUESTION, _READY, offset, "big", 100_000 * SCALE))


def order_payment(folder: Path) -> Iterator[Result]:
    """Client CPU of Order Payment: in the same five round trips as pgbench, and pipelined in two flushes."""
    with server(folder) as on:
        load_data(on.url, folder, "sales", _SALES_SCALE)
        io = ways()[-1]
        spec = load_spec(on.url, "sales", _SALES_SCALE, "1:0:0:0")
        theirs: list[dict[str, float]] = []
        ours: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for _ in range(ROUNDS):
            theirs.append(pgbench(on, 32, "-f", str(_SCRIPT)))
            for pipeline, found in ours.items():
                level = {"concurrency": 32}
                load = {**spec, "io": io, "pipeline": pipeline, "level": level, "seconds": SECONDS}
                load["mix"] = {"order_payment": 1}
                found.append(measure(load))
    for pipeline, found in ours.items():
        how = "pipelined in 2 flushes" if pipeline else "5 round trips"
        name = f"client CPU per Order Payment, {how}, {io}"
        bar = at_most(0.4 if pipeline else 0.8)
        yield result(name, "pgbench -f, 5 round trips", ratios(found, theirs), bar, told(found, theirs))


def lag(folder: Path) -> Iterator[Result]:
    """Schedule lag at a rate, 32 sessions: how late a transaction starts that a free session waited for."""
    with server(folder) as on:
        pgbench_tables(on)
        for rate, p50, p99 in ((2_000, 35.0, 100.0), (20_000, 30.0, None)):
            for io in ways():
                spec = load_spec(on.url, "tpcb", SCALE, "SELECT", io=io)
                spec["tenants"][0]["sessions"] = 32
                ours, theirs = [], []
                for _ in range(3):
                    theirs.append(_pgbench_lag(on, folder, rate))
                    found = measure({**spec, "level": {"rate": rate}, "seconds": SECONDS})
                    ours.append({share: ns / 1000 for share, ns in found["lag_ns"].items()})
                detail = (
                    f"p50 {median(ours, '0.5'):.0f} µs, p99 {median(ours, '0.99'):.0f} µs; pgbench p50 "
                    f"{median(theirs, '0.5'):.0f} µs, p99 {median(theirs, '0.99'):.0f} µs"
                )
                name = f"schedule lag at {rate:,}/s, {io}"
                medians = [entry["0.5"] / p50 for entry in ours]
                yield result(f"{name}: p50", f"{p50:g} µs", medians, at_most(1.0), detail)
                tails = [
                    entry["0.99"] / (p99 or peer["0.99"]) for entry, peer in zip(ours, theirs, strict=True)
                ]
                yield result(f"{name}: p99", f"{p99:g} µs" if p99 else "pgbench's p99", tails, at_most(1.0))


def _pgbench_lag(on: Server, folder: Path, rate: int) -> dict[str, float]:
    """Run pgbench at a rate; give the median and p99 of its schedule lag in µs, from its log."""
    # A server that dropped its privileges owns the folder; pgbench writes beside it.
    prefix = folder / "lag"
    for old in folder.glob("lag.*"):
        old.unlink()
    pgbench(on, 32, "-S", "-R", str(rate), "-l", "--log-prefix", str(prefix))
    lags = sorted(
        float(line.split()[6]) for log in folder.glob("lag.*") for line in log.read_text().splitlines()
    )
    # The first second is warm-up here as it is for the load that this is compared with.
    return {share: lags[int(float(share) * (len(lags) - 1))] for share in ("0.5", "0.99")}
