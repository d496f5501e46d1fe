"""Slips in windows that depend on rows or overlap."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

PIECES = "runtime/ordered/windows/pieces.py"
OPERATOR = "runtime/ordered/windows/operator.py"
ZONES = "analysis/ordered/windows.py"
MEANING = "algebra/ordered/windows.py"

GROUP = Group(
    "windows of rows",
    ("tests/runtime/test_windows.py", "tests/properties/test_operators.py"),
    (
        bug(
            "a row at the end of a session begins another",
            PIECES,
            "last[order][:-1] > gap)",
            "last[order][:-1] >= gap)",
        ),
        bug(
            "sessions of two keys are one",
            PIECES,
            "(np.diff(of[order]) != 0) | (first",
            "(first",
        ),
        bug(
            "a session ends with its first rows",
            PIECES,
            "pl.Series(LAST, last[ends[: len(starts)]])",
            "pl.Series(LAST, last[starts])",
        ),
        bug(
            "a window is computed again",
            PIECES,
            "low = np.maximum(last, next_end(window, after))",
            "low = last",
        ),
        bug(
            "a pane goes with its own end",
            "runtime/ordered/windows/operator.py",
            "pl.Series(pieces.until(both) > reached)",
            "pl.Series(both.get_column(LAST).to_numpy() > reached)",
        ),
        bug(
            "a row at an end is in the next window",
            PIECES,
            "    return -((window.offset - time) // window.every) *",
            "    return ((time - window.offset) // window.every + 1) *",
        ),
        bug(
            "windows that grow begin at their own end",
            PIECES,
            "    return (end - 1 - window.offset) // window.size * window.size + window.offset\n",
            "    return (end - window.offset) // window.size * window.size + window.offset\n",
        ),
        bug(
            "windows are looked at when rows come only",
            OPERATOR,
            "    np.minimum.at(look, rows.get_column(PARTITION).to_numpy(), pieces.next_ends(rows, reached))\n",
            "",
        ),
        bug(
            "windows are looked at anew after a start when rows come only",
            OPERATOR,
            "KeptExtract(partitions, rows, looks(pieces, rows, len(partitions), ticks(reached)))",
            "KeptExtract(partitions, rows, np.full(len(partitions), NO_LOOK))",
        ),
        bug(
            "a session begins no longer ago than its gap",
            ZONES,
            'return And((Compare(start, "<=", row), Compare(end, "=", Shift(row, window.gap)), equal))',
            'return And((Compare(start, "=", row), Compare(end, "=", Shift(row, window.gap)), equal))',
        ),
        bug(
            "the last row of a session has any keys",
            ZONES,
            "Shift(row, window.gap)), equal))",
            "Shift(row, window.gap))))",
        ),
    ),
)
