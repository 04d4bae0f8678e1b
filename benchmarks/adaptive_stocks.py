"""When should a plan change on a stream with many small changes?

Stock quotes, all symbols about equally frequent (figure 7 of the paper that ``_adaptive.py``
names): throughput, gain over a plan that never changes, changes of plan, and the share of the time that deciding and
planning took, for each way to decide. Means over five pattern sets.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from benchmarks._adaptive import METHODS, PATTERNS, REPEATS, SETS, SIZES, STOCKS, cases_of, compare, plot_methods
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(quick: bool, progress: Steps) -> Result:
    sizes, seeds, events, repeats = ((3, 6), 1, 6_000, 1) if quick else (SIZES, PATTERNS, 60_000, REPEATS)
    kinds = itertools.product(sizes, range(seeds), SETS)
    cases = [c for size, seed, patterns in kinds for c in cases_of(STOCKS, patterns, size, events, seed)]
    return compare(STOCKS, cases, METHODS, repeats, progress)


def plot(result: Result, figure: Figure) -> None:
    plot_methods(result, figure)
