"""The notebook of the docs: its cells executed in one namespace, as Jupyter does, on a planted run.

``python -m tests.notebooks.notebook_page`` writes the outputs anew.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from planted_runs import run

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def read() -> dict[str, Any]:
    """Read the notebook: JSON, as nbformat 4 has it."""
    found: dict[str, Any] = json.loads(PAGE.read_text(encoding="utf-8"))
    return found


@contextlib.contextmanager
def beside_a_run(folder: Path) -> Iterator[None]:
    """Stand in a folder with the run that the notebook opens: of figures that are planted, so they never differ."""
    run(folder / "runs" / "20260102T030405Z-planted", repetitions=3)
    (folder / "runs" / "latest").symlink_to("20260102T030405Z-planted")
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def outputs(notebook: dict[str, Any]) -> list[str]:
    """Execute the cells of code, one after the other; what each prints, and the value of its last line."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    return [
        _execute("".join(cell["source"]), namespace)
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def _execute(source: str, namespace: dict[str, Any]) -> str:
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    value = None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, "<cell>", "exec"), namespace)  # noqa: S102 - our own notebook
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)  # noqa: S307
    return printed.getvalue() + ("" if value is None else f"{value!r}")


def stored(notebook: dict[str, Any]) -> list[str]:
    """Return the outputs that the notebook shows."""
    return [_shown(cell["outputs"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _shown(found: list[dict[str, Any]]) -> str:
    return "".join(
        "".join(one["text"] if one["output_type"] == "stream" else one["data"]["text/plain"]) for one in found
    )


def rewritten(notebook: dict[str, Any]) -> str:
    """Write the notebook with its outputs made anew."""
    made = outputs(notebook)
    for number, cell in enumerate(
        (cell for cell in notebook["cells"] if cell["cell_type"] == "code"), start=1
    ):
        text = made[number - 1]
        cell["execution_count"] = number
        lines = text.splitlines(keepends=True)
        result = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
        cell["outputs"] = (
            [{"output_type": "stream", "name": "stdout", "text": lines}]
            if text.endswith("\n")
            else [{**result, "data": {"text/plain": lines}}]
            if text
            else []
        )
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, beside_a_run(Path(place)):
        written = rewritten(read())
    PAGE.write_text(written, encoding="utf-8")
