"""Whether a candidate is slower: three answers, each with an exit code, for whoever has to decide."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from nephoscope.results.compare import comparison_table
from nephoscope.tables.columns import text
from nephoscope.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.results.compare import Compared, Figure
    from nephoscope.tables.model import Table

Answer = Literal["not slower", "slower", "cannot tell"]

EXIT_CODES: Mapping[Answer, int] = {"not slower": 0, "cannot tell": 3, "slower": 4}
"""The exit code of each answer; 1 and 2 are a failed measurement and bad input, as of every command."""

DECIDING = ("TPS", "p95")
"""The figures that decide where none are named: each more widens the intervals of all."""


@dataclass(frozen=True)
class Decision:
    """The answer to whether a candidate is slower by more than a margin, and what it rests on."""

    answer: Answer
    margin: float
    """The largest loss that is accepted, as a share of the baseline's figure."""
    reasons: Sequence[str]
    """What decided, a sentence each."""
    answers: Sequence[Answer]
    """Of each figure of the comparison, in its order."""
    compared: Compared

    @property
    def exit_code(self) -> int:
        """The exit code of the answer."""
        return EXIT_CODES[self.answer]


def decide(compared: Compared, margin: float) -> Decision:
    """Answer whether the candidate is slower than the baseline by more than ``margin``, a share.

    "slower": some figure's interval lies on the worse side of no difference, and reaches beyond the margin. "not
    slower": no interval reaches beyond the margin, whatever lies within it. Anything else "cannot tell": an interval on
    both sides of the margin and of no difference, a point that one side lacks, a run with a problem. The intervals hold
    for all figures together at 95 %, so of candidates that equal their baseline fewer than 2.5 % are called slower.
    """
    answers = [_answer(figure, margin) for figure in compared.figures]
    problems = [f"{one.run}: {one.text}" for one in compared.said if one.level == "problem"]
    slower = [_say(figure) for figure, of in zip(compared.figures, answers, strict=True) if of == "slower"]
    open_ones = [
        f"{_say(figure)}, which leaves open whether it is worse by more than {100 * margin:g} %"
        for figure, of in zip(compared.figures, answers, strict=True)
        if of == "cannot tell"
    ]
    if problems:
        return Decision("cannot tell", margin, problems, answers, compared)
    if slower:
        return Decision("slower", margin, slower, answers, compared)
    if open_ones or compared.lacking:
        return Decision("cannot tell", margin, [*compared.lacking, *open_ones], answers, compared)
    held = f"no figure is worse by more than {100 * margin:g} %"
    return Decision("not slower", margin, [held], answers, compared)


def _answer(figure: Figure, margin: float) -> Answer:
    """Answer for one figure. A lower bound of a latency may be any longer: it decides one way only."""
    interval = figure.comparison.relative_ci95
    if interval is None or figure.comparison.verdict == "cannot tell":
        return "cannot tell"
    best, worst = interval if not figure.higher_is_better else (-interval[1], -interval[0])
    if worst <= margin and "candidate" not in figure.at_least:
        return "not slower"
    return "slower" if best > 0 and "baseline" not in figure.at_least else "cannot tell"


def _say(figure: Figure) -> str:
    relative, interval = figure.comparison.relative, figure.comparison.relative_ci95
    if relative is None or interval is None:
        return f"{figure.name}: the spread is not known"
    return f"{figure.name}: {relative:+.1%} ({interval[0]:+.1%} … {interval[1]:+.1%})"


def answers_table(decision: Decision) -> Table:
    """Make the table of a comparison with the answer of each figure."""
    table = comparison_table(decision.compared)
    rows = [{**row, "answer": of} for row, of in zip(table.rows, decision.answers, strict=True)]
    column = text(
        "answer",
        f"Whether it is slower by more than {100 * decision.margin:g} %: {', '.join(EXIT_CODES)}.",
        "answer",
    )
    return replace(table, columns=[*table.columns, column], rows=rows)


def summary(decision: Decision) -> str:
    """Say the answer in a sentence."""
    by = f" by more than {100 * decision.margin:g} %" if decision.answer != "slower" else ""
    return {
        "not slower": f"not slower{by}",
        "slower": "slower",
        "cannot tell": f"cannot tell whether it is slower{by}",
    }[decision.answer]


def junit(decision: Decision, name: str) -> str:
    """Write a decision as JUnit's XML: a test case a figure; slower is a failure, "cannot tell" an error.

    What keeps the whole from being decided (a problem of a run, a point that one side lacks) is a case of its own.
    """
    suite = ET.Element("testsuite", name=visible(name))
    for figure, answer in zip(decision.compared.figures, decision.answers, strict=True):
        case = ET.SubElement(suite, "testcase", classname="nephoscope", name=visible(figure.name))
        _outcome(case, answer, _say(figure))
    whole = [one.text for one in decision.compared.said if one.level == "problem"]
    for reason in [*whole, *decision.compared.lacking]:
        _outcome(ET.SubElement(suite, "testcase", classname="nephoscope", name="runs"), "cannot tell", reason)
    counts = {kind: len(suite.findall(f"testcase/{kind}")) for kind in ("failure", "error")}
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", str(counts["error"]))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _outcome(case: ET.Element, answer: Answer, said: str) -> None:
    kinds: Mapping[Answer, str] = {"slower": "failure", "cannot tell": "error"}
    if answer in kinds:
        ET.SubElement(case, kinds[answer], message=visible(f"{answer}: {said}"))
    ET.SubElement(case, "system-out").text = visible(said)
