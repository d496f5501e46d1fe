"""Row patterns as tests write them, and the rows that they are matched with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import tidegate as tg
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.ordered.sequences.definition import (
    Definition,
    Limit,
    Measure,
    Point,
    Preferred,
    Reported,
    Selection,
    Skip,
    within,
)
from tidegate.algebra.ordered.sequences.navigation import (
    Classifier,
    MatchNumber,
    Navigation,
    RowOf,
    RowsAggregate,
    RowValue,
)
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.partition import Partition
from tidegate.algebra.ordered.sequences.pattern import (
    EMPTY,
    Absence,
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Step,
)
from tidegate.algebra.semantics import aggregated
from tidegate.algebra.terms import Attr, Term, attributes_of

#: What the rows of tests have: the instant, the order of rows of one instant, and a value.
EVENTS = tg.stream("E", "t bigint, tie bigint, x bigint", progress="t")
VARIABLES = ("A", "B", "C", "D", "N")


def _navigations() -> dict[str, Navigation]:
    rows = {"prev": RowOf(step=-1), "prev2": RowOf(step=-2), "next": RowOf(step=1), "next2": RowOf(step=2)}
    for end, variable, offset in product(("first", "last"), VARIABLES, (0, 1)):
        rows[f"{end}_{variable}{offset or ''}"] = RowOf((variable,), end, offset)  # type: ignore[arg-type]
    rows |= {"first": RowOf(end="first"), "prev_A": RowOf(("A",), step=-1), "next_A": RowOf(("A",), step=1)}
    found: list[Navigation] = [
        RowValue(f"{name}_{attribute}", Attr(attribute), row) for name, row in rows.items() for attribute in "tx"
    ]
    found += [RowsAggregate(Aggregate(f"count_{v}", Function.COUNT), (v,)) for v in VARIABLES]
    found += [RowsAggregate(Aggregate(f"sum_{v}", Function.SUM, Attr("x")), (v,)) for v in VARIABLES]
    found += [
        RowsAggregate(Aggregate("count_all", Function.COUNT)),
        Classifier("is"),
        Classifier("was", RowOf(step=-1)),
        Classifier("was2", RowOf(step=-2)),
        Classifier("will", RowOf(step=1)),
        MatchNumber("number"),
    ]
    return {navigation.name: navigation for navigation in found}


#: What conditions and measures of tests can read beside the row: `prev_t`, `first_A_x`, `count_B`.
NAVIGATIONS = _navigations()
_TEXTS = {"is", "was", "was2", "will"}
READ = tg.stream(
    "R",
    "t bigint, tie bigint, x bigint, " + ", ".join(f"{n} {'string' if n in _TEXTS else 'bigint'}" for n in NAVIGATIONS),
    progress="t",
)
Condition = Callable[[Any], Any]


def sequences(
    pattern: str | Pattern,
    *,
    select: Selection | None = None,
    skip: str = "past last row",
    limits: Iterable[Limit | int] = (),
    measures: dict[str, Condition] | None = None,
    reported: Reported = Reported(),
    subsets: tuple[tuple[str, tuple[str, ...]], ...] = (),
    **conditions: Condition | Term,
) -> Sequences:
    """The node of a pattern over `EVENTS`, with the conditions of its variables. A limit that is a number is one of
    the whole match. `skip`: "next row", "first A".
    """
    definitions = tuple(Definition(variable, term(condition)) for variable, condition in conditions.items())
    named = tuple(Measure(name, term(measure)) for name, measure in (measures or {}).items())
    terms = (*(definition.condition for definition in definitions), *(measure.term for measure in named))
    read = {name for read in terms for name in attributes_of(read)}
    to, _, variable = skip.partition(" ") if skip.split()[0] in ("first", "last") else (skip, "", "")
    return Sequences(
        EVENTS._node,
        (),
        "t",
        "tie",
        pattern if not isinstance(pattern, str) else written(pattern),
        definitions,
        tuple(navigation for name, navigation in NAVIGATIONS.items() if name in read),
        named,
        tuple(within(limit) if isinstance(limit, int) else limit for limit in limits),
        select or Preferred(Skip(to, variable or None)),  # type: ignore[arg-type]
        reported,
        subsets,
    )


def term(condition: Condition | Term) -> Term:
    if not callable(condition):
        return condition
    written: Term = condition(READ)._term
    return written


def limit(text: str) -> Limit:
    """`last(B) - first(A) <= 5`; without a variable of the match, `last - first <= 5`; or at least so many, `>= 5`."""
    found = re.fullmatch(r"(first|last)(?:\((\w+)\))? - (first|last)(?:\((\w+)\))? (<=|>=) (-?\d+)", text)
    assert found is not None, text
    left, right = Point(found[2], found[1]), Point(found[4], found[3])  # type: ignore[arg-type]
    return Limit(left, right, int(found[6])) if found[5] == "<=" else Limit(right, left, -int(found[6]))


def partition(node: Sequences, rows: Sequence[tuple[int, int | None]]) -> Partition:
    """The partition of rows of instant and value, in order."""
    return Partition(node, [(t, number, x) for number, (t, x) in enumerate(rows)], aggregated)


_TOKEN = re.compile(r"\s*(PERMUTE|!\w+|!|\[\d+\]|\{-|-\}|\{\d*,?\d*\}\??|[*+?]\??|[()|,^$]|\w+)")


def written(text: str) -> Pattern:
    """The pattern that a text writes as SQL does: `A (B | C)+? !N[3]`."""
    tokens = _TOKEN.findall(text)
    assert "".join(tokens) == text.replace(" ", ""), text
    pattern, rest = _alternation(tokens)
    assert not rest, rest
    return pattern


def _alternation(tokens: list[str]) -> tuple[Pattern, list[str]]:
    parts = []
    while True:
        part, tokens = _concatenation(tokens)
        parts.append(part)
        if tokens[:1] != ["|"]:
            return (parts[0] if len(parts) == 1 else Alternation(tuple(parts))), tokens
        tokens = tokens[1:]


def _concatenation(tokens: list[str]) -> tuple[Pattern, list[str]]:
    parts: list[Pattern] = []
    while tokens and tokens[0] not in ("|", ")", ",", "-}"):
        part, tokens = _one(tokens)
        while tokens and re.match(r"[*+?]|\{\d|\{,", tokens[0]):
            part, tokens = _repeated(part, tokens[0]), tokens[1:]
        parts.append(part)
    return (parts[0] if len(parts) == 1 else Concatenation(tuple(parts)) if parts else EMPTY), tokens


def _one(tokens: list[str]) -> tuple[Pattern, list[str]]:
    first, rest = tokens[0], tokens[1:]
    if first == "(":
        pattern, rest = _alternation(rest)
        return pattern, rest[1:]
    if first == "{-":
        pattern, rest = _alternation(rest)
        return Exclusion(pattern), rest[1:]
    if first == "PERMUTE":
        parts = []
        while rest[0] != ")":
            part, rest = _alternation(rest[1:])
            parts.append(part)
        return Permutation(tuple(parts)), rest[1:]
    if first[0] == "!":
        part, rest = _one(rest) if first == "!" else (Step(first[1:]), rest)
        ticks = int(rest[0][1:-1]) if rest and rest[0][0] == "[" else None
        return Absence(part, ticks), rest if ticks is None else rest[1:]
    return (Anchor("start" if first == "^" else "end") if first in "^$" else Step(first)), rest


def _repeated(part: Pattern, sign: str) -> Pattern:
    greedy = not (len(sign) > 1 and sign.endswith("?"))
    sign = sign if greedy else sign[:-1]
    if sign in ("*", "+", "?"):
        return Repetition(part, int(sign == "+"), 1 if sign == "?" else None, greedy)
    least, comma, most = sign[1:-1].partition(",")
    return Repetition(part, int(least or 0), int(most) if most else None if comma else int(least), greedy)
