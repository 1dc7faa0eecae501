"""Calibration: the instrument against systems whose true answer is planted.

Each case plants something, measures it as any user would, takes the truth from what was planted and not from the run,
and compares. It is run on the user's own machine, so what it says holds there: a machine that is too busy to keep time
fails here, and not in a purchase. A file of this package has the cases of one evaluator.
"""

from nephoscope.calibration.base import Bench, Case, Reading, Result
from nephoscope.calibration.cases import CASES, calibrate, cases_of, complaint, run_case

__all__ = ["CASES", "Bench", "Case", "Reading", "Result", "calibrate", "cases_of", "complaint", "run_case"]
