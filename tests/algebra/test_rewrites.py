"""Rewrites: each keeps meaning (failures included), schema and the order of scans; together they reach a fixpoint."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.shards import shards
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    JoinKind,
    Node,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    children,
    occurrences,
    with_children,
)
from tidegate.algebra.rewrites import REWRITES, rewrite, rewrite_program, step
from tidegate.algebra.rewrites.common import common_parts
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import Row, bags_equal, evaluate
from tidegate.algebra.terms import Attr, Lit, Term, call, conjunction
from tidegate.algebra.types import BIGINT, DURATION, TIMESTAMP

KINDS: tuple[JoinKind, ...] = ("inner", "left", "semi", "anti")


def stream(name: str) -> Scan:
    time = Attribute("t", TIMESTAMP, nullable=False, temporal=True)
    return Scan(StreamDef(name, Schema((time, Attribute("x", BIGINT), Attribute("y", BIGINT))), progress=("t",)))


STREAMS = tuple(stream(name) for name in "RST")


def number(value: int) -> Lit:
    return Lit(value, BIGINT)


def random_term(rng: random.Random, schema: Schema) -> Term:
    numbers = [Attr(a.name) for a in schema.attributes if a.type == BIGINT]
    if not numbers or rng.random() < 0.15:
        return number(rng.randint(-1, 2))
    one = rng.choice(numbers)
    return rng.choice(
        (
            one,
            call("mod", one, number(2)),
            call("coalesce", one, number(0)),
            call("idiv", number(4), one) if rng.random() < 0.8 else one,  # fails where it is 0
            call("least", one, rng.choice(numbers)),
        )
    )


def random_condition(rng: random.Random, schema: Schema) -> Term:
    parts: list[Term] = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if kind < 0.15:
            parts.append(call(rng.choice(("is_null", "is_not_null")), Attr(rng.choice(schema.names))))
            continue
        times = list(schema.temporal)
        if kind < 0.35 and times:
            parts.append(call(rng.choice(("le", "lt", "eq")), Attr(rng.choice(times)), Attr(rng.choice(times))))
            continue
        one = call(rng.choice(("eq", "ne", "le", "gt")), random_term(rng, schema), random_term(rng, schema))
        parts.append(call("not", one) if kind > 0.9 else one)
    return conjunction(parts)


def prefixed(node: Node, prefix: str) -> Node:
    return Rename(node, tuple((name, f"{prefix}.{name}") for name in node.schema.names))


def random_node(rng: random.Random, depth: int) -> Node:
    """A random query with everything that rewrites move past each other, on purpose selections above all of it."""
    if depth == 0:
        return rng.choice(STREAMS)
    kind = rng.choice(
        ("select",) * 5
        + ("project", "rename", "imbed", "group", "group", "group", "distinct", "product", "join", "join", "bag")
    )
    if kind in ("product", "join"):
        left = prefixed(random_node(rng, depth - 1), "l")
        right = prefixed(random_node(rng, rng.randint(0, 1)), "r")
        if kind == "product":
            return Product(left, right)
        both = Schema((*left.schema.attributes, *right.schema.attributes))
        return Join(left, right, random_condition(rng, both), rng.choice(KINDS))
    if kind == "bag":
        left, right = rng.choice(STREAMS), rng.choice(STREAMS)
        first = Select(left, random_condition(rng, left.schema))
        return Union((first, right)) if rng.random() < 0.5 else Difference(first, right)
    inner = random_node(rng, depth - 1)
    names = inner.schema.names
    match kind:
        case "select":
            return Select(inner, random_condition(rng, inner.schema))
        case "project":
            return Project(inner, tuple(rng.sample(names, rng.randint(1, len(names)))))
        case "rename":
            return prefixed(inner, "n")
        case "imbed":
            return Imbed(inner, f"i{depth}{len(names)}", random_term(rng, inner.schema))
        case "group":
            keys = tuple(rng.sample(names, rng.randint(0, min(2, len(names)))))
            return Group(inner, keys, tuple(random_aggregates(rng, inner.schema, depth)))
        case _:
            return Distinct(inner)


def random_aggregates(rng: random.Random, schema: Schema, depth: int) -> Iterator[Aggregate]:
    yield Aggregate(f"n{depth}", Function.COUNT)
    for function in rng.sample((Function.SUM, Function.MAX, Function.COUNT_DISTINCT), rng.randint(0, 2)):
        yield Aggregate(f"{function.value}{depth}", function, random_term(rng, schema))


def random_rows(rng: random.Random) -> dict[str, list[Row]]:
    def row() -> Row:
        return (rng.randint(0, 2), rng.choice((None, 0, 1, 2)), rng.choice((None, 0, 1, 2)))

    return {scan.stream.name: [row() for _ in range(rng.choice((0, 1, 3, 5)))] for scan in STREAMS}


def outcome(node: Node, rows: dict[str, list[Row]]) -> list[Row] | str:
    try:
        return evaluate(node, rows)
    except EvaluationError as error:
        return error.code


def same_outcome(one: list[Row] | str, other: list[Row] | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return bags_equal(one, other)


def each_place(node: Node, change: Callable[[Node], Node | None]) -> Iterator[Node]:
    """The query with the change applied at one place, for every place where it applies."""
    changed = change(node)
    if changed is not None:
        yield changed
    inputs = children(node)
    for place, child in enumerate(inputs):
        for new in each_place(child, change):
            yield with_children(node, (*inputs[:place], new, *inputs[place + 1 :]))


@pytest.mark.parametrize("law", REWRITES, ids=lambda law: law.__name__)
def test_each_rewrite_keeps_meaning_schema_and_scans(law: Callable[[Node], Node | None]) -> None:
    applied = 0
    for seed in range(2500):
        rng = random.Random(seed)
        query = random_node(rng, rng.randint(1, 4))
        relations = [random_rows(rng) for _ in range(3)]
        for changed in each_place(query, lambda node: step(node, (law,))):
            applied += 1
            assert changed.schema == query.schema
            assert occurrences(changed) == occurrences(query)
            for rows in relations:
                assert same_outcome(outcome(query, rows), outcome(changed, rows)), (seed, query, changed, rows)
        if applied > 150:
            break
    assert applied > 20, "the generator does not reach this rewrite"


def test_all_rewrites_together_keep_meaning_and_reach_a_fixpoint() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        query = random_node(rng, rng.randint(1, 6))
        result = rewrite(query)
        assert rewrite(result) == result
        assert result.schema == query.schema
        assert occurrences(result) == occurrences(query)
        for _ in range(3):
            rows = random_rows(rng)
            assert same_outcome(outcome(query, rows), outcome(result, rows)), (seed, query, result, rows)


def test_the_generator_reaches_failures_and_results() -> None:
    outcomes = []
    for seed in range(300):
        rng = random.Random(seed)
        outcomes.append(outcome(random_node(rng, 4), random_rows(rng)))
    assert sum(isinstance(found, str) for found in outcomes) > 20
    assert sum(isinstance(found, list) and bool(found) for found in outcomes) > 20


R, S, T = STREAMS
FAILS = call("gt", call("idiv", number(4), Attr("x")), number(1))
SAFE = call("gt", Attr("x"), number(0))


def test_a_condition_that_can_fail_stays_above_the_filter_that_guards_it() -> None:
    assert can_fail(FAILS, R.schema)
    assert not can_fail(SAFE, R.schema)
    guarded = Select(Select(R, SAFE), FAILS)
    assert rewrite(guarded) == guarded
    joined = Join(prefixed(R, "l"), prefixed(S, "r"), call("eq", Attr("l.x"), Attr("r.x")), "inner")
    above = Select(joined, call("gt", call("idiv", number(4), Attr("l.x")), number(1)))
    assert rewrite(above) == above


def test_a_filter_does_not_hide_the_failure_of_a_term_below_it() -> None:
    query = Select(Imbed(R, "z", call("idiv", number(4), Attr("x"))), SAFE)
    assert rewrite(query) == query


def test_differences_of_instants_and_constant_shifts_cannot_fail() -> None:
    assert not can_fail(call("sub", Attr("t"), Attr("t")), R.schema)
    assert not can_fail(call("add", Attr("t"), Lit(5, DURATION)), R.schema)
    assert can_fail(call("add", Attr("x"), Attr("x")), R.schema)


def test_products_become_joins_of_selected_sides() -> None:
    left, right = prefixed(R, "l"), prefixed(S, "r")
    on = call("eq", Attr("l.x"), Attr("r.x"))
    query = Select(
        Product(left, right), conjunction([on, call("gt", Attr("l.y"), number(1)), call("gt", Attr("r.y"), number(0))])
    )
    names = (("t", "{}.t"), ("x", "{}.x"), ("y", "{}.y"))

    def side(scan: Scan, prefix: str, least: int) -> Node:
        pairs = tuple((old, new.format(prefix)) for old, new in names)
        return Rename(Select(scan, call("gt", Attr("y"), number(least))), pairs)

    assert rewrite(query) == Join(side(R, "l", 1), side(S, "r", 0), on, "inner")


def test_attributes_that_nobody_reads_leave_before_the_join() -> None:
    on = call("eq", Attr("l.x"), Attr("r.x"))
    query = Project(Join(prefixed(R, "l"), prefixed(S, "r"), on, "inner"), ("l.t",))
    assert rewrite(query) == Project(
        Join(
            Rename(Project(R, ("t", "x")), (("t", "l.t"), ("x", "l.x"))),
            Rename(Project(S, ("x",)), (("x", "r.x"),)),
            on,
            "inner",
        ),
        ("l.t",),
    )


def test_the_right_side_of_an_outer_join_keeps_its_rows_for_conditions_on_the_left() -> None:
    on = conjunction([call("eq", Attr("l.x"), Attr("r.x")), call("gt", Attr("l.y"), number(1))])
    query = Join(prefixed(R, "l"), prefixed(S, "r"), on, "left")
    assert rewrite(query) == query


def test_rewriting_a_long_chain_is_fast() -> None:
    query: Node = prefixed(R, "a0")
    for place in range(1, 30):
        query = Product(query, prefixed(R, f"a{place}"))
    conditions: list[Term] = [call("le", Attr(f"a{place}.t"), Attr(f"a{place + 1}.t")) for place in range(29)]
    query = Project(Select(query, conjunction(conditions)), ("a0.t",))
    result = rewrite(query)
    joins = 0
    current: Node = result
    while isinstance(current, Project | Join):
        joins += isinstance(current, Join)
        current = current.input if isinstance(current, Project) else current.left
    assert joins == 29


def random_program(rng: random.Random) -> list[Node]:
    """Queries over one part in common, each with operators of its own above it."""
    part = random_node(rng, rng.randint(1, 3))

    def above(depth: int) -> Node:
        if depth == 0:
            return part
        inner = above(depth - 1)
        names = inner.schema.names
        match rng.choice(("project", "rename", "imbed", "group", "select", "join")):
            case "project":
                return Project(inner, tuple(rng.sample(names, rng.randint(1, len(names)))))
            case "rename":
                return prefixed(inner, f"p{depth}")
            case "imbed":
                return Imbed(inner, f"o{depth}{len(names)}", random_term(rng, inner.schema))
            case "group":
                keys = tuple(rng.sample(names, rng.randint(0, min(2, len(names)))))
                return Group(inner, keys, tuple(random_aggregates(rng, inner.schema, depth + 10)))
            case "select":
                return Select(inner, random_condition(rng, inner.schema))
            case _:
                left, right = prefixed(inner, "l"), prefixed(rng.choice((part, *STREAMS)), "r")
                both = Schema((*left.schema.attributes, *right.schema.attributes))
                return Join(left, right, random_condition(rng, both), rng.choice(KINDS))

    return [above(rng.randint(0, 3)) for _ in range(rng.randint(2, 3))]


@pytest.mark.parametrize("shard", shards(3))
def test_rewriting_a_program_keeps_each_query_s_meaning_schema_and_scans(shard: int) -> None:
    shared = 0
    for seed in range(400 * shard, 400 * (shard + 1)):
        rng = random.Random(seed)
        queries = random_program(rng)
        shared += bool(common_parts(queries))
        for query, result in zip(queries, rewrite_program(queries), strict=True):
            assert result.schema == query.schema, seed
            assert occurrences(result) == occurrences(query), seed
            for _ in range(3):
                rows = random_rows(rng)
                assert same_outcome(outcome(query, rows), outcome(result, rows)), (seed, query, result, rows)
    assert shared > 100, "the generator makes too few programs with common parts"


def test_common_parts_stay_the_same_tree_with_what_any_query_reads() -> None:
    on = call("eq", Attr("l.x"), Attr("r.x"))
    joined = Join(prefixed(R, "l"), prefixed(S, "r"), on, "inner")
    first = Group(joined, ("l.t",), (Aggregate("n", Function.COUNT),))
    second = Group(joined, ("l.t",), (Aggregate("top", Function.MAX, Attr("r.y")),))
    one, other = rewrite_program([first, second])
    assert common_parts([one, other]) == (
        Project(
            Join(
                Rename(Project(R, ("t", "x")), (("t", "l.t"), ("x", "l.x"))),
                Rename(Project(S, ("x", "y")), (("x", "r.x"), ("y", "r.y"))),
                on,
                "inner",
            ),
            ("l.t", "r.y"),
        ),
    )
    assert rewrite(first) != one


def test_a_selection_of_one_query_is_worth_more_below_the_common_part() -> None:
    on = call("eq", Attr("l.x"), Attr("r.x"))
    joined = Join(prefixed(R, "l"), prefixed(S, "r"), on, "inner")
    selected = Select(joined, call("gt", Attr("l.y"), number(1)))
    assert common_parts([selected, joined]) == ()
    assert common_parts([selected, Project(selected, ("l.t",))]) == (selected,)
