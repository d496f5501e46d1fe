"""The language of row patterns: its grammar, and how that is said in it which others write otherwise."""

from __future__ import annotations

from typing import Final

from tidegate.algebra.text.parsing import Language
from tidegate.algebra.text.row_patterns.filtered import filtered

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
_WORDS: Final = tuple(_ORDER)
_ONE_STREAM = "a query reads one stream: join in Python, and read the clause over the result"
_SIDE_BY_SIDE = "rows that follow each other are written side by side: A B"
_ONE_QUANTIFIER = "one quantifier is enough; of a part that has one write (A+)*"
ABSENT: Final = "no row that satisfies N is written !N[5m]; where rows are skipped, !N"
_LEFT_OUT = "leave it out: a match is looked for from each row on"
#: How values are written that SQL writes in words.
VALUES: Final = {
    "FILTER": "aggregate a value that is NULL elsewhere: SUM(if(condition, A.x, NULL))",
    "&": "write AND",
    "|": "write OR",
}
_IN_CLAUSE: Final = {
    "PARTITION": {"(": "keys are attributes: compute them in Python, with with_(...)"},
    "ORDER": {
        "(": "rows are in order of attributes: compute them in Python, with with_(...)",
        "NULLS": "leave it out: an instant is never NULL",
    },
    "MEASURES": VALUES | dict.fromkeys(("ONE", "ALL", "AFTER", "PATTERN"), "a measure has a name: COUNT(*) AS n"),
    "ONE": dict.fromkeys(
        ("SHOW", "OMIT", "WITH"), "one row a match shows empty matches: others are asked for with ALL ROWS PER MATCH"
    ),
    "ALL": {
        "EMPTY": "write SHOW EMPTY MATCHES, OMIT EMPTY MATCHES or WITH UNMATCHED ROWS",
        "MATCHES": "of the matches from a row the preferred one is taken: every match is written in Python",
    },
    "AFTER": {"PATTERN": "write SKIP PAST LAST ROW, SKIP TO NEXT ROW, SKIP TO FIRST A or SKIP TO LAST A"},
    "PATTERN": {
        ",": "variables that follow each other have no comma between them: A B",
        "->": _SIDE_BY_SIDE,
        "AND": _SIDE_BY_SIDE,
        "OR": "alternatives are written A | B",
        "~": ABSENT,
        "-": "rows that are matched and not reported are written {- A -}",
        "{": "rows that are matched and not reported are written {- A -}",
        "+": _ONE_QUANTIFIER,
        "*": _ONE_QUANTIFIER,
        ".": "the pattern has variables; conditions on their rows stand in DEFINE",
    },
    "WITHIN": {"<": "write <=: a duration is the most that a distance can be"},
    "SUBSET": {"AS": "a subset is written U = (A, B)"},
    "DEFINE": VALUES | {"AS": "a comma stands between definitions: A AS ..., B AS ..."},
}


def _misplaced(clause: str) -> dict[str, str]:
    """What is wrong with a clause that comes where another one has begun already, or before PATTERN has come."""
    place = _WORDS.index(clause)
    said = {word: f"{_ORDER[word]} stands before {_ORDER[clause]}" for word in _WORDS[:place]}
    if place < _WORDS.index("PATTERN"):
        said |= dict.fromkeys(("WITHIN", "SUBSET", "DEFINE"), "PATTERN (...) is missing before it")
        said |= dict.fromkeys(("INITIAL", "SEEK"), _LEFT_OUT)
    else:
        said["WITHIN"] = "WITHIN stands behind PATTERN (...)"
    if clause not in ("ONE", "ALL"):
        said[clause] = f"{_ORDER[clause]} is there already"
    return said


_ELSEWHERE: Final = {
    "": {"SELECT": "a query begins with FROM: of its measures you select in Python, with select(...)"},
    "FROM": dict.fromkeys((",", "JOIN", "INNER", "LEFT"), _ONE_STREAM)
    | {"WHERE": "a clause reads all rows: filter in Python, and read it over the result"},
    **{clause: _misplaced(clause) | said for clause, said in _IN_CLAUSE.items()},
}
ROW_PATTERNS: Final = Language(
    "row_patterns.lark", _ELSEWHERE, frozenset(_ORDER) - {"PARTITION"}, frozenset(("WITHIN",)), filtered=filtered
)
#: A pattern by itself, as Python takes it.
PATTERNS: Final = Language(
    "row_patterns.lark", {"": _IN_CLAUSE["PATTERN"]}, frozenset(), frozenset(), start="alternatives"
)
