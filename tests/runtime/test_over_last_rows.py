"""Increments with one new row of each partition: values come from the last row before, as they do in any increment."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.shards import shards
from tidegate.algebra.ordered.over import Over
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.ordered import state
from tidegate.runtime.ordered.over import last_rows, operator
from tidegate.runtime.ordered.over.last_rows import is_of_last_rows
from tidegate.runtime.ordered.over.layout import layout_of

KEYS = {"string": ("a", "b", "c", "d", "e", None), "bigint": (0, -7, 12, 10**15, 3, None)}


def stream(key: str) -> tg.Relation:
    return tg.stream("S", f"k {key}, t bigint, v bigint, x double, w string, b boolean", progress="t")


def relation(rows: tg.Relation) -> tg.Relation:
    """Values of the last row, and values of these."""
    made = rows.over(
        by="k",
        order="t",
        before=tg.lag(rows.v),
        when=tg.lag(rows.t),
        twice=tg.lag(rows.v * 2 + rows.t),
        word=tg.lag(rows.w),
        was=tg.lag(rows.b),
        number=tg.row_number(),
        last=tg.last(rows.v, by=rows.t),
        first=tg.first(rows.x, by=rows.t),
        last_word=tg.last(rows.w, by=rows.t),
        near=tg.lag(rows.v, within=4),
        near_word=tg.lag(rows.w, within=9),
    )
    told = made.with_(moved=made.v != made.near)
    return told.over(
        by="k",
        order="t",
        again=tg.lag(told.before),
        moved_before=tg.lag(told.moved),
        known=tg.last(told.near, by=told.t),
    )


def drawn(key: str, seed: int) -> list[list[tuple[Any, ...]]]:
    """Rows by batch: of most keys one, now and then of one several."""
    rng, batches, t = random.Random(f"{key} {seed}"), [], 0
    for _ in range(30):
        keys = rng.sample(KEYS[key], rng.choice((1, 3, 6)))
        keys += keys[:1] if rng.random() < 0.2 else []
        batches.append(
            [
                (
                    one,
                    t := t + rng.choice((1, 1, 4)),
                    rng.choice((1, -2, 10**12, None)),
                    rng.choice((0.5, -0.0, None)),
                    rng.choice(("", "word", None)),
                    rng.choice((True, False, None)),
                )
                for one in keys
            ]
        )
    return batches


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("key", ["string", "bigint"])
@pytest.mark.parametrize("seed", shards(3))
def test_values_are_those_of_all_rows_at_once(
    seed: int, key: str, restarts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where every batch writes what it changes, and the next one reads it."""
    monkeypatch.setattr(state, "SMALL", 0)
    quick, taken = last_rows.of_last_rows, Counter[bool]()

    def noted(*given: Any) -> Any:
        made = quick(*given)
        taken[made is not None] += 1
        return made

    monkeypatch.setattr(operator, "of_last_rows", noted)
    rows = stream(key)
    program, batches = tg.program(R=relation(rows)), drawn(key, seed)
    (query,) = program.definition.queries
    session = program.session(checkpoint=tmp_path)
    for number, batch in enumerate(batches):
        if restarts and number % 3 == 2:
            session.close()
            session = program.session(checkpoint=tmp_path)
        session.push("S", batch)
        session.advance("S", {"t": max(row[1] for row in batch)})
        session.step()
    found = Counter(tuple(row.values()) for row in session.results("R"))
    session.close()
    assert found == Counter(evaluate(query.node, {"S": [row for batch in batches for row in batch]}))
    assert taken[True] > 15
    assert taken[False] > 1


def test_rows_that_come_out_of_order_wait_for_their_turn() -> None:
    rows = stream("string")
    told = tg.program(R=rows.over(by="k", order="t", before=tg.lag(rows.v)).select("k", "t", "before"))
    with told.session() as session:
        session.push("S", [("a", 5, 5, None, None, None), ("b", 1, 1, None, None, None)])
        session.advance("S", 1)
        session.step()
        session.push("S", [("a", 3, 3, None, None, None), ("b", 6, 6, None, None, None)])
        session.advance("S", 6)
        session.step()
        found = sorted(tuple(row.values()) for row in session.results("R"))
    assert found == [("a", 3, None), ("a", 5, 3), ("b", 1, None), ("b", 6, 1)]


def by_batch(*batches: list[tuple[str, int, int | None]]) -> list[tuple[Any, ...]]:
    """Rows by key and instant, with the value of the row before, their number, the last value and the first one."""
    rows = stream("string")
    made = rows.over(
        by="k",
        order="t",
        before=tg.lag(rows.v),
        number=tg.row_number(),
        last=tg.last(rows.v, by=rows.t),
        first=tg.first(rows.v, by=rows.t),
    )
    with tg.program(R=made.select("k", "t", "before", "number", "last", "first")).session() as session:
        for batch in batches:
            session.push("S", [(key, t, v, None, None, None) for key, t, v in batch])
            session.advance("S", max(t for _, t, _ in batch))
            session.step()
        return sorted(tuple(row.values()) for row in session.results("R"))


def test_values_go_on_from_the_last_row() -> None:
    """Of its own partition, whichever others have a row in the batch."""
    assert by_batch([("a", 1, 5), ("b", 1, 6)], [("b", 2, None)], [("a", 3, 7), ("b", 3, 8)]) == [
        ("a", 1, None, 1, 5, 5),
        ("a", 3, 5, 2, 7, 5),
        ("b", 1, None, 1, 6, 6),
        ("b", 2, 6, 2, 6, 6),
        ("b", 3, None, 3, 8, 6),
    ]


def test_of_several_new_rows_of_a_partition_each_has_the_one_before() -> None:
    assert by_batch([("b", 1, 1)], [("a", 2, 5), ("a", 3, 6)]) == [
        ("a", 2, None, 1, 5, 5),
        ("a", 3, 5, 2, 6, 5),
        ("b", 1, None, 1, 1, 1),
    ]


S = stream("string")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (tg.lag(S.v), True),
        (tg.row_number(), True),
        (tg.last(S.v, by=S.t), True),
        (tg.first(S.v, by=S.t), True),
        (tg.lag(S.v, 2), False),
        (tg.lag(S.v, within=5), True),
        (tg.lag(S.v, 2, within=5), False),
        (tg.lag(S.v, 1, 0), False),
        (tg.lead(S.v), False),
        (tg.previous_different(S.v), False),
        (tg.nth(S.v, 1), False),
        (tg.sum(S.v), False),
        (tg.last(S.v, by=S.x), False),
        (tg.count(), False),
    ],
)
def test_which_values_come_from_the_last_row(column: Any, expected: bool) -> None:
    (query,) = tg.program(R=S.over(by="k", order="t", before=tg.lag(S.t), c=column)).definition.queries
    assert isinstance(query.node, Over)
    assert is_of_last_rows(query.node) is expected


def test_a_last_row_that_is_needed_for_a_while_is_kept_no_longer() -> None:
    """So it is not written where the new one stands, as nothing would be looked at when its time is over."""
    made = S.over(by="k", order="t", near=tg.lag(S.v, within=5))
    (query,) = tg.program(R=made).definition.queries
    assert isinstance(query.node, Over)
    assert not is_of_last_rows(query.node)
    with tg.program(R=made).session() as session:
        session.push("S", [("a", 1, 1, None, None, None), ("b", 2, 1, None, None, None)])
        for at, kept in (2, 2), (6, 1), (7, 0):
            session.advance("S", at)
            session.step()
            assert sum(session.live_rows().values()) == kept


def test_a_row_is_kept_with_what_later_ones_read() -> None:
    """Of a running value that alone, and not what it is made of, unless another column reads that."""
    told = S.over(by="k", order="t", most=tg.max(S.v), last=tg.last(S.w, by=S.t), before=tg.lag(S.x))
    both = told.over(by="k", order="t", other=tg.previous_different(told.v))
    for made, expected in ((told, ["argument 2", "running 0.v", "running 1.v"]), (both, ["argument 0", "argument 2"])):
        (query,) = tg.program(R=made).definition.queries
        assert isinstance(query.node, Over)
        columns = [*layout_of(query.node).columns]
        assert columns[0] == "time"
        assert columns[1 : 1 + len(expected)] == expected


def test_the_moving_last_value_needs_more_than_the_last_row() -> None:
    (query,) = tg.program(R=S.over(by="k", order="t", rows=(2, 0), c=tg.last(S.v, by=S.t))).definition.queries
    assert isinstance(query.node, Over)
    assert not is_of_last_rows(query.node)
