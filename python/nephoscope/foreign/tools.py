"""The tools whose files can be run: an entry each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.foreign.pgbench.tool import Pgbench
from nephoscope.foreign.sql import SqlTool
from nephoscope.foreign.sysbench import Sysbench
from nephoscope.foreign.ycsb import Ycsb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.foreign.base import Tool

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (Pgbench(), SqlTool(), Sysbench(), Ycsb())}
