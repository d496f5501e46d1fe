"""Rows in a context, said in three ways: by the operator of contexts, by a folded join, and by joins with starts and
ends.

    python benchmarks/context_forms.py [--rows 100000]

The model is the plainest: one context, which one signal begins and the next one ends, so that the last signal before a
row says whether it holds. All three have the same rows. Seconds are those of the process, on one core; rows kept are
the most after a batch. Contexts that depend on each other only the operator has.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before Polars counts cores
    os.environ.setdefault("POLARS_MAX_THREADS", "1")

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.contexts import BATCHES
from benchmarks.contexts_data import REPORTS, SECONDS, SIGNALS, Rows, Setting, model
from benchmarks.figures import PAIRS, machine

E, S, Z = REPORTS.as_("e"), SIGNALS.where(SIGNALS.begins).as_("s"), SIGNALS.where(~SIGNALS.begins).as_("z")


def by_operator() -> tg.Relation:
    """A look-up of the changes that the operator yields."""
    inside = REPORTS.in_context(model(Setting(0, 0.5)), "c0")
    return inside.select("car", "segment", "time").distinct()


def by_folding() -> tg.Relation:
    """The last of all signals before a row, which fold to one of each segment."""
    s = SIGNALS.as_("s")
    joined = E.join(s, s.segment == E.segment, s.time < E.time)
    last = joined.group_by(car=E.car, segment=E.segment, time=E.time).agg(holds=tg.last(s.begins, by=s.time))
    return last.where(last.holds).select("car", "segment", "time")


def by_joins() -> tg.Relation:
    """A start before a row, and no end between the two."""
    started = E.join(S, S.segment == E.segment, S.time < E.time)
    holding = started.anti_join(Z, Z.segment == S.segment, S.time < Z.time, Z.time < E.time)
    return holding.select(car=E.car, segment=E.segment, time=E.time).distinct()


FORMS: dict[str, Callable[[], tg.Relation]] = {"operator": by_operator, "folding": by_folding, "joins": by_joins}


def run(form: Callable[[], tg.Relation], inputs: Rows) -> tuple[float, int, set[Any]]:
    """The seconds of all batches, the most rows that were kept, and the results."""
    span, taken, kept = -(-SECONDS // BATCHES), 0.0, 0
    with tg.program(Q=form()).session() as session:
        for first in range(0, SECONDS, span):
            for name, rows in inputs.items():
                session.push(name, rows.filter(pl.col("time").is_between(first, first + span, closed="left")))
                session.advance(name, first + span - 1)
            begun = time.process_time()
            session.step()
            taken += time.process_time() - begun
            kept = max(kept, sum(session.live_rows().values()))
        return taken, kept, {tuple(row.values()) for row in session.results("Q")}


def main() -> int:
    """Prints the figures; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--windows", type=int, nargs="+", default=[2, 30])
    chosen = options.parse_args()
    print(machine())
    equal = True
    for windows in chosen.windows:
        inputs = Setting(chosen.rows, 0.2, windows=windows).inputs()
        ran = {name: [run(form, inputs) for _ in range(PAIRS)] for name, form in FORMS.items()}
        found = next(iter(ran.values()))[0][2]
        equal = equal and all(rows == found for runs in ran.values() for _, _, rows in runs)
        for name, runs in ran.items():
            seconds, kept = statistics.median(taken for taken, _, _ in runs), max(kept for _, kept, _ in runs)
            print(f"{windows:3} windows a segment, {name:9}{seconds:7.2f} s, {kept:7,} rows kept, {len(found):,} found")
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
