"""Folding in plain Python: a query evaluated over rows and classes of rows, and driven increment by increment.

The analysis says which rows fold, into which classes and with which payload (rules R30 to R35). Results must
be those that the reference semantics yields over all rows.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import assert_never

from tests.strategies.folds import FoldCase, random_fold_case
from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import aggregate as value_of
from tidegate.algebra.evaluation import evaluate_term, evaluator, key_of
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    OrderedNode,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    occurrences,
)
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Schema
from tidegate.algebra.semantics import Row, RowFunction, bags_equal, evaluate
from tidegate.algebra.terms import Term, Value
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import BIGINT
from tidegate.analysis.facts import QueryFacts
from tidegate.analysis.pipeline import _analysed
from tidegate.analysis.progress.pass_ import passes
from tidegate.analysis.progress.propagation import Latencies
from tidegate.analysis.state.folding.classes import Best, Payload
from tidegate.analysis.state.folding.foldable import Foldable, folding

#: Orders of arrival in which a case is driven.
SCHEDULES = 3
ADDED = (Function.COUNT, Function.SUM, Function.AVG)
ORDERED = (Function.FIRST, Function.LAST)


@dataclass(slots=True)
class StoredPayload:
    """Arguments and orders of the rows of a class, where the row gives them."""

    of: Payload
    pairs: list[tuple[Value, Value]] = field(default_factory=list)


@dataclass(slots=True)
class ClassRow:
    """One row for a class: the values of one of its rows, how many there are, and their payload by aggregate."""

    values: Row
    size: int = 0
    payload: dict[str, StoredPayload] = field(default_factory=dict)


#: A row, and the classes that it is made of.
Tagged = tuple[Row, tuple[ClassRow, ...]]


@dataclass(slots=True)
class FoldedEvaluation:
    """The result of a query whose occurrences have these rows and classes; each function is made once."""

    _functions: dict[tuple[Schema, Term], RowFunction] = field(default_factory=dict)

    def result(self, node: Node, inputs: Sequence[Sequence[Tagged]]) -> list[Row]:
        rows = self.rows(node, list(inputs))
        return [row for row, tags in rows for _ in range(prod(one.size for one in tags))]

    def over(self, schema: Schema, term: Term) -> RowFunction:
        key = (schema, term)
        if key not in self._functions:
            self._functions[key] = RowFunction(schema.names, evaluator(resolve(term, schema)))
        return self._functions[key]

    def rows(self, node: Node, inputs: list[Sequence[Tagged]]) -> list[Tagged]:
        """The rows of a part of the query; takes its occurrences' rows from the front of `inputs`."""
        match node:
            case Scan():
                return list(inputs.pop(0))
            case Select(input_, condition):
                holds = self.over(input_.schema, condition)
                return [(row, tags) for row, tags in self.rows(input_, inputs) if holds(row) is True]
            case Project(input_, names):
                places = [input_.schema.names.index(name) for name in names]
                return [(tuple(row[at] for at in places), tags) for row, tags in self.rows(input_, inputs)]
            case Rename(input_, _):
                return self.rows(input_, inputs)
            case Imbed(input_, _, term):
                value = self.over(input_.schema, term)
                return [((*row, value(row)), tags) for row, tags in self.rows(input_, inputs)]
            case Group():
                return self.grouped(node, self.rows(node.input, inputs))
            case Distinct(input_):
                return [(row, ()) for row in {_key(row): row for row, _ in self.rows(input_, inputs)}.values()]
            case Product(left, right):
                first, second = self.rows(left, inputs), self.rows(right, inputs)
                return [(one + other, tags + more) for one, tags in first for other, more in second]
            case Join():
                return self.joined(node, self.rows(node.left, inputs), self.rows(node.right, inputs))
            case Union(parts):
                return [
                    (tuple(row[part.schema.names.index(name)] for name in node.schema.names), tags)
                    for part in parts
                    for row, tags in self.rows(part, inputs)
                ]
            case Difference(left, right):
                first, second = self.rows(left, inputs), self.rows(right, inputs)
                places = [right.schema.names.index(name) for name in left.schema.names]
                removed = {_key(tuple(row[at] for at in places)) for row, _ in second}
                return [(row, tags) for row, tags in first if _key(row) not in removed]
            case OrderedNode():
                raise NotImplementedError(f"random programs of folding have no {type(node).__name__}")
            case _:
                assert_never(node)

    def joined(self, node: Join, left: list[Tagged], right: list[Tagged]) -> list[Tagged]:
        holds = self.over(Schema((*node.left.schema.attributes, *node.right.schema.attributes)), node.condition)
        padding: Row = (None,) * len(node.right.schema)
        found: list[Tagged] = []
        for row, tags in left:
            matches = [(row + other, tags + more) for other, more in right if holds(row + other) is True]
            match node.kind:
                case "inner":
                    found += matches
                case "left":
                    found += matches or [(row + padding, tags)]
                case "semi" | "anti":
                    found += [(row, tags)] if bool(matches) == (node.kind == "semi") else []
        return found

    def grouped(self, node: Group, rows: list[Tagged]) -> list[Tagged]:
        schema = node.input.schema
        places = [schema.names.index(key) for key in node.keys]
        groups: dict[Row, list[Tagged]] = {}
        for row, tags in rows:
            groups.setdefault(_key(tuple(row[at] for at in places)), []).append((row, tags))
        return [
            (
                (
                    *(members[0][0][at] for at in places),
                    *(self.aggregated(made, members, schema) for made in node.aggregates),
                ),
                (),
            )
            for members in groups.values()
        ]

    def aggregated(self, made: Aggregate, members: list[Tagged], schema: Schema) -> Value:
        type_ = BIGINT if made.argument is None else term_type(made.argument, schema)
        if made.function in ADDED:
            numbers = [self.added(made, row, tags, schema) for row, tags in members]
            count, total = sum(n for n, _ in numbers), sum(s for _, s in numbers)
            if made.function is Function.COUNT:
                return count
            if count == 0:
                return None
            return total if made.function is Function.SUM else float(total) / count
        pairs = [pair for row, tags in members for pair in self.pairs(made, row, tags, schema)]
        return value_of(made.function, [x for x, _ in pairs], [t for _, t in pairs], type_, made.name, made.parameter)

    def added(self, made: Aggregate, row: Row, tags: tuple[ClassRow, ...], schema: Schema) -> tuple[int, int]:
        """How many values a row adds, and their sum: those of a class as often as the others of the row say."""
        weight = prod(one.size for one in tags)
        own = next((one for one in tags if made.name in one.payload), None)
        if own is None:
            value = 1 if made.argument is None else self.over(schema, made.argument)(row)
            return (0, 0) if value is None else (weight, weight * int(value))
        values = [int(x) for x, _ in own.payload[made.name].pairs if x is not None]
        return len(values) * weight // own.size, sum(values) * weight // own.size

    def pairs(self, made: Aggregate, row: Row, tags: tuple[ClassRow, ...], schema: Schema) -> list[tuple[Value, Value]]:
        """Arguments and orders that a row adds."""
        own = [one for one in tags if made.name in one.payload]
        if not own:
            assert made.argument is not None
            by = None if made.by is None else self.over(schema, made.by)(row)
            times = prod(one.size for one in tags)
            return [(self.over(schema, made.argument)(row), by)] * times
        if made.function not in ORDERED:
            values = [int(x) for x, _ in own[0].payload[made.name].pairs if x is not None]
            best = min if made.function is Function.MIN else max
            return [(best(values), None)] if values else []
        return self.ordered(made, row, own, schema)

    def ordered(self, made: Aggregate, row: Row, own: list[ClassRow], schema: Schema) -> list[tuple[Value, Value]]:
        """Of first and last: each class that the row is made of gives its best order, or its least argument."""
        assert made.argument is not None
        assert made.by is not None
        argument, order = self.over(schema, made.argument), self.over(schema, made.by)
        best = min if made.function is Function.FIRST else max
        stored = [one.payload[made.name] for one in own]
        if len(stored) == 1 and stored[0].of.argument is not None and stored[0].of.order is not None:
            both = [(int(x), int(t)) for x, t in stored[0].pairs if x is not None and t is not None]
            end = best((t for _, t in both), default=None)
            return [(min(x for x, t in both if t == end), end)] if both else []
        x, t = argument(row), order(row)
        for one in stored:
            if one.of.argument is not None:
                x = min((int(v) for v, _ in one.pairs if v is not None), default=None)
            if one.of.order is not None:
                t = best((int(v) for _, v in one.pairs if v is not None), default=None)
        return [(x, t)]


@dataclass(slots=True)
class Buffer:
    """What an occurrence has stored: rows, and classes by what tells them apart."""

    raw: list[Row] = field(default_factory=list)
    classes: dict[tuple[object, ...], ClassRow] = field(default_factory=dict)

    def tagged(self, *, counts: bool) -> list[Tagged]:
        return [(row, ()) for row in self.raw] + [
            (one.values, (one,) if counts else ()) for one in self.classes.values()
        ]


@dataclass(slots=True)
class Statistics:
    """How much was folded: how often rows joined a class, the occurrences that folded, queries with several of them."""

    cases: int = 0
    merged: int = 0
    several: int = 0
    horizons: int = 0
    truths: int = 0
    dominated: int = 0


class FoldingRun:
    """A query that folds, driven over the rows of a case in permitted disorder; every choice follows from the seed."""

    def __init__(self, case: FoldCase, facts: QueryFacts, foldings: Sequence[Foldable | None], number: int) -> None:
        self.case, self.facts, self.foldings = case, facts, foldings
        self.rng = random.Random(case.seed * SCHEDULES + number)
        self.node = facts.query.node
        self.evaluation = FoldedEvaluation()
        self.buffers = [Buffer() for _ in foldings]
        self.p: dict[str, Extended] = dict.fromkeys(facts.propagation, -INF)
        self.b: dict[tuple[str, str], Extended] = {(one.name, y): -INF for one in case.streams for y in one.progress}
        self.eager = self.rng.random() < 0.7
        self.statistics = Statistics()

    def failure(self) -> str | None:
        """What went wrong; None where all results are those of the semantics."""
        complete = evaluate(self.node, self.case.rows)
        waiting = self.arrivals()
        while True:
            number = self.rng.choice((1, 2, 3))
            arrived, waiting = waiting[:number], waiting[number:]
            for name, row in arrived:
                self.arrive(name, row)
            self.advance(waiting)
            new = self.chosen()
            wrong = self.increment(complete, new)
            if wrong is not None:
                return wrong
            self.p = new
            self.fold()
            if self.eager and (wrong := self.beyond_horizon()) is not None:
                return wrong
            if not waiting and all(value == INF for value in self.p.values()):
                return None

    def arrivals(self) -> list[tuple[str, Row]]:
        rows = [(name, row) for name, found in self.case.rows.items() for row in found]
        return sorted(rows, key=lambda one: int(one[1][0] or 0) + self.rng.uniform(0, 4))

    def advance(self, waiting: Sequence[tuple[str, Row]]) -> None:
        """Progress of the inputs: below all that is still to come."""
        for (name, y), before in self.b.items():
            place = next(one for one in self.case.streams if one.name == name).schema.names.index(y)
            ahead = [int(row[place] or 0) for of, row in waiting if of == name]
            reached = min(ahead) - 1 if ahead else INF
            slack = 0 if not waiting or self.rng.random() < 0.6 else self.rng.randint(0, 3)
            self.b[name, y] = max(before, reached - slack if reached != INF else INF)

    def chosen(self) -> dict[str, Extended]:
        """Progress that the query may choose (rule R24)."""
        reached = self.facts.progress(self.b, self.p)
        if all(value == INF for value in reached.values()) or self.rng.random() < 0.6:
            return reached
        return {
            a: f if f in (INF, -INF) or self.p[a] == -INF else self.rng.randint(int(self.p[a]), int(f))
            for a, f in reached.items()
        }

    def arrive(self, name: str, row: Row) -> None:
        for i, buffer in enumerate(self.buffers):
            if self.facts.occurrences[i].stream.name != name or not self.keeps(i, row):
                continue
            if not (self.eager and self.folds(i, row)):
                buffer.raw.append(row)

    def increment(self, complete: list[Row], new: Mapping[str, Extended]) -> str | None:
        inputs = [
            buffer.tagged(counts=one is None or not one.existence)
            for buffer, one in zip(self.buffers, self.foldings, strict=True)
        ]
        found = self.passing(self.evaluation.result(self.node, inputs), new)
        wanted = self.passing(complete, new)
        if bags_equal(found, wanted):
            return None
        return f"seed {self.case.seed}: from {self.p} to {new}\n  found  {found}\n  wanted {wanted}"

    def passing(self, rows: list[Row], new: Mapping[str, Extended]) -> list[Row]:
        names = self.node.schema.names
        return [row for row in rows if passes(_instants(names, row, self.p), self.p, new)]

    def fold(self) -> None:
        for i, buffer in enumerate(self.buffers):
            rows, buffer.raw = buffer.raw, []
            buffer.raw = [
                row
                for row in rows
                if self.keeps(i, row) and not ((self.eager or self.rng.random() < 0.6) and self.folds(i, row))
            ]
            for key, one in list(buffer.classes.items()):
                if not self.keeps(i, one.values):
                    del buffer.classes[key]

    def keeps(self, i: int, row: Row) -> bool:
        kept = self.facts.occurrences[i].keep.row(self.instants(i, row), self.p)
        return kept or (self.rng.random() < 0.3 and not self.eager)

    def instants(self, i: int, row: Row) -> dict[str, int]:
        schema = self.facts.occurrences[i].stream.schema
        values = dict(zip(schema.names, row, strict=True))
        return {name: int(values[name] or 0) for name in schema.temporal}

    def folds(self, i: int, row: Row) -> bool:
        """Folds a row, if it is settled."""
        one = self.foldings[i]
        truth = None if one is None else one.truth_values(self.instants(i, row), self.p)
        if one is None or truth is None:
            return False
        schema = self.facts.occurrences[i].stream.schema
        values = dict(zip(schema.names, row, strict=True))
        read = tuple(key_of(evaluate_term(part.term, values, schema)) for part in one.classes.read)
        known = self.buffers[i].classes.get((truth, read))
        if known is None:
            known = self.buffers[i].classes[truth, read] = ClassRow(row)
            known.payload = {part.aggregate.name: StoredPayload(part) for part in one.classes.payload}
        else:
            self.statistics.merged += 1
            self.statistics.dominated += one.classes.dominance is not None
            if self.stands_for(one, schema, row, known.values):
                known.values = row
        self.statistics.truths += not all(truth)
        known.size += 1
        for part in known.payload.values():
            terms = (part.of.argument, part.of.order)
            x, t = (None if term is None else evaluate_term(term, values, schema) for term in terms)
            part.pairs.append((x, t))
        return True

    def stands_for(self, one: Foldable, schema: Schema, row: Row, other: Row) -> bool:
        """Whether a row takes the place of another of its class: the better one, else any."""
        best = one.classes.dominance
        if best is None:
            return self.rng.random() < 0.5
        place = schema.names.index(best.attribute)
        first, second = int(row[place] or 0), int(other[place] or 0)
        return first > second if best.best is Best.GREATEST else first < second

    def beyond_horizon(self) -> str | None:
        """A row that is not folded though the bound says that none is so old (rule R34)."""
        reached = self.facts.progress(self.b, self.p)
        least = min(self.b.values())
        if reached != self.p or least == -INF or least == INF:
            return None
        for i, (buffer, one) in enumerate(zip(self.buffers, self.foldings, strict=True)):
            if one is None or not one.is_bounded:
                continue
            for row in buffer.raw:
                self.statistics.horizons += 1
                instants = self.instants(i, row)
                latest = max(instants[y] for y in one.stream.progress)
                if latest <= least - one.rest.horizon:
                    return f"seed {self.case.seed}: {row} of occurrence {i} is not folded at {self.p}: {one}"
        return None


def run(seed: int) -> tuple[str | None, Statistics]:
    """What went wrong with the case of a seed, if anything, and how much was folded in it."""
    case = random_fold_case(seed)
    try:
        (facts,) = _analysed(ProgramDef((Query("R", "R", case.node),))).queries
    except QueryError:
        return None, Statistics()
    latencies, promised = Latencies.among(facts.propagation), tuple(facts.propagation)
    foldings = [folding(case.node, i, {}, promised, latencies) for i in range(len(occurrences(case.node)))]
    failure, found = None, Statistics(cases=1)
    for number in range(SCHEDULES):
        driven = FoldingRun(case, facts, foldings, number)
        failure = failure or driven.failure()
        found.several += sum(bool(buffer.classes) for buffer in driven.buffers) > 1
        for name in ("merged", "horizons", "truths", "dominated"):
            setattr(found, name, getattr(found, name) + getattr(driven.statistics, name))
    return failure, found


def _instants(names: Sequence[str], row: Row, wanted: Collection[str]) -> dict[str, int]:
    return {name: int(value or 0) for name, value in zip(names, row, strict=True) if name in wanted}


def _key(row: Row) -> Row:
    return tuple(key_of(value) for value in row)  # type: ignore[misc]  # only compared
