"""Metrics of the machine that the load comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nephoscope.collectors.server import Samples

_MIB = 1 << 20
_SECTOR = 512


def rss_mb() -> float:
    """Return the memory of this process, in MB; 0 if the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - once per interval, kept plain
            return int(file.read().split()[1]) * 4096 / _MIB
    except OSError:
        return 0.0


class Host:
    """The machine that the load comes from, by Linux's /proc."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._last: tuple[float, list[float], list[float]] | None = None

    def sample(self, now: float) -> Samples:
        """Return the rates since the last sample. Raises ``OSError`` or ``ValueError`` where there is no /proc."""
        cpu = [float(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        disk = self._disk()
        memory = {
            line.split(":")[0]: float(line.split()[1]) / 1024
            for line in Path("/proc/meminfo").read_text().splitlines()[:8]
        }
        values = {
            "memory_used_mb": memory["MemTotal"] - memory["MemAvailable"],
            "load_average": os.getloadavg()[0],
        }
        if self._last is not None:
            before, last_cpu, last_disk = self._last
            spent = [new - old for new, old in zip(cpu, last_cpu, strict=True)]
            if (total := sum(spent)) > 0:
                idle, waiting, stolen = spent[3], spent[4], spent[7]
                values["cpu_busy"] = 1 - (idle + waiting) / total
                values["cpu_io_wait"] = waiting / total
                values["cpu_stolen"] = stolen / total
            seconds = max(now - before, 1e-3)
            read, written = (max(new - old, 0) for new, old in zip(disk, last_disk, strict=True))
            values["disk_read_mb_per_s"] = read * _SECTOR / _MIB / seconds
            values["disk_written_mb_per_s"] = written * _SECTOR / _MIB / seconds
        self._last = (now, cpu, disk)
        return {None: values}

    @staticmethod
    def _disk() -> list[float]:
        """Sectors read and written by whole disks; partitions are not counted again."""
        read = written = 0.0
        blocks = Path("/sys/block")
        disks = {path.name for path in blocks.iterdir()} if blocks.is_dir() else set()
        for line in Path("/proc/diskstats").read_text().splitlines():
            words = line.split()
            if words[2] in disks and not words[2].startswith(("loop", "ram", "dm-")):
                read += float(words[5])
                written += float(words[9])
        return [read, written]
