from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from nephoscope.systems.machine.account import server_accounts
from nephoscope.systems.machine.capacity import storage_bytes, this_machine
from nephoscope.systems.machine.supervised import Order, SupervisedProcess

if TYPE_CHECKING:
    from pathlib import Path

MEMINFO = "MemTotal:       16777216 kB\nMemFree:  1 kB\n"
CORES = len(os.sched_getaffinity(0))


def _root(folder: Path, files: dict[str, str]) -> Path:
    for name, text in ({"proc/meminfo": MEMINFO} | files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_machine_without_control_groups_has_all_of_itself(tmp_path: Path) -> None:
    machine = this_machine(_root(tmp_path, {}))
    assert machine.cores == CORES
    assert machine.memory_gb == 16


def test_the_smallest_limit_on_the_way_up_counts_in_version_2(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/outer/inner\n",
        "sys/fs/cgroup/outer/inner/memory.max": "max\n",
        "sys/fs/cgroup/outer/inner/cpu.max": "max 100000\n",
        "sys/fs/cgroup/outer/memory.max": "2147483648\n",
        "sys/fs/cgroup/outer/cpu.max": "50000 100000\n",
    }
    machine = this_machine(_root(tmp_path, files))
    assert machine.cores == 0.5
    assert machine.memory_gb == 2


@pytest.mark.parametrize("path", ["/docker/1234", "/"])
def test_limits_of_version_1_are_found_inside_and_outside_a_container(tmp_path: Path, path: str) -> None:
    files = {
        "proc/self/cgroup": f"4:memory:{path}\n3:cpu,cpuacct:{path}\n1:name=systemd:{path}\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "25000\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    machine = this_machine(_root(tmp_path, files))
    assert machine.cores == 0.25
    assert machine.memory_gb == 1


def test_limits_that_are_none_change_nothing(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/\n3:cpu:/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    machine = this_machine(_root(tmp_path, files))
    assert (machine.cores, machine.memory_gb) == (CORES, 16)


def test_this_machine_has_something_to_give() -> None:
    machine = this_machine()
    assert 0 < machine.cores <= CORES
    assert machine.memory_bytes > 2**26


def test_storage_is_known_before_the_folder_exists(tmp_path: Path) -> None:
    assert storage_bytes(tmp_path / "not" / "yet") == storage_bytes(tmp_path) > 0


def test_a_process_may_be_ended_while_others_wait_for_its_end() -> None:
    order = Order(
        command=("/bin/sleep", "60"),
        account=server_accounts()[0],
        stages=((signal.SIGTERM, 5.0),),
        orphaned=signal.SIGKILL,
    )
    with ThreadPoolExecutor(8) as threads:
        for _ in range(5):
            process = SupervisedProcess(order)
            process.start(sys.stderr.fileno())
            waiting = [threads.submit(process.ended, 20.0) for _ in range(8)]
            time.sleep(0.05)  # until they wait
            assert process.end()
            assert all(one.result(10.0) for one in waiting)
