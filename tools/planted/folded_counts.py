"""Slips in what is told of rows that fold: how many are settled, and how far back the others reach (rule R34)."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GARBAGE = "runtime/batch/garbage.py"

GROUP = Group(
    "counts of folded rows",
    ("tests/runtime/test_live_state.py", "tests/runtime/test_metrics.py", "tests/runtime/test_why.py"),
    (
        bug(
            "settled rows count among the others",
            GARBAGE,
            "                settled = _rows_of(segments[buffer.id]) - _rows_of(others)\n",
            "                settled = 0\n",
        ),
        bug(
            "settled rows reach back like others",
            GARBAGE,
            "covering([segment.bounds for segment in others])",
            "covering([segment.bounds for segment in segments[buffer.id]])",
        ),
        bug(
            "where rows fold nothing bounds the others",
            "runtime/inspect/metrics/hooks.py",
            "proved = leaf.occurrence.proved(folding=leaf.buffer.id in report.settled)",
            "proved = leaf.occurrence.proved(folding=False)",
        ),
        bug(
            "settled rows stay among those that are not",
            "runtime/eval/aggregates/fold_rows.py",
            "    yield 0, rows.filter(~is_settled)\n",
            "    yield 0, rows\n",
        ),
        bug(
            "rows that fold are told of where the result is complete",
            "runtime/inspect/why.py",
            "                if value not in (INF, -INF):\n",
            "                if value == INF:\n",
        ),
    ),
)
