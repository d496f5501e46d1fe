"""The language of interval sequences: its grammar, and how that is said in it which others say otherwise."""

from __future__ import annotations

from typing import Final

from tidegate.algebra.text.parsing import Language

_ELSEWHERE = {
    "": {"SELECT": "an interval sequence begins with EVENT ISEQ; behind it stands SELECT with a condition"},
    "ISEQ": {
        ",": "between restrictions stands AND, and before the window a semicolon: (A, B; 30s)",
        "&": "write AND",
        "|": "write OR",
        "!=": "write two alternatives: (A.ts < B.ts OR A.ts > B.ts)",
        "<>": "write two alternatives: (A.ts < B.ts OR A.ts > B.ts)",
        "NOT": "that no such interval is there is an anti_join in Python",
        "WITHIN": "the window stands behind the intervals: (A, B; 30s)",
        "WHERE": "a condition on data stands behind the sequence: SELECT A.item = B.item",
        ")": "the window stands behind the intervals: (A, B; 30s)",
        "]": "a restriction compares two ends: A.ts < B.te",
    },
}
INTERVAL_SEQUENCES: Final = Language(
    "interval_sequences.lark",
    _ELSEWHERE,
    frozenset(),
    frozenset(),
    aggregates="a condition speaks of one match; matches are grouped in Python: group_by(...).agg(n=tg.count())",
)
