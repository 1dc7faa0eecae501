"""A score is defined once: what shows scores follows ``scoring/definitions.py``, and repeats none of it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import nephoscope
from nephoscope.scoring.definitions import SCORES

PACKAGE = Path(nephoscope.__file__).parent

# Whose room names scores because it makes them: formulas and figures, evaluators, planted truths.
MAKERS = {"scoring", "evaluators", "calibration"}

CHILD = '''
import sys
from importlib.util import find_spec, module_from_spec
from pathlib import Path

spec = find_spec("nephoscope.scoring.definitions")
source = Path(spec.origin).read_text()
first = '        "O": Definition('
assert source.count(first) == 1
definitions = sys.modules[spec.name] = module_from_spec(spec)
exec(source.replace(first, """ENTRY
""" + first), definitions.__dict__)

from nephoscope.evaluators.throughput.evaluator import Throughput
from nephoscope.scoring.formulas import over_repetitions

read = Throughput.read


def with_the_toy(self, stored):
    found = read(self, stored)
    found.scores["X"] = over_repetitions("X", [7.125, 7.375])
    return found


Throughput.read = with_the_toy

from commands import call
from nephoscope.cli.printing import figures_of, summary
from nephoscope.measuring.measurement import Outcome
from nephoscope.results.scores import scores_of
from nephoscope.store import StoredRun
from rich.console import Console
from sample_studies import sim_study, throughput
from stored_runs import Step, write_run

folder = Path(sys.argv[1])
study = sim_study(throughput(duration="2s"), score={"weights": {"X": 0.5}})
step = Step({"mix": "SELECT", "concurrency": 2}, [100 + place % 3 for place in range(20)], [2.0] * 20)
runs = [write_run(folder / name, study, [step]) for name in ("a", "b")]
for name, arguments in {
    "run.md": ["report", runs[0], "--format", "markdown", "--tables", folder / "tables"],
    "several.txt": ["report", *runs, "--out", folder / "several.html"],
    "several.md": ["report", *runs, "--format", "markdown", "--out", folder / "several.html"],
}.items():
    ended = call(*arguments)
    assert ended.code == 0, ended
    (folder / name).write_text(ended.out)
run = StoredRun(runs[0])
outcome = Outcome(runs[0], "measured", None, scores_of(run))
with (folder / "summary.txt").open("w") as file:
    Console(file=file, width=200).print(summary(outcome))
'''
ENTRY = """        "X": Definition(
            "Extra", "words of the page", "words of the tables", 9, "toys", higher_is_better=True,
            source="nowhere", digits=".3f", table_unit="ms",
        ),"""


def test_a_score_that_is_defined_is_in_every_table_and_page(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD.replace("ENTRY", ENTRY))
    ended = subprocess.run(
        [sys.executable, script, tmp_path],
        env={"PYTHONPATH": ":".join([str(PACKAGE.parent), str(Path(__file__).parent)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    texts = {file.name: file.read_text() for file in tmp_path.rglob("*.*") if file.suffix != ".parquet"}
    for table in ("summary.txt", "run.md", "scores.csv"):
        [line] = [one for one in texts[table].splitlines() if re.match(r'[|"a,\s]*X\b', one)]
        assert "words of the tables" in line
        assert "7.25" in line
        assert "toys" in line
    for table in ("several.txt", "several.md", "several.html"):
        assert "X (ms)" in texts[table]
        assert "7250.000" in texts[table]
    page = texts["report.html"]
    assert re.search(r"<td>Extra<span[^>]*>: words of the page</span></td>", page)
    assert "log10(P · E1 · E2 · X · T" in page or "log10(P · E1 · E2 · T · X" in page
    assert "X-Score" in page


def test_nobody_but_who_makes_scores_lists_them() -> None:
    lists = []
    for file in PACKAGE.rglob("*.py"):
        if file.relative_to(PACKAGE).parts[0] in MAKERS:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
                of = node.keys if isinstance(node, ast.Dict) else node.elts
                named = [one.value for one in of if isinstance(one, ast.Constant) and one.value in SCORES]
                if len(named) > 1:
                    lists.append(f"{file.relative_to(PACKAGE)}:{node.lineno}: {', '.join(named)}")
    assert lists == []


def test_no_template_lists_scores() -> None:
    several = re.compile(rf"\b({'|'.join(SCORES)})\b(, | and | · |/)\b({'|'.join(SCORES)})\b")
    report = PACKAGE / "report"
    files = [*(report / "templates").glob("*.j2"), *(report / "static").glob("*.js")]
    assert files
    assert [file.name for file in files if several.search(file.read_text())] == []
