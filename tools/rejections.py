"""How often a query is rejected that is in truth answerable, measured on random queries over a small scope.

    python tools/rejections.py --cases 2000

A query over a product promises progress on one instant, and a relation of its instants. In truth it keeps the first
promise if, for every stream, the rows that matter to a result row are not arbitrarily far ahead of it, and the second
if every row does; both are found by enumerating all rows of a small world, not by the analysis. What is accepted must
be true (else the exit status is 1). What is rejected though it is true is what the analysis gives up: rule R3 loosens
floor and ceil, and nothing is known of data.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from tests.properties.brute import Grid
    from tests.strategies.formulas import Options, RandomFormula

UNITS = (2, 3)
#: Farther than the constants of any query here add up to, and the reach of the world, a little beyond that.
FAR, REACH = 30, 42
FAMILIES = {
    "comparisons, min, max, not, or": (False, False),
    "with floor and ceil": (True, False),
    "with conditions on data": (False, True),
    "with both": (True, True),
}


def rows_of(made: RandomFormula) -> dict[str, Grid]:
    """All rows of the small world that satisfy the query's condition.

    Conditions stay true when all instants move by the least common multiple of the units, so the first instant, which
    is the promised one, runs through one such period only.
    """
    import numpy as np

    from tests.properties.brute import holds

    promised, *others = made.instants
    period = lcm(*UNITS)
    axes = [np.arange(period), *[np.arange(-REACH, period + REACH)] * len(others), *[np.arange(2)] * len(made.data)]
    names = (promised, *others, *made.data)
    grids = np.meshgrid(*axes, indexing="ij")
    columns = {name: axis.reshape(-1).astype(np.int64) for name, axis in zip(names, grids, strict=True)}
    satisfied = holds(made.condition, columns)
    return {name: column[satisfied] for name, column in columns.items()}


def judge(made: RandomFormula, options: Options, told: Counter[str]) -> None:
    """Counts of one query what is true and what the analysis says."""
    import numpy as np

    from tests.properties.brute import holds
    from tests.strategies.formulas import random_consequence
    from tidegate.analysis.federation.federation import federation
    from tidegate.analysis.progress.propagation import propagation
    from tidegate.analysis.validity.validity import refuting

    rows, found = rows_of(made), federation(made.node)
    promised = made.instants[0]
    some = bool(len(rows[promised]))
    told["queries"] += 1
    if not found.zones:  # an error of its own, which names the contradiction
        told["unsound"] += some
        return
    if not some:
        told["empty, not noticed"] += 1
        return
    ahead = [np.minimum.reduce([rows[y] - rows[promised] for y in names]).max() for names in made.progressing]
    _count("progress", all(far < FAR for far in ahead), propagation(found, promised).is_finite, told)
    relation = random_consequence(made, 0, options)
    kept = bool(holds(relation, rows).all())
    _count("relation", kept, refuting(found, relation, made.node.schema) is None, told)


def _count(promise: str, kept: bool, accepted: bool, told: Counter[str]) -> None:
    told[f"{promise} true"] += kept
    told[f"{promise} rejected"] += kept and not accepted
    told["unsound"] += accepted and not kept


def measure(rounding: bool, data: bool, seeds: range) -> Counter[str]:
    """The counts of a family."""
    from tests.strategies.formulas import Options, random_formula

    options = Options(UNITS, rounding, data, widths=((1, 1), (2,), (1, 1, 1), (2, 1), (1, 2)), most=2)
    told = Counter[str]()
    for seed in seeds:
        judge(random_formula(seed, options), options, told)
    return told


def row(name: str, told: Counter[str]) -> str:
    """A line of the table: of the promises that are true, how many are rejected."""
    cells = []
    for promise in ("progress", "relation"):
        true, lost = told[f"{promise} true"], told[f"{promise} rejected"]
        cells.append(f"{lost:>7} of {true:<5} {100 * lost / max(1, true):>5.1f} %")
    return f"{name:32}{told['queries']:>8}  {'  '.join(cells)}{told['empty, not noticed']:>8}{told['unsound']:>9}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="how often a promise that is kept is rejected")
    parser.add_argument("--cases", type=int, default=2000, help="queries per family")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args(arguments)
    print(
        f"{'conditions':32}{'queries':>8}  {'progress rejected':24}  {'relation rejected':22}{'empty':>8}{'unsound':>9}"
    )
    wrong = 0
    for name, (rounding, data) in FAMILIES.items():
        told = measure(rounding, data, range(options.seed, options.seed + options.cases))
        wrong += told["unsound"]
        print(row(name, told), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
