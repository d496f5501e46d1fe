"""The family of random row patterns that compiled kernels search for, against the meaning."""

from __future__ import annotations

import random
import traceback
from dataclasses import dataclass, field

from tests.properties.drive import Tally
from tests.strategies.searched_sequences import Searched, found_by, random_searched
from tests.thresholds import THRESHOLDS, small
from tidegate.algebra.semantics import bags_equal
from tidegate.analysis.ordered.sequences.tables import tables_of

WORTH = next(one for one in THRESHOLDS if str(one) == "ordered.sequences.found.WORTH")
#: What else decides which ways searches go.
SIZES = [one for one in THRESHOLDS if one.module in ("ordered.sequences.found", "ordered.sequences.nodes")]


@dataclass(slots=True)
class KernelFamily:
    """Operators of random patterns, step by step, over rows in any order and with restarts; most go on from threads."""

    tally: Tally = field(default_factory=Tally)

    def run(self, seed: int) -> str | None:
        """What a case breaks, with as few rows as show it; None if nothing."""
        case = random_searched(random.Random(f"sequence kernels {seed}"))
        self.tally.cases += 1
        if isinstance(tables_of(case.node), str):
            return None
        self.tally.valid += 1
        found = failure(case, seed)
        if found is None:
            return None
        rows = list(case.rows)
        for row in case.rows:
            less = Searched(case.node, tuple(other for other in rows if other != row))
            if less.rows and failure(less, seed) is not None:
                rows.remove(row)
        small = Searched(case.node, tuple(rows))
        return f"{failure(small, seed)}\n{small.node.text(['S'])}\n{sorted(small.rows, key=lambda row: row[1:3])}"


def failure(case: Searched, seed: int) -> str | None:
    """How what is found differs from what is meant."""
    rng = random.Random(f"sizes of sequence kernels {seed}")
    size = rng.choice(SIZES)
    try:
        with (
            small(WORTH if rng.random() < 0.8 else None),
            small(size, rng.choice(size.small)),
        ):
            meant, found = case.meant, found_by(random.Random(seed), case)
    except Exception as error:  # noqa: BLE001  # a crash is a failing case like any other, to be shrunk and shown
        return "".join(traceback.format_exception(error, limit=-4))
    return None if bags_equal(found, meant) else f"meant {meant}\nfound {found}"


KERNELS = KernelFamily()
