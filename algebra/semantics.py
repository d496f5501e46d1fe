"""The reference semantics: what queries yield over complete finite relations, as the definitions say it.

Rows are tuples of values as held, in the order of the schema; relations are bags, lists in no particular order. Slow
and obvious on purpose: every other evaluation is tested against this one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, assert_never

from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import (
    EvaluationError,
    Evaluator,
    aggregate,
    evaluate_term,
    evaluator,
    key_of,
)
from tidegate.algebra.functions.aggregates import Aggregate
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
    Row,
    Scan,
    Select,
    Union,
    children,
    occurrences,
    with_children,
)
from tidegate.algebra.program import ProgramDef
from tidegate.algebra.row_wise import row_terms
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.terms import FALSE, TRUE, Call, Term, Value, conjunction, conjuncts, disjunction
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import BIGINT, DataType

Bag = Counter[tuple[object, ...]]

#: A recursion over finite relations is given up after so many rounds: it goes on for ever, or nearly.
MAX_ROUNDS: Final = 1_000

__all__ = [
    "Bag",
    "EvaluationError",
    "Row",
    "aggregated",
    "as_bag",
    "bags_equal",
    "evaluate",
    "evaluate_leniently",
    "evaluate_program",
    "evaluate_term",
    "split_by_failure",
    "unevaluable",
]


def evaluate(node: Node, relations: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Rows of a query over complete relations, given by the names of streams and static tables."""
    match node:
        case Scan(stream):
            return list(relations[stream.name])
        case Select(input_, condition):
            holds = _over(input_.schema, condition)
            return [row for row in evaluate(input_, relations) if holds(row) is True]
        case Project(input_, names):
            places = [input_.schema.names.index(name) for name in names]
            return [tuple(row[place] for place in places) for row in evaluate(input_, relations)]
        case Rename(input_, _):
            return evaluate(input_, relations)
        case Imbed(input_, _, term):
            value = _over(input_.schema, term)
            return [(*row, value(row)) for row in evaluate(input_, relations)]
        case Group(input_, keys, aggregates):
            return _group(evaluate(input_, relations), input_.schema, keys, aggregates)
        case Distinct(input_):
            return list({_key(row): row for row in evaluate(input_, relations)}.values())
        case Product(left, right):
            others = evaluate(right, relations)
            return [row + partner for row in evaluate(left, relations) for partner in others]
        case Join():
            return _join(node, evaluate(node.left, relations), evaluate(node.right, relations))
        case Union(inputs):
            return [
                row for input_ in inputs for row in _aligned(evaluate(input_, relations), input_.schema, node.schema)
            ]
        case Difference(left, right):
            removed = {_key(row) for row in _aligned(evaluate(right, relations), right.schema, left.schema)}
            return [row for row in evaluate(left, relations) if _key(row) not in removed]
        case OrderedNode():
            return node.rows([evaluate(input_, relations) for input_ in node.inputs], aggregated)
        case _:
            assert_never(node)


def unevaluable(nodes: Iterable[Node], stream: str, row: Row, statics: Mapping[str, Sequence[Row]]) -> bool:
    """Whether a row of a stream has by itself, whatever other rows there are, no value of some term of the queries."""
    for of, part in chain.from_iterable(map(row_terms, nodes)):
        if of != stream:
            continue
        try:
            evaluate(part, {**statics, stream: [row]})
        except EvaluationError:
            return True
    return False


def split_by_failure(condition: Term, schema: Schema) -> tuple[Term, Term]:
    """What a condition says that cannot fail, and its conjuncts that can.

    The former are the other conjuncts, and what these conjuncts imply: all that they say of instants, which is what
    bounds how far partners are from each other.
    """
    parts = conjuncts(condition)
    hard = [part for part in parts if resolve(part, schema).fallible]
    implied = [_infallible(part, schema, otherwise=TRUE) for part in hard]
    return conjunction([*(part for part in parts if part not in hard), *implied]), conjunction(hard)


def _infallible(condition: Term, schema: Schema, *, otherwise: Term) -> Term:
    """The condition with `otherwise` for each part that can fail. With true it holds wherever the condition does, and
    with false only there.
    """
    if not resolve(condition, schema).fallible:
        return condition
    match condition:
        case Call("and" | "or" as op, args):
            parts = [_infallible(arg, schema, otherwise=otherwise) for arg in args]
            return conjunction(parts) if op == "and" else disjunction(parts)
        case Call("not", (arg,)):
            return Call("not", (_infallible(arg, schema, otherwise=FALSE if otherwise == TRUE else TRUE),))
        case _:
            return otherwise


Note = Callable[[Node, Row], None]
"""Told of each row or pair for which a term of an operator has no value."""


def evaluate_leniently(node: Node, relations: Mapping[str, Sequence[Row]], note: Note = lambda *_: None) -> list[Row]:
    """Rows of a query in which rows without a value are set aside, and sums that do not fit are NULL.

    A row leaves the query where a selection, a new attribute or an aggregate's argument has no value for it. Of a join,
    those pairs are looked at for which all is true that the condition says and cannot fail. Where the rest has no
    value, the pair leaves; of a left, semi- or anti-join the left row does, as nobody knows whether it has a partner.
    An event leaves an operator where a term of what it reads of these events has no value.
    """

    def rows_of(input_: Node) -> list[Row]:
        return evaluate_leniently(input_, relations, note)

    def values(rows: Iterable[Row], terms: Sequence[Term], schema: Schema) -> list[tuple[Row, Row | None]]:
        """Rows of an input, each with the terms' values, or None where one has none."""
        functions = [_over(schema, term) for term in terms]
        found: list[tuple[Row, Row | None]] = []
        for row in rows:
            try:
                found.append((row, tuple(function(row) for function in functions)))
            except EvaluationError:
                note(node, row)
                found.append((row, None))
        return found

    match node:
        case Select(input_, condition):
            return [row for row, value in values(rows_of(input_), [condition], input_.schema) if value == (True,)]
        case Imbed(input_, _, term):
            return [(*row, *value) for row, value in values(rows_of(input_), [term], input_.schema) if value]
        case Group(input_, keys, aggregates):
            terms = [term for aggregate_ in aggregates for term in aggregate_.terms]
            rows = [row for row, found in values(rows_of(input_), terms, input_.schema) if found is not None]
            return _group(rows, input_.schema, keys, tuple(aggregate_.lenient() for aggregate_ in aggregates))
        case Join(left, right, condition, kind):
            both = Schema((*left.schema.attributes, *right.schema.attributes))
            plain, hard = split_by_failure(condition, both)
            joined: list[Row] = []
            padding: Row = (None,) * len(right.schema)
            may_match = _over(both, plain)
            right_rows = rows_of(right)
            for row in rows_of(left):
                pairs = [pair for partner in right_rows if may_match(pair := row + partner) is True]
                judged = values(pairs, [hard], both)
                matches = [pair for pair, value in judged if value == (True,)]
                if kind != "inner" and any(value is None for _, value in judged):
                    continue
                match kind:
                    case "inner" | "left":
                        joined += matches or ([row + padding] if kind == "left" else [])
                    case "semi" | "anti":
                        joined += [row] if bool(matches) == (kind == "semi") else []
            return joined
        case OrderedNode(readings=readings):
            events = []
            for reading in readings:
                terms = [term for other in readings if other.events == reading.events for term in other.terms]
                judged = values(rows_of(reading.input), terms, reading.input.schema)
                events.append([row for row, value in judged if value is not None])
            return node.rows(events, lambda aggregate_, rows, schema: aggregated(aggregate_.lenient(), rows, schema))
        case _:
            inputs = children(node)
            names = [f"\0{number}" for number in range(len(inputs))]
            scans = tuple(
                Scan(StreamDef(name, input_.schema, static=True)) for name, input_ in zip(names, inputs, strict=True)
            )
            rows_by_name = dict(zip(names, map(rows_of, inputs), strict=True))
            return evaluate(with_children(node, scans), {**relations, **rows_by_name})


def evaluate_program(
    program: ProgramDef, inputs: Mapping[str, Sequence[Row]], *, leniently: bool = False
) -> dict[str, list[Row]]:
    """Rows of every result stream, each after those it reads; several queries for one stream add up.

    `leniently`: rows without a value are set aside, those of inputs and those of queries.

    Streams that depend on each other are the relations that equal what their queries yield of them. All are evaluated
    over what they were before, from nothing on, until nothing changes: where every recursion leads to earlier instants,
    round n has the rows right that rest on fewer than n earlier ones, whatever negation or aggregation is on the way.
    `QueryError` TG133 where that takes more than MAX_ROUNDS rounds.
    """
    known: dict[str, Sequence[Row]] = _evaluable(program, inputs) if leniently else dict(inputs)
    for streams in _components(program):
        recursive = any(_reads(program, stream) & set(streams) for stream in streams)
        known.update(dict.fromkeys(streams, ()))
        for _ in range(MAX_ROUNDS if recursive else 1):
            contributions = {stream: _contributions(program, stream, known, leniently=leniently) for stream in streams}
            settled = all(as_bag(contributions[stream]) == as_bag(known[stream]) for stream in streams)
            known.update(contributions)
            if settled or not recursive:
                break
        else:
            raise QueryError("TG133", f"the recursion of {', '.join(streams)} does not end over these relations")
    return {stream: list(known[stream]) for stream in dict.fromkeys(query.stream for query in program.queries)}


def _reads(program: ProgramDef, stream: str) -> set[str]:
    """The result streams that a result stream's queries read."""
    queries = (query for query in program.queries if query.stream == stream)
    return {read.name for query in queries for read in occurrences(query.node)} & program.result_names


def _components(program: ProgramDef) -> list[tuple[str, ...]]:
    """Result streams that depend on each other, each such group after those it reads."""
    reads = {stream: _reads(program, stream) for stream in program.result_names}
    below = {stream: _reachable(stream, reads) for stream in reads}
    components: list[tuple[str, ...]] = []
    # What a stream depends on depends, itself counted, on fewer streams, unless they depend on each other.
    for stream in sorted(reads, key=lambda name: (len(below[name] | {name}), name)):
        if not any(stream in component for component in components):
            components.append((stream, *sorted(name for name in below[stream] - {stream} if stream in below[name])))
    return components


def _reachable(stream: str, reads: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [stream]
    while waiting:
        new = reads[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def _evaluable(program: ProgramDef, inputs: Mapping[str, Sequence[Row]]) -> dict[str, Sequence[Row]]:
    """The inputs without the rows that are set aside before any query has them."""
    nodes = [query.node for query in program.queries]
    statics = {stream.name: inputs[stream.name] for stream in program.inputs if stream.static}
    return {name: [row for row in rows if not unevaluable(nodes, name, row, statics)] for name, rows in inputs.items()}


def _contributions(
    program: ProgramDef, stream: str, known: Mapping[str, Sequence[Row]], *, leniently: bool
) -> list[Row]:
    queries = [query for query in program.queries if query.stream == stream]
    schema = queries[0].declared.schema if queries[0].declared else queries[0].node.schema
    rows_of = evaluate_leniently if leniently else evaluate
    rows = [_aligned(rows_of(query.node, known), query.node.schema, schema) for query in queries]
    return list(chain.from_iterable(rows))


def _over(schema: Schema, term: Term) -> RowFunction:
    return RowFunction(schema.names, evaluator(resolve(term, schema)))


class RowFunction:
    """A term as a function of a row that is a tuple."""

    __slots__ = ("_names", "_term")

    def __init__(self, names: tuple[str, ...], term: Evaluator) -> None:
        self._names, self._term = names, term

    def __call__(self, row: Row) -> Value:
        return self._term(dict(zip(self._names, row, strict=True)))


def _key(row: Row) -> tuple[object, ...]:
    return tuple(key_of(value) for value in row)


def _aligned(rows: Iterable[Row], schema: Schema, wanted: Schema) -> list[Row]:
    """Rows with their attributes in the order of another schema of the same names."""
    places = [schema.names.index(name) for name in wanted.names]
    return [tuple(row[place] for place in places) for row in rows]


def _join(node: Join, left: list[Row], right: list[Row]) -> list[Row]:
    holds = _over(Schema((*node.left.schema.attributes, *node.right.schema.attributes)), node.condition)
    partners = [(row, [partner for partner in right if holds(row + partner) is True]) for row in left]
    padding: Row = (None,) * len(node.right.schema)
    match node.kind:
        case "inner":
            return [row + partner for row, others in partners for partner in others]
        case "left":
            return [row + partner for row, others in partners for partner in others or [padding]]
        case "semi":
            return [row for row, others in partners if others]
        case "anti":
            return [row for row, others in partners if not others]
        case _:
            assert_never(node.kind)


def _group(rows: list[Row], schema: Schema, keys: tuple[str, ...], aggregates: tuple[Aggregate, ...]) -> list[Row]:
    """γ (Def. 15): one row per combination of keys that occurs, so grouping nothing yields no row, also without
    keys.
    """
    places = [schema.names.index(key) for key in keys]
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(_key(tuple(row[place] for place in places)), []).append(row)
    return [
        (*(members[0][place] for place in places), *(aggregated(a, members, schema) for a in aggregates))
        for members in groups.values()
    ]


def aggregated(aggregate_: Aggregate, rows: list[Row], schema: Schema) -> Value:
    """The value of an aggregate over rows of a relation."""
    arguments: list[Value] = [1] * len(rows)
    by: list[Value] = [None] * len(rows)
    type_: DataType = BIGINT
    if aggregate_.argument is not None:
        function = _over(schema, aggregate_.argument)
        type_ = term_type(aggregate_.argument, schema)
        arguments = [function(row) for row in rows]
    if aggregate_.by is not None:
        order = _over(schema, aggregate_.by)
        by = [order(row) for row in rows]
    return aggregate(aggregate_.function, arguments, by, type_, aggregate_.name, aggregate_.parameter)


# --- comparing results -----------------------------------------------------------------------------------------------


def as_bag(rows: Iterable[Row]) -> Bag:
    """How often each row occurs; NaN is NaN and -0.0 is 0.0."""
    return Counter(_key(row) for row in rows)


def bags_equal(one: Iterable[Row], other: Iterable[Row], tolerance: float = 1e-12) -> bool:
    """Whether two bags hold the same rows, doubles to a relative tolerance; types count: 1 is not 1.0 nor true."""
    left, right = as_bag(map(_tagged, one)), as_bag(map(_tagged, other))
    missing, extra = list((left - right).elements()), list((right - left).elements())
    if len(missing) != len(extra):
        return False
    while missing:
        row = missing.pop()
        match = next((candidate for candidate in extra if _close(row, candidate, tolerance)), None)
        if match is None:
            return False
        extra.remove(match)
    return True


def _tagged(row: Row) -> Row:
    return tuple(chain.from_iterable((type(value).__name__, value) for value in row))


def _close(left: tuple[object, ...], right: tuple[object, ...], tolerance: float) -> bool:
    return len(left) == len(right) and all(
        math.isclose(a, b, rel_tol=tolerance) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(left, right, strict=True)
    )
