"""Hooks: small shell scripts stand for whatever a user's system needs."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import wait_for
from pydantic import ValidationError

from nephoscope.errors import MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.settings.resources import Resources
from nephoscope.systems.machine.folders import is_alive
from nephoscope.systems.url import Url, UrlSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

URL = "postgresql://bench:s3cr%20t@db.example.com/bench"


def provider(**hooks: Any) -> Url:
    url = Url(UrlSettings(rw=[URL], ro=["noop://"], hooks=hooks))  # type: ignore[arg-type]
    url.start()
    return url


def test_only_what_has_a_command_can_be_done() -> None:
    system = provider(restart="true")
    assert system.actions() == {Action.RESTART}
    assert system.allocation() == ()
    with pytest.raises(MeasurementError, match=r"no command for promote: system\.hooks\.promote"):
        system.act(Action.PROMOTE)
    assert system.endpoints("rw") == (URL,)
    assert system.endpoints("ro") == ("noop://",)


def test_a_command_is_run_to_its_end_with_what_it_has_to_know(tmp_path: Path) -> None:
    told = tmp_path / "told"
    tell = f"sleep 0.2; env | grep NEPHOSCOPE_ | sort > '{told}'"
    system = provider(restart=tell, resize=tell, set=tell)
    done = system.act(Action.RESTART, node="node2")
    assert told.read_text().splitlines() == ["NEPHOSCOPE_ACTION=restart", "NEPHOSCOPE_NODE=node2"]
    assert (done.action, done.node) == (Action.RESTART, "node2")
    assert done.ended_ns - done.began_ns >= 200_000_000
    system.act(Action.RESIZE, resources=Resources(nodes=2, vcores=4, memory_gb=16, storage_gb=100))
    assert {"NEPHOSCOPE_NODES=2", "NEPHOSCOPE_VCORES=4.0", "NEPHOSCOPE_MEMORY_GB=16.0"} <= set(
        told.read_text().splitlines()
    )
    system.act(Action.SET, settings={"work_mem": "9MB", "jit": False})
    [settings] = [line for line in told.read_text().splitlines() if "SETTINGS" in line]
    assert json.loads(settings.partition("=")[2]) == {"work_mem": "9MB", "jit": False}


def test_what_a_failed_command_says_is_shown_without_passwords() -> None:
    system = provider(promote=f"echo no leader; echo '{URL} and s3cr t' >&2; exit 3")
    with pytest.raises(MeasurementError) as caught:
        system.act(Action.PROMOTE)
    message = str(caught.value)
    assert "system.hooks.promote ended with exit code 3. It said:\nno leader" in message
    assert "db.example.com" in message
    assert "s3cr" not in message


def test_a_command_that_takes_too_long_is_killed_with_all_it_has_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    system = provider(restart=f"sleep 60 & echo $! $$ > '{pids}'; echo begun; wait", timeout=0.5)
    before = time.monotonic()
    with pytest.raises(MeasurementError, match=r"restart did not end within 0\.5 s\. It said:\nbegun"):
        system.act(Action.RESTART)
    assert time.monotonic() - before >= 0.5
    wait_for(lambda: not any(is_alive(int(pid)) for pid in pids.read_text().split()))


def test_a_server_that_a_command_starts_is_not_waited_for(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    provider(start=f"sleep 20 & echo $! > '{pid}'").act(Action.START)
    assert is_alive(int(pid.read_text()))


def test_a_command_says_which_node_it_has_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLICA_PASSWORD", "t0psecret")
    url = "postgresql://bench:${REPLICA_PASSWORD}@replica1/bench"
    said = json.dumps({"ro": url, "node": "replica1"})
    system = provider(add_node=f"echo '{said}'", remove_node="exit 7")
    assert system.act(Action.ADD_NODE).node == "replica1"
    assert system.endpoints("ro") == ("noop://", "postgresql://bench:t0psecret@replica1/bench")
    assert dict(system.nodes()) == {"replica1": "ro"}
    with pytest.raises(MeasurementError, match="has added a node 'replica1' before"):
        system.act(Action.ADD_NODE)
    with pytest.raises(MeasurementError, match="exit code 7"):
        system.act(Action.REMOVE_NODE)
    assert len(system.endpoints("ro")) == 2


def test_a_node_goes_by_the_name_that_it_came_with(tmp_path: Path) -> None:
    told = tmp_path / "told"
    remove = f"echo $NEPHOSCOPE_NODE >> '{told}'"
    system = provider(add_node="""echo '{"ro": "sim://new"}'""", remove_node=remove)
    assert [system.act(Action.ADD_NODE).node for _ in range(2)] == ["added1", "added2"]
    assert system.act(Action.REMOVE_NODE).node == "added2"
    assert system.act(Action.REMOVE_NODE, node="added1").node == "added1"
    assert told.read_text().split() == ["added2", "added1"]
    assert system.endpoints("ro") == ("noop://",)


@pytest.mark.parametrize(
    "said", ["", "noop://", '{"url": "noop://"}', '{"ro": "gopher://x"}', '{"ro": "${NOWHERE}"}']
)
def test_a_command_that_does_not_say_where_its_node_is_has_failed(said: str) -> None:
    system = provider(add_node=f"echo '{said}'")
    with pytest.raises(MeasurementError, match="has to print where the node is"):
        system.act(Action.ADD_NODE)
    assert system.endpoints("ro") == ("noop://",)


def test_a_command_can_be_given_up_and_none_runs_when_the_system_is_given_back(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    system = provider(restart=f"echo $$ > '{pid}'; sleep 60")

    def begun_then(give_up: Callable[[], None]) -> None:
        wait_for(lambda: pid.exists() and pid.read_text())
        give_up()

    for give_up in (system.cancel, system.stop):
        pid.unlink(missing_ok=True)
        thread = threading.Thread(target=begun_then, args=(give_up,))
        thread.start()
        with pytest.raises(MeasurementError, match="ended with exit code -9"):
            system.act(Action.RESTART)
        thread.join()
        assert not is_alive(int(pid.read_text()))
    with pytest.raises(MeasurementError, match="has been given back"):
        system.act(Action.RESTART)


def test_the_allocation_is_a_time_line_of_what_the_command_prints(tmp_path: Path) -> None:
    now = tmp_path / "now.json"
    first: dict[str, Any] = {"nodes": 1, "vcores": 2, "memory_gb": 8, "storage_gb": 10}
    now.write_text(json.dumps(first))
    system = Url(UrlSettings(rw=[URL], hooks={"allocation": f"cat '{now}'"}))  # type: ignore[arg-type]
    assert system.start().resources == Resources(**first)
    assert len(system.allocation()) == 2
    now.write_text(json.dumps({**first, "vcores": 4}))
    told = system.allocation()
    assert [one.resources.vcores for one in told] == [2, 2, 4], "each answer, the same ones too"
    times = [time for one in told for time in (one.time_ns, one.answered_ns)]
    assert None not in times
    assert times == sorted(times, key=lambda time: time or 0), "asked, answered, asked …"
    assert (system.allocation_period(), provider().allocation_period()) == (1.0, None)
    now.write_text('{"vcores": "many"}')
    with pytest.raises(MeasurementError, match=r"(?s)JSON object of resources.*vcores: .*number.*many"):
        system.allocation()


@pytest.mark.parametrize(
    "hooks", [{"reboot": "x"}, {"restart": ""}, {"timeout": -1}, {"allocation_period": 0.04}], ids=str
)
def test_hooks_that_make_no_sense_are_refused(hooks: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        UrlSettings(rw=[URL], hooks=hooks)  # type: ignore[arg-type]
