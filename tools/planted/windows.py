"""Slips in windows that depend on rows or overlap."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

SESSIONS = "runtime/ordered/windows/sessions.py"
PANES = "runtime/ordered/windows/panes.py"
PARTIAL = "runtime/ordered/windows/partial_panes.py"
HOPPING = "runtime/ordered/windows/hopping.py"
QUEUES = "runtime/ordered/windows/queues.py"
PAIRS = "runtime/eval/aggregates/pairs.py"
ZONES = "analysis/ordered/windows.py"

GROUP = Group(
    "windows of rows",
    ("tests/runtime/test_windows.py", "tests/runtime/test_pane_queues.py", "tests/properties/test_operators.py"),
    (
        bug(
            "a row at the end of a session begins another",
            SESSIONS,
            "last[order][:-1] > self.gap)",
            "last[order][:-1] >= self.gap)",
        ),
        bug(
            "sessions of two keys are one",
            SESSIONS,
            "(np.diff(of[order]) != 0) | (first",
            "(first",
        ),
        bug(
            "a session ends with its first rows",
            SESSIONS,
            "pl.Series(LAST, last[ends[: len(starts)]])",
            "pl.Series(LAST, last[starts])",
        ),
        bug(
            "sessions are looked at when rows come only",
            SESSIONS,
            "        look[sessions.get_column(PARTITION).to_numpy()] = self.ends(sessions)\n",
            "",
        ),
        bug(
            "a window is computed again",
            PARTIAL,
            "first = np.maximum(pane, low[of] + 1)",
            "first = pane",
        ),
        bug(
            "a pane goes with its own end",
            HOPPING,
            "rows.filter(pl.Series(panes.panes.last(pane) > high[of]))",
            "rows.filter(pl.Series(pane > high[of]))",
        ),
        bug(
            "a row at an end is in the next window",
            PANES,
            "        return -((self.offset - time) // self.every)",
            "        return (time - self.offset) // self.every + 1",
        ),
        bug(
            "windows that grow begin at their own end",
            PANES,
            "return (self.block(window) - 1) * self.many if",
            "return window // self.many * self.many if",
        ),
        bug(
            "windows are looked at when rows come only",
            PARTIAL,
            "        look[of] = self.panes.end(high[of] + 1)\n",
            "",
        ),
        bug(
            "windows are looked at anew after a start when rows come only",
            HOPPING,
            "PaneExtract(partitions, rows, latest, panes.looks(latest, high)))",
            "PaneExtract(partitions, rows, latest, np.full_like(high, (1 << 63) - 1)))",
        ),
        bug(
            "after a start a block goes on without what it came to",
            HOPPING,
            "latest = panes.latest(panes.totals(rows.clear(), rows), high)",
            "latest = panes.latest(rows, high)",
        ),
        bug(
            "what a block comes to goes on in the next one",
            PARTIAL,
            "(np.diff(of) != 0) | (np.diff(self.panes.block(pane)) != 0)",
            "np.diff(of) != 0",
        ),
        bug(
            "a window has what is before it in its block",
            PARTIAL,
            "place[ahead & (self.panes.block(pane[place]) != block - 1)] = -1",
            "pass",
        ),
        bug(
            "a window begins with the pane that it is without",
            PARTIAL,
            "self.panes.before(window), True)",
            "self.panes.before(window), False)",
        ),
        bug(
            "panes of a block that has ended stay alone",
            HOPPING,
            "        rows = panes.remainders(rows, ended)\n",
            "",
        ),
        bug(
            "panes are merged again where a block has ended before",
            HOPPING,
            "ended = (block >= of.block(low + 1)[place]) & (block",
            "ended = (block",
        ),
        bug(
            "a pane that goes on is there twice",
            HOPPING,
            "count - gone - goes_on)",
            "count - gone)",
        ),
        bug(
            "a pane that goes on forgets its first rows",
            HOPPING,
            "pl.concat([_of(first, ends), _of(last, goes_on & ~ends)])",
            "_of(first, ends)",
        ),
        bug(
            "rows that stay are those at the front",
            QUEUES,
            "self._first[partitions] + gone",
            "self._first[partitions] + 0 * gone",
        ),
        bug(
            "a partition that moves leaves rows behind",
            QUEUES,
            "                column.move(at, to)\n",
            "",
        ),
        bug(
            "halves of integer sums carry nothing",
            PAIRS,
            "merged = [high + carry, low - carry * _HALF]",
            "merged = [high, low]",
        ),
        bug(
            "sums of doubles forget what they lost",
            PAIRS,
            "(y - part) + (lost_x + lost_y)",
            "(y - part)",
        ),
        bug(
            "the last of equal orders is any",
            PAIRS,
            'sooner | ((own["by"] == other["by"]) & (own["v"] <= other["v"])))',
            "sooner)",
        ),
        bug(
            "every other row of a block has nothing before it",
            PAIRS,
            "later = np.flatnonzero((place & 1 == 0) & (place > 0))",
            "later = np.flatnonzero((place & 1 == 0) & (place > 2))",
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
