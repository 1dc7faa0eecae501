"""The command line.

Exit codes: 0 measured; 1 the measurement failed; 2 bad input; 3 cannot tell (``check``,
``gate``, ``duet``, ``bisect``, ``verify``); 4 slower (``gate``, ``duet``).
"""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from nephoscope import __version__
from nephoscope.cli.commands import (
    cards,
    data,
    deciding,
    duets,
    experiment,
    following,
    histories,
    lists,
    measuring,
    reading,
    steering,
    storage,
    traces,
)
from nephoscope.cli.consoles import OUT, complain
from nephoscope.cli.options import ToolCommand
from nephoscope.errors import InputError, MeasurementError, NephoscopeError
from nephoscope.files import keep_others_from_writing
from nephoscope.interrupts import Interrupted, catch_signals, leave
from nephoscope.visible import VisibleFormatter

app = typer.Typer(
    help="The instrument that measures cloud databases: throughput per dollar, latency without coordinated omission.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_log = logging.getLogger(__name__)


def main() -> None:
    """Run the command line; every error becomes one message and its exit code."""
    keep_others_from_writing()
    try:
        catch_signals()
        code = _call()
    except Interrupted as error:
        code = complain(str(error), MeasurementError.exit_code)
    leave(code)


def _call() -> int:
    """Run the command; gives the exit code."""
    try:
        code = app(standalone_mode=False)
    except NephoscopeError as error:
        return complain(str(error), error.exit_code)
    except typer.Abort:
        return complain("interrupted", MeasurementError.exit_code)
    except Exception as error:  # noqa: BLE001 - whatever it is, a user gets one message
        # Wrong options and arguments, as the parser reports them.
        if hasattr(error, "format_message"):
            return complain(error.format_message().replace("Value error, ", ""), InputError.exit_code)
        _log.info("an internal error", exc_info=True)
        message = f"{type(error).__name__}: {error} (a defect of nephoscope; --verbose before the command shows where)"
        return complain(message, MeasurementError.exit_code)
    return code if isinstance(code, int) else 0


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    if wanted:
        OUT.print(f"nephoscope {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what is done.")] = False,
    version: Annotated[  # noqa: ARG001 - handled before a command is looked for
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(VisibleFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])


_OF_TOOLS = (measuring.run, data.load, data.check)
"""Commands that take another tool's file, and its own words behind it."""

for _command in (
    measuring.run,
    measuring.quickstart,
    experiment.experiment,
    steering.ctl,
    data.load,
    data.check,
    data.clean,
    reading.report,
    deciding.compare,
    deciding.gate,
    duets.duet,
    following.history,
    following.bisect,
    cards.card,
    cards.verify,
    cards.board,
    reading.score,
    measuring.calibrate,
    lists.workloads,
    lists.systems,
):
    app.command(cls=ToolCommand if _command in _OF_TOOLS else None)(_command)

app.add_typer(storage.app, name="storage")
app.add_typer(histories.app, name="histories")
app.add_typer(traces.app, name="trace")
