"""Row patterns that compiled kernels search for, and the steps of their operators over rows that come in any order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

import tidegate as tg
from tests.strategies.sequences import random_pattern
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.definition import DETECTED, EveryMatch
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import (
    Absence,
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Step,
    absent_in,
    patterns_of,
    variables_of,
)
from tidegate.algebra.semantics import evaluate
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.ordered.sequences.tables import tables_of
from tidegate.analysis.ordered.table import family_of
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.ordered.table import load_operator, start_operator
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import as_frame

Row = tuple[Any, ...]
S = tg.stream("S", "k bigint, t bigint, n bigint, v bigint, x double", progress="t")
_V: Any = S


@dataclass(frozen=True, slots=True)
class Searched:
    """A pattern, and rows in the order in which they come."""

    node: Sequences
    rows: tuple[Row, ...]

    @property
    def meant(self) -> list[Row]:
        return in_order(evaluate(self.node, {"S": list(self.rows)}))


def is_nested(pattern: Pattern) -> bool:
    """Whether a repetition is in another one: the reference semantics has far too many words of such a pattern."""
    parts = [part for part in patterns_of(pattern) if isinstance(part, Repetition)]
    return any(isinstance(inner, Repetition) for part in parts for inner in patterns_of(part.part))


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


def random_searched(rng: random.Random, *, waits: bool = True) -> Searched:
    """A case of a pattern that is not refused. `waits`: also with conditions that read rows behind their own, with rows
    that must not come, and with anchors.
    """
    while True:
        try:
            node = _node(rng, waits=waits)
            _ = node.schema
        except QueryError:
            continue
        if waits and node.selection == EveryMatch("next") and is_nested(node.pattern):
            continue
        if waits and isinstance(why := tables_of(node), str) and "for a time of its own" in why:
            continue
        return Searched(node, _rows(rng))


def without_waits(rng: random.Random) -> Searched:
    return random_searched(rng, waits=False)


def _node(rng: random.Random, *, waits: bool) -> Sequences:
    how = rng.choice(("preferred", "preferred", "preferred", "contiguous", "next", "any"))
    pattern = random_pattern(rng, skips=how != "preferred")
    if waits and rng.random() < 0.5:
        pattern = with_absences(rng, pattern)
    if waits and how == "preferred" and rng.random() < 0.15:
        pattern = _anchored(rng, pattern)
    variables = variables_of(pattern)
    define = {name: _condition(rng, name, variables, waits=waits) for name in variables if rng.random() < 0.9}
    define |= {name: _absent(rng, name, variables) for name in absent_in(pattern) if name not in define}
    options: dict[str, Any] = {"matches": how}
    if how == "preferred":
        options["skip"] = rng.choice(("past last row", "past last row", "next row"))
        options["rows"] = rng.choice(("one", "all"))
        options["empty"] = rng.random() < 0.3
    if how in ("next", "any") or rng.random() < 0.5:
        options["within"] = rng.choice((0, 2, 5, 9))
    if rng.random() < 0.4:
        options["limits"] = _limit(rng, variables)
    measured = _measures(variables)
    if how != "preferred":
        del measured["m0"]
    if options.get("rows") == "all" and rng.random() < 0.9:
        measured = {name: one for name, one in measured.items() if name not in ("m3", "m9")}
    measures = {name: measured[name] for name in rng.sample(sorted(measured), rng.choice((0, 1, 3)))}
    keys = rng.choice(((), ("k",), ("k",)))
    relation: Any = _V.sequences(pattern, by=keys, order="t", tie="n", define=define, **options, **measures)
    node: Sequences = relation._node
    return node


def with_absences(rng: random.Random, pattern: Pattern) -> Pattern:
    """The pattern with rows that must not come: at its ends, or anywhere in it."""
    style = rng.random()
    if style < 0.25:
        return Concatenation((_absence(rng), pattern))
    if style < 0.55:
        return Concatenation((pattern, _absence(rng)))
    if style < 0.65:
        return Concatenation((pattern, Repetition(_absence(rng), 0, 1, greedy=rng.random() < 0.5)))
    return _inside(rng, pattern)


def _inside(rng: random.Random, pattern: Pattern) -> Pattern:
    """The pattern with rows that must not come beside some of its steps."""
    match pattern:
        case Step():
            absence = _absence(rng)
            both = (pattern, absence) if rng.random() < 0.5 else (absence, pattern)
            return Concatenation(both) if rng.random() < 0.4 else pattern
        case Concatenation(parts) | Alternation(parts) | Permutation(parts):
            return type(pattern)(tuple(_inside(rng, part) for part in parts))
        case Repetition(part, least, most, greedy):
            return Repetition(_inside(rng, part), least, most, greedy)
        case Exclusion(part):
            return Exclusion(_inside(rng, part))
        case _:
            return pattern


def _absence(rng: random.Random) -> Absence:
    either = Alternation((Step("N"), Step("M")))
    part = either if rng.random() < 0.1 else Step(rng.choice("NNNM"))
    return Absence(part, rng.choice((None, 0, 1, 2, 3, 6)))


def _anchored(rng: random.Random, pattern: Pattern) -> Pattern:
    """The pattern with an anchor, on all ways through it or on one."""
    anchor = Anchor(rng.choice(("start", "start", "end")))
    both = (anchor, pattern) if anchor.at == "start" else (pattern, anchor)
    if rng.random() < 0.6:
        return Concatenation(both)
    parts = [Concatenation(both), random_pattern(rng, depth=1)]
    return Alternation(tuple(rng.sample(parts, 2)))


def _absent(rng: random.Random, name: str, variables: tuple[str, ...]) -> Callable[[Any], Any]:
    """The condition of a row that must not come."""
    number, other = rng.choice((0, 1, 2)), rng.choice(variables)
    own: tuple[Callable[[Any], Any], ...] = (
        lambda m: m[name].v == number,
        lambda m: m[name].v.is_null() | (m[name].v > number),
        lambda m: m[name].v > m[name].prev().v,
        lambda m: m[name].v < m[name].prev(2).v,
    )
    matched: tuple[Callable[[Any], Any], ...] = (
        lambda m: m[name].v > m[other].v,
        lambda m: (m[name].v == number) & (m[name].x <= m[other].first().x),
        lambda m: m[name].v == m.rows.first().v,
        lambda m: m[name].v >= m.rows.last(1).v,
        lambda m: (m[name].v >= number) & (m.rows.agg(tg.count()) > 2),
        lambda m: (m[name].v >= number) & (m.rows.agg(tg.count()) <= 2 + number),
        lambda m: (m[name].v > number) & (m[name].v + m[other].agg(tg.count()) > 2),
        lambda m: m[name].next().v == number,
        lambda m: m[name].t - m[other].t <= 2,
    )
    return rng.choice(own) if rng.random() < 0.6 else rng.choice(matched)


def _condition(rng: random.Random, name: str, variables: tuple[str, ...], *, waits: bool) -> Callable[[Any], Any]:
    """`waits`: also one that reads rows behind its own."""
    number, other = rng.choice((0, 1, 2)), rng.choice(variables)
    own: tuple[Callable[[Any], Any], ...] = (
        lambda m: m[name].v == number,
        lambda m: m[name].v >= number,
        lambda m: (m[name].v != number) | (m[name].x > 0.0),
        lambda m: 6 // (m[name].v - 1) > 0,
        lambda m: m[name].v > m[name].prev().v,
        lambda m: (m[name].v >= m[name].prev().v) | m[name].prev().v.is_null(),
    )
    matched: tuple[Callable[[Any], Any], ...] = (
        lambda m: m[name].v >= m[other].v,
        lambda m: m[name].v > m.rows.first().v,
        lambda m: (m[name].v >= m[other].first(1).v) | m[other].first(1).v.is_null(),
        lambda m: m[name].x <= m[other].last(1).x,
        lambda m: m[name].x * 2.0 <= m[other].v + m[name].v,
        lambda m: m[name].v - m[other].prev().v >= number - 1,
        lambda m: m.rows.agg(tg.count()) <= 2 + number,
        lambda m: (m[name].v == number) & (m[name].agg(tg.count()) <= 2),
        lambda m: ~(m[name].v < m[other].v) & (m[name].v < 6 // m[other].v),
        lambda m: (m[name].v > number) | (m[name].x == m[other].x),
        lambda m: m[name].v.same_as(m[other].v),
    )
    behind: tuple[Callable[[Any], Any], ...] = (
        lambda m: m[name].v <= m[name].next().v,
        lambda m: m[name].next().v > number,
        lambda m: (m[name].v >= number) & (m[name].next().v != 0),
        lambda m: m[name].next(2).v == number,
        lambda m: m[name].next().v.is_null(),
        lambda m: ~(m[name].next(2).v < m[name].v) | (m[name].v == number),
        lambda m: (m[name].next().v >= 1) & (m[name].next(2).v >= number),
        lambda m: (m[name].next().v == number) | (m[name].next(2).v < 6 // m[name].v) | (m[name].prev().v == 0),
        lambda m: (6 // m[name].next().v > number) | (m[name].v == 1),
        lambda m: m[name].next().v > m[other].v,
        lambda m: (m[name].v == number) & (m[name].next().x * 2.0 >= m[other].first().v),
        lambda m: m[name].next(2).v - m[other].next().v >= number - 1,
        lambda m: m[name].next().v + m.rows.agg(tg.count()) > 2,
        lambda m: m[name].next().t - m[name].t <= 3,
        lambda m: m[other].next().v >= number,
    )
    if rng.random() < 0.3:
        return _known_before(rng, name, variables)
    if rng.random() < 0.25:
        return _of_values(rng, name, variables)
    if waits and rng.random() < 0.25:
        return rng.choice(behind)
    return rng.choice(own) if rng.random() < 0.6 else rng.choice(matched)


def _known_before(rng: random.Random, name: str, variables: tuple[str, ...]) -> Callable[[Any], Any]:
    """A condition that compares instants, or of which a part is known before its row is."""
    number, other, ticks = rng.choice((0, 1, 2)), rng.choice(variables), rng.choice((0, 1, 2, 4))
    of_instants: tuple[Callable[[Any], Any], ...] = (
        lambda m: m[name].t - m.rows.first().t <= ticks,
        lambda m: (m[name].t > m[other].t + 1) & (m[name].v > 0),
        lambda m: m[name].t - m[other].t <= ticks,
        lambda m: (m[name].t - m[other].first().t < ticks + 1) & (m[name].v >= number),
        lambda m: m[name].t - m[name].last(1).t <= ticks,
        lambda m: m[name].t - m[name].first().t <= ticks,
        lambda m: m[name].t <= m[name].prev().t + ticks,
        lambda m: m[name].t <= m.rows.last(1).t + ticks,
        lambda m: (m[name].t == m[other].t) | (m[name].v == number),
        lambda m: m[other].t + ticks >= m[name].t,
        lambda m: (m[name].t - m[other].t >= ticks) & (m[name].v >= number),
        lambda m: m[name].t == m[other].t,
    )
    of_rows: tuple[Callable[[Any], Any], ...] = (
        lambda m: m[other].v == number,
        lambda m: m.rows.agg(tg.count()) > number,
        lambda m: (m[other].v >= number) & (m[name].v >= 1),
        lambda m: m[other].agg(tg.count()) <= number,
        lambda m: m[name].agg(tg.count()) == number,
        lambda m: ~(m.rows.agg(tg.count()) > 1 + number) & (m[name].v >= 1),
        lambda m: (m[other].agg(tg.sum(_V.v)) >= number) & (m[name].v != 0),
        lambda m: m.rows.first().v >= number,
        lambda m: (m[other].first().v >= number) & (m[name].x >= 0.0),
        lambda m: m[other].last().v > m[other].first().v,
        lambda m: (m[other].v.is_null()) | (m[name].v > number),
        lambda m: (6 // m[other].v > number) | (m[name].v > 0),
        lambda m: m[name].prev().v.is_null() | (m[name].v >= m[name].prev().v),
        lambda m: m[other].prev().v == number,
    )
    return rng.choice(of_instants if rng.random() < 0.55 else of_rows)


def _of_values(rng: random.Random, name: str, variables: tuple[str, ...]) -> Callable[[Any], Any]:
    """A condition that compares texts of several rows, reads an aggregate of the rows so far, or divides."""
    number, other = rng.choice((0, 1, 2)), rng.choice(variables)

    def text(row: Any) -> Any:
        return (row.v * 9).cast("string")

    found: tuple[Callable[[Any], Any], ...] = (
        lambda m: text(m[name]) == text(m[other]),
        lambda m: text(m[name]) >= text(m[other].prev()),
        lambda m: text(m[name]).is_in(text(m[other].first()), "9"),
        lambda m: (text(m[name]) != "18") & (text(m[name]) < text(m.rows.last(1))),
        lambda m: text(m[name]).same_as(text(m[other])),
        lambda m: m[name].v.cast("string") > m.rows.agg(tg.min(_V.v.cast("string"))),
        lambda m: m[name].agg(tg.sum(_V.v)) <= 2 + number,
        lambda m: m.rows.agg(tg.sum(_V.x)) < 2.5,
        lambda m: m[name].v >= m[other].agg(tg.avg(_V.v)),
        lambda m: m[name].x <= m[other].agg(tg.avg(_V.x)),
        lambda m: m[name].v >= m.rows.agg(tg.max(_V.v)),
        lambda m: m[name].x > m[other].agg(tg.min(_V.x)),
        lambda m: m[name].x <= m[other].agg(tg.max(_V.x)),
        lambda m: m[name].v + m[other].agg(tg.min(_V.v)) > number,
        lambda m: m[name].agg(tg.count(_V.v)) <= 1 + number,
        lambda m: m.rows.agg(tg.sum(_V.v)).is_null() | (m[name].v == number),
        lambda m: m[name].x / m[other].x > 0.5,
        lambda m: abs(m[name].v - m[other].v) <= number,
        lambda m: abs(-(m[name].x - m[other].x)) < 1.0,
    )
    return rng.choice(found)


def _limit(rng: random.Random, variables: tuple[str, ...]) -> Callable[[Any], Any]:
    first, second, most = rng.choice(variables), rng.choice(variables), rng.choice((0, 1, 2, 4))
    found: tuple[Callable[[Any], Any], ...] = (
        lambda m: m[second].t - m[first].t <= most,
        lambda m: m[second].t - m[first].first().t <= most,
        lambda m: [m[second].first().t <= m[first].t + most, m.rows.t - m[first].t <= most],
        lambda m: m[first].t - m.rows.first().t <= most,
    )
    return rng.choice(found)


def _measures(variables: tuple[str, ...]) -> dict[str, Callable[[Any], Any]]:
    return {
        "m0": lambda m: m.number,
        "m1": lambda m: m[variables[0]].v,
        "m2": lambda m: m.rows.agg(tg.count()),
        "m3": lambda m: m[variables[-1]].agg(tg.sum(_V.v)),
        "m4": lambda m: m.rows.first().x,
        "m5": lambda m: m[variables[0]].first(1).prev().v,
        "m6": lambda m: m.rows.classifier,
        "m7": lambda m: m.rows.last(1).classifier,
        "n1": lambda m: m.final.rows.v,
        "n2": lambda m: m.final[variables[0]].first().classifier,
        "n3": lambda m: m.final[variables[-1]].agg(tg.sum(_V.v)),
        "n4": lambda m: m[variables[0]].agg(tg.count()),
        "n8": lambda m: m.rows.prev().classifier,
        "m8": lambda m: 6 // m[variables[-1]].v,
        "m9": lambda m: m.rows.agg(tg.max(_V.x)),
    }


def _rows(rng: random.Random) -> tuple[Row, ...]:
    """Rows of a few partitions, many at one instant, of which ties are shuffled."""
    at, rows = rng.choice((-3, 0)), list[Row]()
    keys = rng.sample((1, 2, None), rng.choice((1, 1, 2)))
    gaps = rng.choice(((0, 0, 1, 1, 2, 3, 6), (1,), (0, 1, 4)))
    for _ in range(rng.choice((2, 4, 5, 6, 9))):
        at += rng.choice(gaps)
        v, x = rng.choice((0, 1, 1, 2, 2, None)), rng.choice((0.5, -0.0, 0.0, 2.0, float("nan"), None))
        rows.append((rng.choice(keys), at, rng.randrange(1000), v, x))
    seen: dict[tuple[int, int], Row] = {(row[1], row[2]): row for row in rows}
    return tuple(rng.sample(list(seen.values()), len(seen)))


def operator_of(node: Sequences) -> Operator:
    """The operator of a node before the first row."""
    return start_operator(step_of(node))


def step_of(node: Sequences) -> OrderedStep:
    return OrderedStep(node, (0,), DETECTED, family_of(node).state(node))


def reloaded(operator: Operator, node: Sequences, reached: Extended) -> Operator:
    """The operator as it is after a restart from its stored state."""
    tables = {name: pl.DataFrame(table) for name, table in operator.tables().items()}
    without = {name: table.drop("~none") for name, table in tables.items()}
    return load_operator(step_of(node), without, reached)


def increments(rng: random.Random, case: Searched) -> Iterator[tuple[pl.DataFrame, Extended, Extended]]:
    """The rows of the case in increments, each with the progress before and after."""
    times = sorted({row[1] for row in case.rows})
    ends = sorted(rng.randint(times[0] - 1, times[-1] + 3) for _ in range(rng.choice((0, 1, 3, 8))))
    after: Extended = -INF
    for until in (*dict.fromkeys(ends), INF):
        rows = [row for row in case.rows if after < row[1] <= until]
        yield pl.DataFrame(rows, schema=polars_schema(case.node.input.schema), orient="row"), after, until
        after = until


def found_by(rng: random.Random, case: Searched, make: Callable[[Sequences], Operator] = operator_of) -> list[Row]:
    """What the operator finds, increment by increment, with restarts in between; each match at its instant."""
    operator, found = make(case.node), list[Row]()
    at = case.node.schema.names.index(DETECTED)
    for rows, after, until in increments(rng, case):
        operator, result = operator.step([rows], after, until)
        assert all(after < row[at] <= until for row in as_frame(result).iter_rows())
        found += as_frame(result).rows()
        if until != INF and rng.random() < 0.3:
            operator = reloaded(operator, case.node, until)
    return in_order(found)
