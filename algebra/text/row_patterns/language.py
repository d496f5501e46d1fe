"""The language of row patterns: its grammar, and how that is said in it which others write otherwise."""

from __future__ import annotations

from typing import Final

from tidegate.algebra.text.parsing import Language

#: The clauses by their first words, in the order in which they stand.
_ORDER: Final = {
    "PARTITION": "PARTITION BY",
    "ORDER": "ORDER BY",
    "MEASURES": "MEASURES",
    "ONE": "ONE ROW PER MATCH",
    "ALL": "ALL ROWS PER MATCH",
    "AFTER": "AFTER MATCH SKIP",
    "PATTERN": "PATTERN",
    "WITHIN": "WITHIN",
    "SUBSET": "SUBSET",
    "DEFINE": "DEFINE",
}
_SELECT = (
    "a query begins with FROM, and its result has the measures: take of them what you need in Python, with select(...)"
)
_ONE_STREAM = "a query reads one stream: join in Python, and read the clause over the result"
_VALUES = {
    "IN": "write x = 'a' OR x = 'b'",
    "LIKE": "it is a function: like(x, 'a%')",
    "BETWEEN": "write x >= 5 AND x <= 6",
    "CASE": "write if(condition, value, other value)",
    "WHEN": "write if(condition, value, other value)",
    "CAST": "a cast is a function of its type: cast_bigint(x)",
    "FILTER": "write SUM(if(condition, A.x, NULL))",
    "&": "write AND",
    "|": "write OR",
}
_IN_CLAUSE: Final = {
    "PARTITION": {"(": "keys are attributes: compute them in Python, with with_(...)"},
    "ORDER": {
        "(": "rows are in order of attributes: compute them in Python, with with_(...)",
        "NULLS": "leave it out: an instant is never NULL",
    },
    "MEASURES": _VALUES,
    "ONE": {},
    "ALL": {"MATCHES": "of all matches from a row the preferred one is taken: every match is written in Python"},
    "AFTER": {"FIRST": "name the variable: SKIP TO FIRST A", "LAST": "name the variable: SKIP TO LAST A"},
    "PATTERN": {
        ",": "variables that follow each other have no comma between them: A B",
        "->": "rows that follow each other are written side by side: A B",
        "AND": "rows that follow each other are written side by side: A B",
        "OR": "alternatives are written A | B",
        "NOT": "no row that satisfies N: !N, or !N[5m]",
        "~": "no row that satisfies N: !N, or !N[5m]",
        "-": "rows that are matched and not reported are written {- A -}",
        "+": "one quantifier is enough; of a part that has one write (A+)*",
        "*": "one quantifier is enough; of a part that has one write (A+)*",
        ".": "the pattern has variables; conditions on their rows stand in DEFINE",
        "INITIAL": "leave it out: a match is looked for from each row on",
        "SEEK": "leave it out: a match is looked for from each row on",
        ")": "the empty pattern is written PATTERN (())",
    },
    "WITHIN": {"FROM": "a match lasts so long at most: WITHIN 5m"},
    "SUBSET": {"AS": "a subset is written U = (A, B)"},
    "DEFINE": _VALUES | {"AS": "a comma stands between definitions: A AS ..., B AS ..."},
}


def _misplaced(clause: str) -> dict[str, str]:
    """What is wrong with a clause that comes where another one has begun already."""
    words = list(_ORDER)
    earlier = words[: words.index(clause)]
    said = {word: f"{_ORDER[word]} stands before {_ORDER[clause]}" for word in earlier}
    return said | ({} if clause in ("ONE", "ALL") else {clause: f"{_ORDER[clause]} is there already"})


_ELSEWHERE: Final = {
    "": {"SELECT": _SELECT},
    "FROM": dict.fromkeys((",", "JOIN", "INNER", "LEFT"), _ONE_STREAM)
    | {"WHERE": "a clause reads all rows: filter in Python, and read it over the result"},
    **{clause: _misplaced(clause) | said for clause, said in _IN_CLAUSE.items()},
}
ROW_PATTERNS: Final = Language("row_patterns.lark", _ELSEWHERE, frozenset(_ORDER) - {"PARTITION"})
#: A pattern by itself, as Python takes it.
PATTERNS: Final = Language("row_patterns.lark", {"": _IN_CLAUSE["PATTERN"]}, frozenset(), start="alternatives")
