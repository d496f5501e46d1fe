"""Slips in how long matches of row patterns wait, and in how many rows are kept for them."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

WAITS = "analysis/ordered/sequences/waits.py"
BOUNDS = "analysis/ordered/sequences/bounds.py"
COMPILED = "runtime/ordered/sequences/compiled.py"
OPERATOR = "runtime/ordered/sequences/operator.py"

GROUP = Group(
    "rows of row patterns",
    ("tests/properties/test_kept_rows.py",),
    (
        bug(
            "no match waits for a row behind it",
            WAITS,
            "if max(_steps(node, variable).values(), default=0) > known:",
            "if False:",
        ),
        bug(
            "rows that must not come wait for no row behind them",
            WAITS,
            "if any(step > (rows if anchor == RowOf() else 0) for anchor, step in _steps(node, variable).items()):",
            "if False:",
        ),
        bug(
            "what is skipped waits no longer than what is matched",
            WAITS,
            "known = min(rows, 1) if skips_till_next else rows",
            "known = rows",
        ),
        bug(
            "a limit of a row behind ends no wait",
            WAITS,
            "if bound.later.step >= step and _anchor(",
            "if bound.later.step < 0 and _anchor(",
        ),
        bug(
            "a limit of the next row is one of the row behind it",
            WAITS,
            "if bound.later.step >= step and _anchor(",
            "if bound.later.step > 0 and _anchor(",
        ),
        bug(
            "a missing row keeps a limit",
            WAITS,
            'if not (isinstance(part, Call) and part.op == "eq_null_safe")]',
            "if True]",
        ),
        bug("the row behind a match is one that is measured", WAITS, "rows >= row.step or _limit(", "True or _limit("),
        bug("rows that are read ahead are not kept", BOUNDS, "rows = max(most, 1) - 1 + ahead + back", "rows = max(most, 1) - 1 + back"),
        bug(
            "what lasts in a partition is over everywhere",
            BOUNDS,
            "lasting = waits.leading + (waits.trailing if waits.absent is None else 0)",
            "lasting = 0",
        ),
        bug("a partition of which matches have numbers is forgotten", BOUNDS, "max(back, int(marks)), lasting=0", "back, lasting=0"),
        bug(
            "limits that are there are missing",
            BOUNDS,
            "        if _ends(node, others.values()):\n            gaps = others\n",
            "",
        ),
        bug(
            "kernels keep what must not come before a match",
            COMPILED,
            "            look[idle] = np.minimum(look[idle], rows.time[(rows.offsets[:-1] + before)[idle]] + self.leading)\n",
            "",
        ),
        bug(
            "the rule keeps what must not come before a match",
            OPERATOR,
            "return next((time + leading for time in partition.times if time > until - leading), NO_LOOK)",
            "return NO_LOOK",
        ),
    ),
)  # fmt: skip
