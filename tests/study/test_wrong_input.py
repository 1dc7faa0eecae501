"""Wrong input: one message that says what, where and what is allowed; exit code 2; nothing is touched before it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commands import call
from nephoscope.scoring.prices import built_in_price_books
from nephoscope.study.packaged import packaged_workloads
from nephoscope.systems.url import Url
from sample_studies import phases, sim_study, throughput, write_study

TIME = 'expected a length of time such as "250ms", "30s", "5m" or a number of seconds'
BOOKS = ", ".join(built_in_price_books())
MIXES = (
    "its mixes are TPCB, SIMPLE, SELECT, and a ratio"
    " such as 15:5:80 stands for tpcb_like, simple_update, select_only"
)
PHASE_KEYS = "name, kind, duration, concurrency, think, rate, arrivals, mix, access, streams, transition"

SCHEMES = (
    "postgresql://, mysql://, sqlite://, redis://, cassandra://, dynamodb://, s3://, simpledb://, hbase://, "
    "mongodb://, noop://, sim://"
)

PROVIDERS = (
    "providers are embedded-cassandra, embedded-mariadb, embedded-postgres, embedded-redis, embedded-serverless, "
    "embedded-sqlite, sim, url"
)

WRONG = {
    # names of keys and tables
    "workload.scael=3": "workload.scael: there is no such key; allowed are name, scale, scales, data_seed, "
    "options, external, "
    "load, load_threads, prewarm",
    "stduy.name='x'": "stduy: there is no such table; tables are study, tenants, workload, load, cost, "
    "score, system, measure, factor, experiment, reference",
    "system.port=3": "system.port: there is no such key; allowed are provider, resources, metrics, rw, ro, "
    "hooks",
    "load.retry.backof=1": "load.retry.backof: there is no such key; allowed are attempts, backoff, backoff_max, "
    "classes",
    "cost.book=1": "cost.book: there is no such key; allowed are price_book, starred, held, usage",
    "score.weights={Q=1}": "score.weights.Q: input should be 'P', 'E1', 'R', 'F', 'E2', 'C' or 'T'; it is 'Q'",
    "cost.held='0s'": "cost.held: resources that cost something are held for longer than 0; it is '0s'",
    "score.weights={P=-1}": "score.weights.P: input should be greater than or equal to 0; it is -1",
    # types
    "study=3": "study: expected a table",
    "load=[]": "load: expected a table",
    "load.retry=3": "load.retry: input should be a table; it is 3",
    "workload.scale='big'": "workload.scale: input should be a valid number; it is 'big'",
    "workload.scale=true": "workload.scale: input should be a valid number; it is True",
    "workload.scale=[1]": "workload.scale: input should be a valid number",
    "workload.external='maybe'": "workload.external: input should be a valid boolean; it is 'maybe'",
    "workload.options={products=[1]}": "workload.options.products: input should be a valid string or a valid boolean "
    "or a valid integer or a valid number",
    "load.threads=1.5": "load.threads: input should be a valid integer; it is 1.5",
    "load.threads='2'": "load.threads: input should be a valid integer; it is '2'",
    "load.on_connect=true": "load.on_connect: input should be a valid list; it is True",
    "system.rw=true": "system.rw: input should be a valid list; it is True",
    # numbers
    "workload.scale=0": "workload.scale: input should be greater than 0; it is 0",
    "workload.scale=-1": "workload.scale: input should be greater than 0; it is -1",
    "workload.scale=1e9": "workload.scale: input should be less than or equal to 1000000; it is 1000000000.0",
    "workload.scale=inf": "workload.scale: input should be a finite number; it is inf",
    "workload.scale=nan": "workload.scale: input should be a finite number; it is nan",
    "study.seed=-1": "study.seed: input should be greater than or equal to 0; it is -1",
    "load.threads=0": "load.threads: input should be greater than or equal to 1; it is 0",
    "load.threads=257": "load.threads: input should be less than or equal to 256; it is 257",
    "load.sessions=1000000": "load.sessions: input should be less than or equal to 100000; it is 1000000",
    "system.resources={vcores=-1,memory_gb=1,storage_gb=1}": "system.resources.vcores: input should "
    "be greater than or "
    "equal to 0; it is -1",
    # times
    "load.interval='soon'": f"load.interval: {TIME}; it is 'soon'",
    "load.interval='1ms'": "load.interval: an interval must be from 50ms to 1h; it is '1ms'",
    "load.statement_timeout=0": "load.statement_timeout: a time limit must be from 1ms to 24h: no "
    "wait is without one; "
    "it is 0",
    "load.retry.classes=['deadlocks']": "load.retry.classes.0: a class of errors is one of serialization, deadlock, "
    "lock_timeout, connection_lost, read_only, shutting_down, statement_timeout, constraint, throttled, "
    "other; it is 'deadlocks'",
    "load.connect_timeout='2h'": "load.connect_timeout: a time limit must be from 1ms to 1h: no wait is without one; "
    "it is '2h'",
    "load.drain_timeout=-1": "load.drain_timeout: a length of time must be 0 or more, and finite; it is -1",
    # words
    "study.name='a/b'": "study.name: string should match pattern '^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$'; it is 'a/b'",
    "workload.load='often'": "workload.load: input should be 'missing', 'never' or 'always'; it is 'often'",
    "load.statement_mode='fast'": "load.statement_mode: input should be 'simple', 'extended' or "
    "'prepared'; it is 'fast'",
    "load.isolation='snapshot'": "load.isolation: input should be 'read uncommitted', 'read committed', "
    "'repeatable read' or 'serializable'; it is 'snapshot'",
    "system.provider='aws'": f"system.provider: it is 'aws'; {PROVIDERS}",
    "system.rw=[]": "system.rw: it needs at least one entry",
    "measure=[]": "measure: a study measures something: it needs at least one [[measure]]",
    "measure.0.evaluator='latency'": "measure.0.evaluator: it is 'latency'; evaluators are "
    "availability, capture, consistency, elasticity, failover, hermitage, isolation, lag, load, "
    "metastability, scaleout, slo, steady, "
    "sweep, tenancy, throughput",
}

WRONG_PHASE = {
    "durration=1": f"durration: there is no such key; allowed are {PHASE_KEYS}",
    "duration='1 fortnight'": f"duration: {TIME}; it is '1 fortnight'",
    "duration=0": "a phase needs a duration above 0",
    "duration=inf": "duration: a length of time must be 0 or more, and finite; it is inf",
    "kind='rest'": "kind: input should be 'warm_up', 'measure', 'ramp_down' or 'pause'; it is 'rest'",
    "concurrency=-1": "concurrency: input should be greater than or equal to 0 or a table; it is -1",
    "concurrency=1e9": "a concurrency must be 100000 at the most",
    "concurrency='two'": "concurrency: input should be a valid number or a table; it is 'two'",
    "concurrency={from=1}": "concurrency.to: it is missing",
    "concurrency={from=1,to=-2}": "concurrency.to: input should be greater than or equal to 0; it is -2",
    "concurrency={from=1,to=1e9}": "a concurrency must be 100000 at the most",
    "concurrency={from=1,to=2,ovr=1}": "concurrency.ovr: there is no such key; allowed are from, to, over",
    "concurrency={from=1,to=2,over=0}": "concurrency.over: a ramp takes time: it needs a length "
    "above 0, or a level in "
    "its place; it is 0",
    "rate=5": "concurrency and rate exclude each other: a load is closed or open",
    "think='400h'": "think.time: a pause must be shorter than 1000000s; it is '400h'",
    "think={law='normal',time=1}": "think.law: input should be 'constant', 'exponential' or 'workload'; it is 'normal'",
    "think={law='exponential'}": "think: time is missing: how long the pause is",
    "think={law='workload',time=1}": "think: the workload itself says how long its pauses are, so the law "
    '"workload" has no time',
    "arrivals='bursty'": "arrivals: input should be 'constant' or 'poisson'; it is 'bursty'",
    "mix=3": "mix: input should be a valid string or a table; it is 3",
    "mix={select_only=-1}": "mix.select_only: input should be greater than or equal to 0; it is -1",
    "access='random'": "access: expected uniform, latest-10, zipfian-0.99, latest-zipfian-0.99, "
    "hotspot-0.2-0.8, or a table with \"distribution\"; it is 'random'",
    "access={}": 'access: "distribution" is missing; it is one of uniform, latest, zipfian, latest-zipfian, hotspot',
    "access={distribution='random'}": "access: \"distribution\" is 'random'; it must be one of "
    "uniform, latest, zipfian, latest-zipfian, hotspot",
    "access={distribution='zipfian',k=1}": "access.k: there is no such key; allowed are distribution, theta",
    "access='latest-0'": "access.k: input should be greater than or equal to 1; it is 0",
    "access='hotspot-2-0.5'": "access.keys: input should be less than or equal to 1; it is 2.0",
}

WRONG_LOAD = {
    "phases=[]": "measure.0.phases: it needs at least one entry",
    "phases=[{duration=1,mix='SELECT'}]": "measure.0: the first phase needs a concurrency or a rate, or streams",
    "phases=[{duration=1,concurrency=1}]": "measure.0: the first phase needs a mix",
    "phases=[{duration=1,mix='SELECT',concurrency=0},{duration=1,rate=0}]": "measure.0: no phase has a load: every "
    "concurrency and every rate is 0",
    "phases=[{mix='SELECT',concurrency=1}]": "measure.0.phases.0.duration: it is missing",
    "phases=[{duration=1,mix='SELECT',rate=-5}]": "measure.0.phases.0.rate: input should be greater "
    "than or equal to 0 or "
    "a table; it is -5",
    "phases=[{duration=1,mix='SELECT',rate=1e12}]": "measure.0.phases.0: a rate must be 100000000 at the most",
    "phases=[{duration=1,streams=[]}]": "measure.0.phases.0.streams: it needs at least one entry",
    "phases=[{duration=1,streams=[{concurrency=1}]}]": "measure.0.phases.0.streams.0.mix: it is missing",
    "phases=[{duration=1,streams=[{mix='SELECT'}]}]": "measure.0.phases.0.streams.0: a stream needs a concurrency or "
    "a rate",
    "phases=[{duration=1,streams=[{mix='SELECT',concurrency=1,rate=1}]}]": "measure.0.phases.0.streams.0: concurrency "
    "and rate exclude each other: a load is closed or open",
    "phases=[{duration=1,streams=[{mix='SELECT',rate=1,think=1}]}]": "measure.0.phases.0.streams.0: think belongs to "
    "a concurrency, and the stream has a rate",
    "phases=[{duration=1,streams=[{mix='SELECT',concurrency=1,arrivals='poisson'}]}]": "measure.0.phases.0.streams.0: "
    "arrivals belong to a rate, and the stream has a concurrency",
    "phases=[{duration=1,concurrency=1,streams=[{mix='SELECT',concurrency=1}]}]": "measure.0.phases.0: a phase with "
    "streams has no concurrency beside them: it belongs into one of the streams",
    "phases=[{duration=1,streams=[{mix='SELECT',concurrency=1}]},{duration=1,rate=1}]": "measure.0: the load is one of "
    "streams, and phases.1 gives rate",
    "phases=[{duration=1,mix='SELECT',rate=1},{duration=1,streams=[{mix='SELECT',rate=1}]}]": "measure.0: phases.1 has "
    "streams: then the first phase needs them too",
    "phases=[{duration=1,streams=[{mix='SELECT',concurrency=0}]}]": "measure.0: no phase has a load: every concurrency "
    "and every rate is 0",
    "phases=[{duration=1,mix='SELECT',rate=5,think=1}]": "measure.0: think belongs to a "
    "concurrency, and in phases.0 the "
    "load has a rate",
    "phases=[{duration=1,mix='SELECT',concurrency=5,arrivals='poisson'}]": "measure.0: arrivals "
    "belong to a rate, and in "
    "phases.0 the load has a concurrency",
}

WRONG_SWEEP = {
    "concurrency=[]": "concurrency: input should be 'search' or it needs at least one entry",
    "concurrency=[0]": "concurrency.0: input should be greater than or equal to 1; it is 0",
    "concurrency=[2,1000000]": "concurrency.1: input should be less than or equal to 100000; it is 1000000",
    "concurrency='four'": "concurrency: input should be 'search' or a valid list; it is 'four'",
    "concurrency=[4,2,4]": "concurrency: the same twice: 4; repetitions say how often each is measured",
    "mixes=[]": "mixes: it needs at least one entry",
    "mixes=true": "mixes: input should be a valid list; it is True",
    "mixes=['SELECT','SELECT']": "mixes: the same twice: SELECT; repetitions say how often each is measured",
    "search={start=9,most=3}": "search: a search goes upwards, and start (9) is above most (3)",
    "search.gain=0": "search.gain: input should be greater than 0; it is 0",
    "search.duration=0": "search: a step of the search needs a duration above 0",
    "duration=0": "duration: a measured phase needs a duration above 0; it is 0",
    "repetitions=0": "repetitions: input should be greater than or equal to 1; it is 0",
    "score='best'": "score: input should be 'peak' or 'mean'; it is 'best'",
    "slo=0": "slo: a latency bound must be above 0; it is 0",
}

WRONG_FAILOVER = {
    "utilization=1": "measure.0.utilization: input should be less than 1; it is 1",
    "rate=5": "measure.0: rate and utilization exclude each other: a rate is given, or made of the capacity",
    "before='200ms'": "measure.0: before must be as long as window: that is where the latency of a rate is taken from",
}

# What only the workload, the driver or the price book can know.
WRONG_FOR_OTHERS = {
    "workload.name='nothing'": "workload.name: 'nothing' is no workload and no folder with a "
    "workload.lua; workloads are " + ", ".join(packaged_workloads()),
    "workload.options.colour='red'": 'workload.options: tpcb has no option "colour"; it has none',
    "measure.0.phases.0.mix='NONE'": f"measure.0.phases.0.mix: tpcb has no mix 'NONE'; {MIXES}",
    "measure.0.phases=[{duration=1,streams=[{mix='SELECT',rate=1},{mix='NONE',rate=1}]}]": "measure.0.phases.0."
    f"streams.1.mix: tpcb has no mix 'NONE'; {MIXES}",
    "measure.0.phases.0.mix='1:2:3:4'": "measure.0.phases.0.mix: '1:2:3:4' has 4 parts, and tpcb has tpcb_like, "
    "simple_update, select_only",
    "measure.0.phases.0.mix='0:0'": "measure.0.phases.0.mix: no transaction has a weight above 0",
    "measure.0.phases.0.mix={nope=1}": "measure.0.phases.0.mix: tpcb has no transaction 'nope'; it has tpcb_like, "
    "simple_update, select_only",
    "system.rw='oracle://h/db'": f'system.rw: the scheme "oracle" has no driver; allowed are {SCHEMES}',
    "system.ro='oracle://h/db'": f'system.ro: the scheme "oracle" has no driver; allowed are {SCHEMES}',
    "system.rw='nonsense'": f"system.rw: this is no URL; it begins with one of {SCHEMES}",
    "system.rw=''": f"system.rw: this is no URL; it begins with one of {SCHEMES}",
    "system.rw='sim://?capacity=0'": 'system.rw: sim\'s capacity cannot be "0"; allowed is a whole number above 0, '
    "or steps such as 4,10s:8,30s:0",
    "system.rw='${NEPHOSCOPE_UNSET}'": "system.rw: the environment variable NEPHOSCOPE_UNSET is not set",
    "system.ro='${NEPHOSCOPE_UNSET}'": "system.ro: the environment variable NEPHOSCOPE_UNSET is not set",
    "cost.starred='none'": f"price book 'none': not built in; allowed: {BOOKS}, or a .toml file's path",
    "cost.price_book='none'": f"price book 'none': not built in; allowed: {BOOKS}, or a .toml file's path",
    "cost.price_book='neon-launch'": "price book neon-launch: it has one vendor's prices, which are for the starred "
    "scores (cost.starred); cost.price_book needs unit costs ([per_hour])",
    "cost.starred='neon-launch'": "price book neon-launch: it charges for data transfer, and nobody has said how much "
    "is used: [cost.usage] transfer_gb_per_hour of a study, usage.transfer_gb_per_hour of a system's figures",
    "nonsense": "--set nonsense: expected key=value, such as workload.scale=10",
    "=3": "--set =3: expected key=value, such as workload.scale=10",
    "a..b=3": "--set a..b=3: expected key=value, such as workload.scale=10",
    "measure.5.slo=1": "--set measure.5.slo=1: measure has no entry 5; it has 0 to 0",
    "measure.x=3": "--set measure.x=3: measure has no entry x; it has 0 to 0",
    "workload.name.x=3": "--set workload.name.x=3: workload.name is a value and has no x",
}


@pytest.fixture(autouse=True)
def _untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no system start: whatever is wrong must be seen before."""
    monkeypatch.setattr(Url, "start", lambda _: pytest.fail("the system was touched"))


def refused(folder: Path, override: str, study: Path) -> str:
    """Run a study; return the message that it is refused with."""
    ended = call("run", study, "--out", folder / "runs", "--set", override)
    assert ended.code == 2
    assert ended.out == ""
    assert sorted(folder.iterdir()) == [study]
    assert ended.err.startswith("nephoscope: ")
    assert ended.err.endswith("\n")
    return ended.err.removeprefix("nephoscope: ").removesuffix("\n")


@pytest.mark.parametrize("override", WRONG)
def test_what_is_wrong_in_a_study_is_told_once(tmp_path: Path, override: str) -> None:
    study = write_study(tmp_path, sim_study(phases({"concurrency": 2})))
    assert refused(tmp_path, override, study) == f"{study}: {WRONG[override]}"


@pytest.mark.parametrize("override", WRONG_PHASE)
def test_what_is_wrong_in_a_phase_is_told_once(tmp_path: Path, override: str) -> None:
    study = write_study(tmp_path, sim_study(phases({"concurrency": 2})))
    message, place = WRONG_PHASE[override], "measure.0.phases.0"
    whole = f"{place}.{message}" if message.split(":")[0].split(".")[0] in override else f"{place}: {message}"
    assert refused(tmp_path, f"{place}.{override}", study) == f"{study}: {whole}"


@pytest.mark.parametrize("override", WRONG_LOAD)
def test_what_is_wrong_in_a_course_of_load_is_told_once(tmp_path: Path, override: str) -> None:
    study = write_study(tmp_path, sim_study(phases({"concurrency": 2})))
    assert refused(tmp_path, f"measure.0.{override}", study) == f"{study}: {WRONG_LOAD[override]}"


@pytest.mark.parametrize("override", WRONG_SWEEP)
def test_what_is_wrong_in_a_sweep_is_told_once(tmp_path: Path, override: str) -> None:
    study = write_study(tmp_path, sim_study(throughput()))
    message = refused(tmp_path, f"measure.0.{override}", study)
    assert message == f"{study}: measure.0.{WRONG_SWEEP[override]}"


@pytest.mark.parametrize("override", WRONG_FAILOVER)
def test_what_is_wrong_in_a_failure_is_told_once(tmp_path: Path, override: str) -> None:
    study = write_study(tmp_path, sim_study({"evaluator": "failover", "mix": "SELECT", "utilization": 0.5}))
    assert refused(tmp_path, f"measure.0.{override}", study) == f"{study}: {WRONG_FAILOVER[override]}"


@pytest.mark.parametrize("override", WRONG_FOR_OTHERS)
def test_what_does_not_fit_is_told_before_anything_is_touched(tmp_path: Path, override: str) -> None:
    study = write_study(tmp_path, sim_study(phases({"concurrency": 2})))
    assert refused(tmp_path, override, study) == WRONG_FOR_OTHERS[override]


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    study = write_study(
        tmp_path, sim_study(phases({"concurrency": -1}), load={"threads": 0}, study={"name": ""})
    )
    lines = refused(tmp_path, "extra=1", study).splitlines()
    assert [line.removeprefix(f"{study}: ").split(":")[0] for line in lines] == [
        "extra",
        "study.name",
        "load.threads",
        "measure.0.phases.0.concurrency",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"[study\nname = 3",
            "this is not TOML: Expected ']' at the end of a table declaration (at line 1, column 7)",
        ),
        (b"a = 1\nb = = 2", "this is not TOML: Invalid value (at line 2, column 5)"),
        (
            b"name = '\xff'",
            "this is not TOML: 'utf-8' codec can't decode byte 0xff in position 8: invalid start byte",
        ),
    ],
)
def test_what_is_not_toml_is_told_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    study = tmp_path / "study.toml"
    study.write_bytes(content)
    assert refused(tmp_path, "load.threads=2", study) == f"{study}: {message}"


def test_an_empty_study_lacks_its_name_its_system_and_its_measurements(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text("")
    assert refused(tmp_path, "load.threads=2", study).splitlines() == [
        f"{study}: study.name: it is missing",
        f"{study}: system.provider: it is missing; {PROVIDERS}",
        f"{study}: measure: a study measures something: it needs at least one [[measure]]",
    ]


@pytest.mark.parametrize("name", ["none.toml", "none", "no/such/file.toml", "."])
def test_a_study_that_is_not_there_is_told_with_those_that_are(tmp_path: Path, name: str) -> None:
    ended = call("run", name, "--out", tmp_path / "runs")
    studies = ", ".join(sorted(path.stem for path in (Path(__file__).parents[2] / "studies").glob("*.toml")))
    message = f"nephoscope: {name}: there is no such file, and no such study; studies are {studies}\n"
    assert (ended.code, ended.out, ended.err) == (2, "", message)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_study_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    study = write_study(tmp_path, sim_study())
    study.chmod(0)
    assert refused(tmp_path, "load.threads=2", study) == f"{study}: Permission denied"


@pytest.mark.parametrize("command", ["load", "check"])
def test_every_command_that_takes_a_study_refuses_a_wrong_one(tmp_path: Path, command: str) -> None:
    study = write_study(tmp_path, sim_study(phases({"concurrency": 2})))
    for override in ("load.threads=0", "workload.name='nothing'", "measure.0.phases.0.mix='NONE'"):
        ended = call(command, study, "--set", override)
        message = WRONG.get(override) or WRONG_FOR_OTHERS[override]
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.removeprefix("nephoscope: ").removeprefix(f"{study}: ") == f"{message}\n"
