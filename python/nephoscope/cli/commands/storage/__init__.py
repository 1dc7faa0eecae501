"""``nephoscope storage …``: a file each command."""

import typer

from nephoscope.cli.commands.storage.capture import capture
from nephoscope.cli.commands.storage.describe import describe
from nephoscope.cli.commands.storage.evaluate import evaluate
from nephoscope.cli.commands.storage.generate import generate
from nephoscope.cli.commands.storage.importing import import_
from nephoscope.cli.commands.storage.run import run
from nephoscope.cli.commands.storage.serve import serve
from nephoscope.cli.commands.storage.train import train
from nephoscope.cli.commands.storage.whatif import whatif

app = typer.Typer(
    help="The storage tier: capture its I/O, learn it, generate it, execute it.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    pass


app.command("import")(import_)
for _command in (capture, describe, evaluate, generate, run, serve, train, whatif):
    app.command()(_command)
