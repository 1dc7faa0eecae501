"""Load threads that wait for a processor: read from what the kernel keeps of them."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from nephoscope.collectors import client as starvation
from nephoscope.collectors.client import Starvation

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000


def thread(folder: Path, number: int, name: str, waited_ns: int) -> None:
    place = folder / str(number)
    place.mkdir(exist_ok=True)
    (place / "comm").write_text(f"{name}\n")
    (place / "schedstat").write_text(f"123 {waited_ns} 7\n")


def test_the_share_is_that_of_the_thread_that_fared_worst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [5 * SECOND]
    monkeypatch.setattr(starvation, "_THREADS", tmp_path)
    monkeypatch.setattr("nephoscope.collectors.client.time.monotonic_ns", lambda: now[0])
    thread(tmp_path, 1, "load-0", 3 * SECOND)
    thread(tmp_path, 2, "load-1", 0)
    thread(tmp_path, 3, "python", 0)
    starved = Starvation()
    now[0] += 2 * SECOND
    thread(tmp_path, 1, "load-0", 3 * SECOND + SECOND // 2)
    thread(tmp_path, 2, "load-1", SECOND)
    thread(tmp_path, 3, "python", 2 * SECOND)
    assert starved.share() == pytest.approx(0.5)
    now[0] += SECOND
    assert starved.share() == 0.0


def test_a_kernel_that_tells_nothing_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starvation, "_THREADS", tmp_path / "none")
    assert Starvation().share() is None
    monkeypatch.setattr(starvation, "_THREADS", tmp_path)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "comm").write_text("load-0\n")
    assert Starvation().share() is None


def test_the_real_kernel_is_read() -> None:
    if not os.path.exists("/proc/self/schedstat"):  # noqa: PTH110 - one look
        pytest.skip("this kernel keeps no statistics of waiting")
    over = threading.Event()

    def load() -> None:
        with open("/proc/thread-self/comm", "w") as name:  # noqa: PTH123 - as a thread names itself
            name.write("load-9")
        over.wait(60)

    worker = threading.Thread(target=load)
    worker.start()
    try:
        starved = Starvation()
        time.sleep(0.05)
        share = starved.share()
    finally:
        over.set()
        worker.join()
    assert share is not None
    assert 0 <= share <= 1
