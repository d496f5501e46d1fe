"""Slips in what hints of refused queries propose."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

MENDS = "analysis/validity/mends.py"

GROUP = Group(
    "mends",
    ("tests/analysis/test_mends.py",),
    (
        bug(
            "a bound is proposed that is told without a try",
            MENDS,
            "                if self._is_bounded(mended, federation, attribute, i):\n",
            "                if mended is not node:\n",
        ),
        bug(
            "a bound is tried that contradicts the query",
            MENDS,
            "if span[0] > least), None)",
            "if span[0] > 0), None)",
        ),
        bug(
            "periods are bounded before the later end is taken",
            MENDS,
            "first, second = (replacement, bound) if _ends_later(attribute, clause) else (bound, replacement)",
            "first, second = bound, replacement",
        ),
        bug(
            "a mend may leave a stream out",
            MENDS,
            " or _spoken_of(after) != _spoken_of(before):",
            ":",
        ),
        bug(
            "a window is taken of the first instant",
            MENDS,
            "first = next((instants for instants in sets if instants), frozenset[str]())",
            "first = frozenset(node.schema.temporal[:1])",
        ),
    ),
)
