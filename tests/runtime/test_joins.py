"""Joins of two tables by random conditions, in each of the ways that joins take: all pairs that satisfy the condition,
once.

Tables are small and boundary-biased, and ways that many rows take are reached by the sizes at which joins choose, each
set to small by itself too.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from tests.thresholds import THRESHOLDS, Threshold, small
from tidegate.algebra.evaluation import evaluate_term
from tidegate.algebra.nodes import Join, JoinKind, Scan
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, Lit, Term, call, conjunction
from tidegate.algebra.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    DURATION,
    INT64_MAX,
    INT64_MIN,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    decimal,
)
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.joins import bands
from tidegate.runtime.eval.joins import ranges as many
from tidegate.runtime.eval.joins.bands import find_bands
from tidegate.runtime.eval.joins.equality import join_product
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.eval.small.trees import Run, small_tree
from tidegate.runtime.plan.join_parts import Equality, Range, join_parts
from tidegate.runtime.rows import SmallRows, Unsupported

Row = tuple[Any, ...]
Tables = tuple[Sequence[Row], Sequence[Row]]
KINDS: tuple[JoinKind, ...] = ("inner", "left", "semi", "anti")
TYPES: dict[str, DataType] = {"k": BIGINT, "s": STRING, "d": DOUBLE, "t": TIMESTAMP, "e": TIMESTAMP, "b": BOOLEAN}


def table(name: str) -> StreamDef:
    """Attributes `k1`, `s1`, …: names of the sides differ."""
    return StreamDef(name, Schema(tuple(Attribute(f"{a}{name}", type_) for a, type_ in TYPES.items())), static=True)


LEFT, RIGHT = table("1"), table("2")
BOTH = Schema((*LEFT.schema.attributes, *RIGHT.schema.attributes))
BOTH = Schema((*LEFT.schema.attributes, *RIGHT.schema.attributes))


def one(name: str) -> Term:
    return Attr(f"{name}1")


def two(name: str) -> Term:
    return Attr(f"{name}2")


#: Conjuncts by what they are good for.
EQUAL = (
    call("eq", one("k"), two("k")),
    call("eq", two("s"), one("s")),
    call("eq_null_safe", one("k"), two("k")),
    call("eq_null_safe", two("d"), one("d")),
    call("eq", one("d"), two("d")),
    call("eq", one("k"), two("d")),
)
BETWEEN = (
    call("le", one("t"), two("t")),
    call("lt", one("t"), two("t")),
    call("lt", two("t"), one("t")),
    call("ge", one("t"), two("t")),
    call("gt", one("e"), two("t")),
    call("le", one("t"), two("e")),
    call("le", two("t"), one("e")),
    call("lt", two("t"), one("e")),
    call("lt", one("e"), two("e")),
    call("lt", one("k"), two("k")),
)
ALONE = (
    call("gt", one("k"), Lit(1, BIGINT)),
    call("is_not_null", one("s")),
    call("lt", two("k"), Lit(2, BIGINT)),
    one("b"),
    two("b"),
)
REST = (
    call("ne", one("k"), two("k")),
    call("or", one("b"), two("b")),
    call("lt", one("d"), two("d")),
)


def condition(rng: random.Random) -> Term:
    parts = [
        *rng.sample(EQUAL, rng.choice((0, 1, 1, 2))),
        *rng.sample(BETWEEN, rng.choice((0, 1, 2, 2, 3, 4))),
        *(rng.sample(ALONE, rng.choice((1, 2))) if rng.random() < 0.5 else ()),
        *(rng.sample(REST, 1) if rng.random() < 0.3 else ()),
    ]
    rng.shuffle(parts)
    return conjunction(parts or [REST[0]])


def row(rng: random.Random, nulls: float) -> Row:
    """Instants tie, intervals are seldom the wrong way round."""
    start = rng.choice((-3, 0, 1, 2, 3, 5))
    made: Row = (
        rng.choice((0, 1, 2, 3)),
        rng.choice(("", "a", "b")),
        rng.choice((0.0, -0.0, 1.0, 2.0, 2.5, float("nan"))) if nulls else rng.choice((0.0, 1.0, 2.0)),
        start,
        start + rng.choice((0, 1, 2, 4, -1)),
        rng.random() < 0.6,
    )
    return tuple(None if rng.random() < nulls else value for value in made)


def tables(rng: random.Random) -> Tables:
    nulls = rng.choice((0, 0, 0.15))
    return tuple([row(rng, nulls) for _ in range(rng.choice((0, 1, 3, 8, 8, 14)))] for _ in range(2))  # type: ignore[return-value]  # two of them


def expected(tree: Join, given: Tables) -> Counter[str]:
    """By each pair, one after the other."""
    found: list[Row] = []
    names = BOTH.names
    for left in given[0]:
        partners = [
            right
            for right in given[1]
            if evaluate_term(tree.condition, dict(zip(names, (*left, *right), strict=True)), BOTH) is True
        ]
        match tree.kind:
            case "inner":
                found += [(*left, *right) for right in partners]
            case "left":
                found += [(*left, *right) for right in partners or [(None,) * len(RIGHT.schema)]]
            case "semi":
                found += [left] * bool(partners)
            case _:
                found += [left] * (not partners)
    return Counter(map(shown, found))


def shown(row: Row) -> str:
    return repr(tuple(0.0 if value == 0 and isinstance(value, float) else value for value in row))


def frames(given: Tables) -> dict[int, pl.DataFrame]:
    return {
        i: pl.DataFrame(list(rows), schema=polars_schema(stream.schema), orient="row")
        for i, (rows, stream) in enumerate(zip(given, (LEFT, RIGHT), strict=True))
    }


def ticks(frame: pl.DataFrame) -> list[Row]:
    return frame.with_columns(pl.col(pl.Datetime).dt.epoch("us")).rows()


def found(tree: Join, given: Tables) -> Counter[str]:
    return Counter(map(shown, ticks(evaluate(tree, frames(given)))))


def by_numpy(tree: Join, given: Tables) -> Counter[str] | None:
    """The same where NumPy takes it."""
    step = small_tree(tree)
    if step is None:
        return None
    try:
        return Counter(map(shown, ticks(step(Run({i: SmallRows.of(f) for i, f in frames(given).items()})).frame())))
    except Unsupported:
        return None


SIZES = [one for one in THRESHOLDS if one.module in ("eval.joins.ranges", "eval.aggregates.compiled") and one.small]
SMALL_SIZES = [one for one in THRESHOLDS if one.module == "eval.small.joins" or str(one) == "rows.MOST_PAIRS"]
(SMALL_PRODUCT,) = [one for one in SIZES if str(one) == "eval.joins.ranges.SMALL_PRODUCT"]
#: Joins of many rows with each other size as it is, and as small: the usual path of production is the first.
MANY = [(SMALL_PRODUCT,), *((SMALL_PRODUCT, size) for size in SIZES if size is not SMALL_PRODUCT)]


def cases(seed: int, count: int) -> list[tuple[Join, Tables]]:
    rng = random.Random(seed)
    return [
        (Join(Scan(LEFT), Scan(RIGHT), condition(rng), kind), tables(rng))
        for kind in itertools.islice(itertools.cycle(KINDS), count)
    ]


@pytest.mark.parametrize(
    "sizes", [(), *MANY], ids=lambda sizes: " and ".join(one.name for one in sizes) or "as they are"
)
def test_random_joins_find_all_pairs_once(sizes: tuple[Threshold, ...]) -> None:
    with ExitStack() as stack:
        for size in sizes:
            stack.enter_context(small(size))
        for tree, given in cases(7, 100):
            assert found(tree, given) == expected(tree, given), f"{tree.kind} {tree.condition}: {given}"


@pytest.mark.parametrize("size", [None, *SMALL_SIZES], ids=str)
def test_random_joins_by_numpy_find_all_pairs_once(size: Threshold | None) -> None:
    taken = 0
    with small(size, size.small[-1] if size else None):
        for tree, given in cases(8, 250):
            pairs = by_numpy(tree, given)
            taken += pairs is not None
            assert pairs is None or pairs == expected(tree, given), f"{tree.kind} {tree.condition}: {given}"
    assert taken > 20


def test_joins_of_values_far_apart_go_by_their_places() -> None:
    """Ranks as distances would not fit into 64 bits beside the groups."""
    for tree, given in cases(9, 60):
        with small(SMALL_PRODUCT), patch.object(bands, "_MOST", 2):
            assert found(tree, given) == expected(tree, given), f"{tree.kind} {tree.condition}: {given}"


# What is looked at: a join that finds its pairs among all there are is right, and of no use.

KEY, OTHER = EQUAL[0], EQUAL[1]
FROM, TO = BETWEEN[0], BETWEEN[6]  # t1 <= t2 and t2 <= e1


def parts(*conjuncts: Term) -> Any:
    return join_parts(conjunction(conjuncts), LEFT.schema, RIGHT.schema)


def test_conjuncts_are_sorted_by_what_they_are_good_for() -> None:
    made = parts(*EQUAL[:2], FROM, BETWEEN[2], BETWEEN[4], ALONE[0], ALONE[2], REST[0])
    assert made.equalities == (Equality(one("k"), two("k"), False), Equality(one("s"), two("s"), False))
    assert made.ranges == (
        Range(one("t"), two("t"), strict=False, left_first=True),
        Range(two("t"), one("t"), strict=True, left_first=False),
        Range(two("t"), one("e"), strict=True, left_first=False),
    )
    assert (made.left, made.right, made.rest) == ((ALONE[0],), (ALONE[2],), (REST[0],))
    assert parts(EQUAL[2]).equalities == (Equality(one("k"), two("k"), True),)
    constant = call("lt", Lit(1, BIGINT), Lit(2, BIGINT))
    assert parts(KEY, constant).left == (constant,)
    for first, second in ((one("k"), two("d")), (two("d"), one("k")), (one("d"), two("d"))):
        made = parts(call("lt", first, second))
        assert (made.ranges, made.rest) == ((), (call("lt", first, second),)), "integers of one type alone are searched"


def test_keys_of_two_types_meet_in_the_wider_one() -> None:
    (key,) = parts(EQUAL[5]).equalities
    assert key == Equality(call("cast_double", one("k")), two("d"), False)


def test_a_value_that_does_not_fit_the_wider_type_is_not_the_null_of_the_other_side() -> None:
    """Cast it would be NULL, which equals nothing; but it would equal NULL where NULL equals NULL."""
    left, right = Schema((Attribute("x", BIGINT),)), Schema((Attribute("y", decimal(9, 2)),))
    x, y = Attr("x"), Attr("y")
    (key,) = join_parts(call("eq", y, x), left, right).equalities
    cast = "try_cast_decimal_18_2"
    assert key == Equality(call(cast, x), call(cast, y), False)
    same = call("eq_null_safe", x, y)
    made = join_parts(same, left, right)
    assert (made.equalities, made.rest) == ((), (same,))


def test_a_column_that_is_always_null_is_no_key() -> None:
    nothing, some, other = (Schema((Attribute(*one),)) for one in (("n", NULL), ("x", BIGINT), ("m", NULL)))
    for left, right in ((nothing, some), (some, nothing), (nothing, other)):
        (one_,), (other_,) = left.names, right.names
        for op in ("eq", "eq_null_safe"):
            same = call(op, Attr(one_), Attr(other_))
            made = join_parts(same, left, right)
            assert (made.equalities, made.rest) == ((), (same,))


def test_bounds_of_a_difference_are_ranges_where_nothing_can_overflow() -> None:
    """`y - x <= 5` is `y <= x + 5`, and `y - x > 5` is `x + 5 < y`, either way round; of plain integers it stays as it
    is.
    """
    x, y = Attr("x"), Attr("y")
    for temporal in (True, False):
        left, right = (Schema((Attribute(name, TIMESTAMP, nullable=not temporal, temporal=temporal),)) for name in "xy")
        five = Lit(5, DURATION)
        later = call("add", x, five)
        for condition, expected_range in (
            (call("le", call("sub", y, x), five), Range(y, later, strict=False, left_first=False)),
            (call("gt", call("sub", y, x), five), Range(later, y, strict=True, left_first=True)),
            (call("gt", five, call("sub", y, x)), Range(y, later, strict=True, left_first=False)),
        ):
            made = join_parts(condition, left, right)
            assert made.ranges == ((expected_range,) if temporal else ())
            assert made.rest == (() if temporal else (condition,))


def candidates(made: Any, given: Tables) -> int:
    """Pairs that are looked at by a join of many rows."""
    left, right = frames(given).values()
    ones, others = many._keys(left, right, BOTH, made.equalities)
    groups = many._groups(left.height, right.height, ones, others)
    return sum(int(np.maximum(b.stop - b.start, 0).sum()) for b in find_bands(left, right, BOTH, made, groups))


def pairs(given: Tables, holds: Any) -> int:
    return sum(
        bool(holds(dict(zip(TYPES, left, strict=True)), dict(zip(TYPES, right, strict=True))))
        for left in given[0]
        for right in given[1]
    )


def complete(seed: int, count: int = 30) -> Tables:
    rng = random.Random(seed)
    return [row(rng, 0) for _ in range(count)], [row(rng, 0) for _ in range(count)]


@pytest.mark.parametrize("most_rows", [0, 1 << 20], ids=["compiled", "sorted"])
def test_a_join_looks_at_no_more_pairs_than_its_ranges_leave(most_rows: int) -> None:
    """By key, by both bounds of a value, by either way in which intervals overlap, or by one bound."""
    given = complete(3)
    with patch("tidegate.runtime.eval.aggregates.compiled.MANY_ROWS", most_rows):
        assert candidates(parts(KEY, REST[0]), given) == pairs(given, lambda a, b: a["k"] == b["k"])
        inside = pairs(given, lambda a, b: a["k"] == b["k"] and a["t"] <= b["t"] <= a["e"])
        assert candidates(parts(KEY, FROM, TO), given) == inside
        assert candidates(parts(KEY, TO, FROM, BETWEEN[8]), given) == inside
        strictly = pairs(given, lambda a, b: a["t"] < b["t"] < a["e"])
        assert candidates(parts(BETWEEN[1], BETWEEN[7]), given) == strictly
        overlap = pairs(
            given,
            lambda a, b: a["t"] <= b["t"] <= a["e"] or b["t"] < a["t"] <= b["e"],
        )
        assert candidates(parts(BETWEEN[5], TO), given) == overlap
        below = pairs(given, lambda a, b: a["e"] < b["e"])
        assert candidates(parts(BETWEEN[8]), given) == below


def test_pairs_are_seen_a_few_at_a_time() -> None:
    """At most CHUNK of them, or those of one row."""
    made = parts(KEY, REST[0])
    left, right = frames(complete(4)).values()
    groups = many._groups(left.height, right.height, *many._keys(left, right, BOTH, made.equalities))
    (band,) = find_bands(left, right, BOTH, made, groups)
    whole = candidates(made, complete(4))
    most = int((band.stop - band.start).max())
    for chunk in (*range(1, 3 * most), 10_000):
        with patch.object(many, "CHUNK", chunk):
            pieces = list(many._expanded(band))
        assert sum(len(outer) for outer, _ in pieces) == whole
        assert all(len(outer) == len(inner) for outer, inner in pieces)
        assert all(len(outer) <= chunk or len(set(outer.tolist())) == 1 for outer, _ in pieces)
        assert len(pieces) <= 2 * whole / max(chunk, 1) + 1, "pieces are as full as they may be"


def test_pairs_with_equal_keys_are_listed_where_they_are_few() -> None:
    """Up to PAIRS_PER_ROW for each row of both sides; rows without a group have none."""
    ones, others = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    for few, listed in ((2, True), (1, False)):  # 16 pairs of 8 rows
        with patch.object(many, "PAIRS_PER_ROW", few):
            assert many._few_pairs(ones, others) is listed
    with patch.object(many, "PAIRS_PER_ROW", 0):
        assert many._few_pairs(np.array([-1, 0]), np.array([-1, 1]))
        assert not many._few_pairs(np.array([-1, 0]), np.array([-1, 0]))


def test_close_integers_are_their_own_groups() -> None:
    def dense(left: list[int | None], right: list[int | None]) -> Any:
        made = many._dense(pl.Series(left, dtype=pl.Int64), pl.Series(right, dtype=pl.Int64))
        return None if made is None else tuple(part.tolist() for part in made)

    assert dense([5, 7], [6, 5, 5]) == ([0, 2], [1, 0, 0])
    assert dense([0, 20], [1, 2, 3]) == ([0, 20], [1, 2, 3]), "as far apart as four times the rows"
    assert dense([0, 21], [1, 2, 3]) is None
    assert dense([1, None], [2]) is None
    assert dense([1], [None]) is None
    assert dense([], [1]) is None
    assert dense([1], []) is None
    assert many._dense(pl.Series([True]), pl.Series([True])) is None


def test_a_search_between_two_bounds_goes_before_others() -> None:
    """Of those the one that covers more ranges; the number of ranges does not outweigh the second bound."""
    between, ends = parts(FROM, TO).ranges, parts(BETWEEN[8]).ranges
    one_sided = parts(BETWEEN[0], BETWEEN[1], call("lt", one("e"), two("t"))).ranges
    for ranges in (
        between,
        between[::-1],
        (*ends, *between),
        (*between, *ends),
        (*one_sided, *parts(BETWEEN[6]).ranges),
    ):
        first, *others = bands._searches(ranges, BOTH)
        assert first.lower
        assert first.upper
        assert all(len(first.used) >= len(other.used) for other in others if other.lower and other.upper)
    # Three bounds from below of one value do not outweigh two of another, one from each side.
    first = bands._searches(parts(FROM, TO, BETWEEN[5], BETWEEN[8], call("lt", one("t"), two("e"))).ranges, BOTH)[0]
    assert (first.inner, len(first.lower), len(first.upper)) == (two("t"), 1, 1)


def test_ranks_are_distances_where_they_fit_beside_the_groups() -> None:
    values = np.array([3, 0, 3])
    for most, far in ((11, False), (10, True)):  # two groups of four distances and a place beyond
        with patch.object(bands, "_MOST", most):
            ranking = bands._Ranking.of(values, 2)
        assert (ranking.distinct is not None) == far
        assert ranking.ranks.tolist() == ([1, 0, 1] if far else [3, 0, 3])
        assert ranking.count == (2 if far else 4)
        limits = np.array([-5, -1, 0, 1, 2, 3, 4, 9])
        for side in ("left", "right"):
            places = ranking.place(limits, side)
            smaller = [int(limit > 0 or (side == "right" and limit == 0)) for limit in limits.tolist()]
            assert [int(place > 0) for place in places] == smaller
            whole = [int(limit > 3 or (side == "right" and limit == 3)) for limit in limits.tolist()]
            assert [int(place >= ranking.count) for place in places] == whole
    with patch.object(bands, "_MOST", 100):
        assert bands._Ranking.of(np.array([-100, -99]), 1).distinct is not None, (
            "so far from nought that limits overflow"
        )
        assert bands._Ranking.of(np.array([-99, -98]), 1).distinct is None
    assert bands._Ranking.of(np.array([], dtype=np.int64), 1).count == 1


def test_joins_of_few_pairs_are_left_to_polars() -> None:
    """The limit counts pairs, not rows."""
    tree = Join(Scan(LEFT), Scan(RIGHT), conjunction([KEY, FROM]), "inner")
    for height, few in ((4, True), (5, False)):
        left, right = complete(5, height)
        with (
            patch.object(many, "SMALL_PRODUCT", 16),
            patch.object(many, "join_product", wraps=join_product) as listed,
            patch.object(many._Pairs, "of", wraps=many._Pairs.of) as searched,
        ):
            found(tree, (left, right))
        assert (listed.called, searched.called) == (few, not few)


def test_a_sorted_side_is_searched_by_compiled_kernels_and_no_other() -> None:
    made = parts(FROM, TO)
    (search, *_) = bands._searches(made.ranges, BOTH)
    given = complete(6, 400)
    ordered = given[0], sorted(given[1], key=lambda row: row[3])
    reversed_ = given[0], [(*row[:3], 1000 - i, *row[4:]) for i, row in enumerate(given[1])]
    zeros = np.zeros(400, dtype=np.int64)
    for rows, taken in ((ordered, True), (reversed_, False)):
        left, right = frames(rows).values()
        band = bands._compiled(left, right, BOTH, search, zeros, zeros, ())
        assert (band is not None) == taken


def test_what_can_fail_is_no_key_behind_a_guard() -> None:
    """A conjunct before it may keep the rows away for which it fails."""
    left = Schema((Attribute("x", BIGINT), Attribute("y", BIGINT)))
    right = Schema((Attribute("z", DOUBLE), Attribute("w", BIGINT)))
    x, y, z, w = (Attr(name) for name in "xyzw")
    ratio, nought = call("eq", call("div", x, y), z), call("ne", y, Lit(0, BIGINT))
    for guard in (nought, call("ne", y, w), call("gt", w, Lit(0, BIGINT))):
        guarded = conjunction([guard, ratio])
        made = join_parts(guarded, left, right)
        assert (made.equalities, made.rest) == ((), (guarded,)), guard
        assert join_parts(conjunction([ratio, guard]), left, right).equalities, "before the guard it is a key"
    same = call("eq", y, w)
    assert len(join_parts(conjunction([same, ratio]), left, right).equalities) == 2, (
        "a key is no guard: it drops no error"
    )
    assert len(join_parts(conjunction([same, ratio]), left, right, exact=True).equalities) == 1


@pytest.mark.parametrize("most_rows", [0, 1 << 20], ids=["compiled", "sorted"])
@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge"])
def test_limits_at_the_ends_of_64_bits(op: str, most_rows: int) -> None:
    """A strict bound next to the last number has no number beyond it."""
    ends = (INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX, None)
    given = [(k, "", 0.0, 0, 0, True) for k in ends], [(k, "", 0.0, 0, 0, True) for k in (*ends, None, 0)]
    both = conjunction([call(op, one("k"), two("k")), call("le", one("t"), two("t"))])
    for condition in (call(op, one("k"), two("k")), call(op, two("k"), one("k")), both):
        for kind in KINDS:
            tree = Join(Scan(LEFT), Scan(RIGHT), condition, kind)
            with small(SMALL_PRODUCT), patch("tidegate.runtime.eval.aggregates.compiled.MANY_ROWS", most_rows):
                assert found(tree, given) == expected(tree, given), (kind, condition)


@pytest.mark.parametrize("sizes", [(), (SMALL_PRODUCT,)], ids=["few", "many"])
def test_null_equals_null_by_keys_that_say_so_alone(sizes: tuple[Threshold, ...]) -> None:
    rows = [(k, s, d, 0, 0, True) for k in (None, 1) for s in (None, "a") for d in (None, 0.5)]
    safe, plain = (call("eq_null_safe", one("k"), two("k")), call("eq_null_safe", one("d"), two("d"))), EQUAL[1]
    with ExitStack() as stack:
        for size in sizes:
            stack.enter_context(small(size))
        for parts_ in (
            (safe[0], plain),
            (plain, safe[0]),
            (*safe, plain),
            safe,
            (safe[0], EQUAL[4]),
            (plain, EQUAL[4]),
        ):
            for kind in KINDS:
                tree = Join(Scan(LEFT), Scan(RIGHT), conjunction(parts_), kind)
                assert found(tree, (rows, rows)) == expected(tree, (rows, rows)), (kind, parts_)


@pytest.mark.parametrize("most_rows", [0, 1 << 20], ids=["compiled", "sorted"])
def test_rows_with_a_partner_in_either_way_of_overlapping(most_rows: int) -> None:
    """One of the two searches is from the right side: its slices tell of right rows, not of left ones."""
    for seed, heights in enumerate([(4, 9), (9, 4), (6, 6)]):
        rng = random.Random(seed)
        given: Tables = tuple([row(rng, 0) for _ in range(height)] for height in heights)  # type: ignore[assignment]
        for conjuncts in ((BETWEEN[5], TO), (KEY, BETWEEN[5], TO), (KEY, BETWEEN[1], BETWEEN[7])):
            for kind in KINDS:
                tree = Join(Scan(LEFT), Scan(RIGHT), conjunction(conjuncts), kind)
                with (
                    small(SMALL_PRODUCT),
                    patch.object(many, "PAIRS_PER_ROW", 0),
                    patch("tidegate.runtime.eval.aggregates.compiled.MANY_ROWS", most_rows),
                ):
                    assert found(tree, given) == expected(tree, given), (kind, conjuncts)


@pytest.mark.parametrize("alone", [(0,), (1, 3), (2,), (4,), (0, 2), (1, 3, 4)], ids=str)
def test_conditions_of_one_side_beside_equal_keys(alone: tuple[int, ...]) -> None:
    """A left row that fails its own has no partner; a right one is none."""
    rng = random.Random(str(alone))
    for kind in KINDS:
        for keys in ((KEY,), EQUAL[:2], (EQUAL[2],), (EQUAL[3], KEY)):
            tree = Join(Scan(LEFT), Scan(RIGHT), conjunction([*keys, *(ALONE[k] for k in alone)]), kind)
            given: Tables = tuple([row(rng, 0.1) for _ in range(10)] for _ in range(2))  # type: ignore[assignment]
            assert found(tree, given) == expected(tree, given), (kind, keys, given)
            swapped = Join(Scan(LEFT), Scan(RIGHT), conjunction([*(ALONE[k] for k in alone), *keys]), kind)
            assert found(swapped, given) == expected(tree, given)
