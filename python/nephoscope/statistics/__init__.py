"""The statistics of the instrument: intervals of means, steady state, comparisons, and small indices.

Everything is pure and deterministic: numbers in, numbers out, every resampling from a fixed default seed by a
bit stream that numpy promises never to change, so a stored run that is read again gives the same figures.

Intervals are at 95 %, one at a time. Of twenty independent comparisons of equal systems, one is expected to
say "faster" or "slower" by chance alone; `compare` takes the number of comparisons that are read side by side
and widens its intervals by Bonferroni's rule, so that the chance of any false verdict among them stays below
5 %.
"""

from nephoscope.statistics.censored import Survival, expected, is_at_least, quantile_rank
from nephoscope.statistics.changes import MOST_VALUES, ChangePoint, change_points
from nephoscope.statistics.comparison import (
    LEAST_BETWEEN,
    Between,
    Comparison,
    Verdict,
    between_runs,
    block_means,
    compare,
)
from nephoscope.statistics.indices import (
    clustered_interval,
    geometric_mean,
    jain_index,
    r_squared,
    wilson_interval,
)
from nephoscope.statistics.intervals import (
    SEED,
    MeanEstimate,
    block_bootstrap_ci,
    half_width,
    mean_ci,
    moving_mean_ci,
    no_less_than_0,
)
from nephoscope.statistics.pairs import Paired, Sums, compare_pairs, narrowing
from nephoscope.statistics.planning import MeasurementPlan, plan_measurement, warm_up_length
from nephoscope.statistics.renewal import CycleEstimate, availability_of_cycles, mean_time
from nephoscope.statistics.sequential import Searched, search
from nephoscope.statistics.series import autocorrelation, block_length, effective_sample_size
from nephoscope.statistics.trend import SteadyState, steady_state

__all__ = [
    "LEAST_BETWEEN",
    "MOST_VALUES",
    "SEED",
    "Between",
    "ChangePoint",
    "Comparison",
    "CycleEstimate",
    "MeanEstimate",
    "MeasurementPlan",
    "Paired",
    "Searched",
    "SteadyState",
    "Sums",
    "Survival",
    "Verdict",
    "autocorrelation",
    "availability_of_cycles",
    "between_runs",
    "block_bootstrap_ci",
    "block_length",
    "block_means",
    "change_points",
    "clustered_interval",
    "compare",
    "compare_pairs",
    "effective_sample_size",
    "expected",
    "geometric_mean",
    "half_width",
    "is_at_least",
    "jain_index",
    "mean_ci",
    "mean_time",
    "moving_mean_ci",
    "narrowing",
    "no_less_than_0",
    "plan_measurement",
    "quantile_rank",
    "r_squared",
    "search",
    "steady_state",
    "warm_up_length",
    "wilson_interval",
]
