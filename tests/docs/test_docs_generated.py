from __future__ import annotations

import subprocess
import sys

from docs_pages import ROOT


def test_generated_parts_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.tools.generate_docs", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
