"""The compiled kernels beside Polars: grouping a million rows in 100,000 groups, in pairs."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import queries
from benchmarks.run import median
from tidegate.runtime.eval.aggregates import compiled as grouping
from tidegate.runtime.eval.aggregates.partials import partial
from tidegate.runtime.eval.relational import evaluate


def main() -> None:
    """Prints milliseconds of both, medians of five."""
    (buffer,) = queries.program("tumbling").explain().lowered().buffers
    assert buffer.partial is not None
    group = buffer.partial
    events = queries.rows(1_000_000, 1000).with_columns(pl.col("time").dt.epoch("us"))
    rows = evaluate(buffer.chain, {0: events})

    def run() -> None:
        partial(group, rows)

    run()  # compiles
    compiled = median(run)
    grouping.MANY_ROWS = grouping.MANY_ROWS_LOADED = rows.height + 1
    plain = median(run)
    print("grouping 1,000,000 rows by an integer and an instant: count, sum of doubles, maximum")
    print(f"  compiled {1000 * compiled:.0f} ms, Polars {1000 * plain:.0f} ms, ratio {plain / compiled:.1f}")


if __name__ == "__main__":
    main()
