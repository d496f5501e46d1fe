"""The language of situations: its grammar, and how that is said in it which SQL and EPL say otherwise."""

from __future__ import annotations

from typing import Final

from tidegate.algebra.text.parsing import Language

_RUNS = (
    "a pattern has no brackets and no repetition; it relates periods, each of which is a whole run of events: "
    "PATTERN A meets B"
)
_GROUPS = "groups are made in Python: read the text, and group the matches"
_COMPUTED = "RETURN lists what a match has: compute with it in Python, in with_(...) of the matches"
_ONE_STREAM = "a query reads one stream: join in Python, and read the text over the result"
_ELSEWHERE = {
    "": {"SELECT": "a query begins with FROM; what is selected stands at its end: RETURN first(A.x), A.ts"},
    "FROM": dict.fromkeys((",", "JOIN", "INNER", "LEFT"), _ONE_STREAM)
    | {
        "GROUP": "rows with one key are a partition: PARTITION BY key",
        "PATTERN": "DEFINE stands before PATTERN",
        "WHERE": "a query reads all rows of its stream: filter in Python, and read the text over the result",
    },
    "DEFINE": {
        "FOR": "how long it lasts at least is AT LEAST 5 MINUTES",
        "IN": "write x = 'a' OR x = 'b'",
        "LIKE": "it is a function: like(x, 'a%')",
        "&": "write AND",
        "|": "write OR",
        "AS": "a comma stands between situations: A AS ..., B AS ...",
        "PARTITION": "PARTITION BY stands before DEFINE",
        "ORDER": "ORDER BY stands before DEFINE; matches have no order",
        "GROUP": _GROUPS,
    },
    "PATTERN": dict.fromkeys(("(", "+", "*", "{", "?"), _RUNS)
    | dict.fromkeys(("OR", "|"), "alternatives stand between semicolons: A before B; A meets B")
    | {
        ",": "write AND, or a semicolon between alternatives: A before B; A meets B",
        "->": "of periods write A before B; that an event follows another is a join in Python",
        "EVERY": "every combination is a match: leave out EVERY",
        "NOT": "that something does not happen is an anti_join in Python",
        "WHERE": "conditions on events stand in DEFINE; matches are filtered in Python, with where(...)",
        "GROUP": _GROUPS,
    },
    "WITHIN": {"PATTERN": "PATTERN stands before WITHIN", "GROUP": _GROUPS},
    "RETURN": dict.fromkeys(("+", "-", "/", "%", "(", "||"), _COMPUTED)
    | {
        "*": "without RETURN a result is the whole match",
        "WITHIN": "WITHIN stands before RETURN",
        "PATTERN": "PATTERN stands before RETURN",
        "GROUP": _GROUPS,
    },
}
SITUATIONS: Final = Language(
    "situations.lark",
    _ELSEWHERE,
    frozenset(("PATTERN", "WITHIN", "RETURN", "EMIT")),
    frozenset(("WITHIN", "LEAST", "MOST", "BETWEEN")),
)
