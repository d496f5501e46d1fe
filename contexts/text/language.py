"""The language of queries in contexts: its grammar, and how that is said in it which others say otherwise."""

from __future__ import annotations

from typing import Final

from tidegate.algebra.text.parsing import Language

_ELSEWHERE = {
    "": {"SELECT": "a query begins with DERIVE, INITIATE, SWITCH or TERMINATE"},
    "MODEL": {"PARTITION": "the keys are said so: MODEL Traffic BY segment CONTEXT ..."},
    "DERIVE": {"PATTERN": "name what is derived: DERIVE Toll(p.vid, p.sec)", "FROM": "events are named by PATTERN"},
    "PATTERN": {
        "->": "write SEQ(First a, Second b)",
        "AND": "conditions stand in WHERE",
        "WITHIN": "compare the instants: WHERE b.time <= a.time + 5min",
    },
    "WHERE": {
        "&": "write AND",
        "|": "write OR",
        "PATTERN": "PATTERN stands before WHERE",
        "CAUSE": "CAUSE stands behind WHERE",
    },
    "CONTEXT": {"WHERE": "WHERE stands before CONTEXT", "AND": "write a comma: one of these contexts holds"},
}
CONTEXTS: Final = Language(
    "contexts.lark",
    _ELSEWHERE,
    frozenset(),
    frozenset(),
    aggregates="a condition speaks of single events; group them in Python, group_by(...).agg(n=tg.count()), and give "
    "the groups as a stream of the text",
)
