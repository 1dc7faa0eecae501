"""Where the command line prints."""

from __future__ import annotations

from rich.text import Text

from nephoscope.cli.live import make_console
from nephoscope.interrupts import ignore_signals
from nephoscope.masking import masked
from nephoscope.visible import visible

OUT = make_console()
ERR = make_console(stderr=True)


def complain(message: str, code: int) -> int:
    """Tell why it ends, and give the exit code."""
    # The process is ending: a second Ctrl-C while the first is reported adds nothing.
    ignore_signals()
    if message:  # none where there was no command: then its help was shown
        ERR.print(Text.assemble(("nephoscope:", "bold red"), " ", visible(masked(message))))
    return code
