"""Operators of users: the same rows whatever the batching, the engine and the disorder, and an error for what breaks
its word.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import polars as pl
import pytest

import tidegate as tg
from tests.operators import Bursts, Changes, Silences, Words
from tests.runtime.batchings import in_any_batches, on_spark
from tests.shards import shards
from tidegate import testing
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.ordered.state import SMALL
from tidegate.runtime.plan import placement
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

S = tg.stream("S", "k string, t bigint, v bigint", progress="t")
BY_KEY = S.partition_by("k")


def program() -> tg.Program:
    silences = BY_KEY.process(Silences(7))
    return tg.program(
        Changed=BY_KEY.process(Changes()),
        Long=silences.where(silences.at - silences.since > 1).select("k", "at"),
        All=S.partition_by(time="t").process(Changes()),
        Counted=silences.group_by(w=tg.ceil(silences.at, 10)).agg(n=tg.count()),
    )


def events(seed: int) -> list[Event]:
    rng = random.Random(seed)
    times = rng.sample(range(1, 120), 60)
    return [(rng.choice(("a", "b", "c", None)), t, rng.choice((1, 1, 2, None))) for t in sorted(times)]


def wanted(rows: Sequence[Event], name: str) -> list[Event]:
    (query,) = (one for one in program().definition.queries if one.stream == name)
    return sorted(evaluate(query.node, {"S": list(rows)}), key=str)


def found(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    return sorted((tuple(row.values()) for row in rows), key=str)


@pytest.mark.parametrize("seed", shards(6))
def test_rows_are_those_of_the_meaning_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """In disorder that progress permits, and with a start from the checkpoint in between."""
    rows = events(seed)
    results = in_any_batches(program, rows, seed, tmp_path, {"Changed": "t", "Long": "at"})
    for name in ("Changed", "Long", "All", "Counted"):
        assert found(results[name]) == wanted(rows, name)


def test_a_timer_goes_off_with_no_event() -> None:
    with program().session() as session:
        session.push("S", [("a", 10, 1), ("b", 12, 1)])
        session.advance("S", 16)
        session.step()
        assert session.results("Long") == []
        session.advance("S", 17)
        session.step()
        assert session.results("Long") == [{"k": "a", "at": 17}]


@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [pytest.param(0, marks=pytest.mark.long), 1])
def test_spark_has_the_same_rows(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 30, shard_bytes, spark, monkeypatch)
    for name in ("Changed", "Long", "All", "Counted"):
        assert found(results[name]) == wanted(rows, name)


def test_it_is_explained_listed_and_answered_for(tmp_path: Path) -> None:
    told = str(program().explain())
    assert "situation" not in told
    assert "Silences(gap=7) into since bigint not null, at bigint not null" in told
    assert "holds       last: rate(S) × 7 × 1" in told
    with program().session(checkpoint=tmp_path) as session:
        session.push("S", [("a", 10, 1), ("b", 12, 1)])
        session.advance("S", 12)
        session.step()
        assert "has arrived up to 12" in str(session.why("Long"))
    listed = str(list_state(LocalStore(tmp_path)))
    assert "kept        2 rows of 'last'" in listed
    assert "bound       last: keys(S by k) × 1" in listed


def test_an_inner_query_is_named_by_its_operator() -> None:
    changed = BY_KEY.process(Changes())
    text = str(tg.program(Changed=changed, Fewer=changed.group_by("t").agg(n=tg.count())).explain())
    assert "Fewer (its rows of Changes): computed first" in text
    once = tg.result_of("Changed", changed)
    text = str(tg.program(Changed=once, Fewer=once.group_by("t").agg(n=tg.count())).explain())
    assert "its rows of" not in text
    assert text.count("process r0 by k") == 1


def test_the_checkpoint_belongs_to_the_parameters(tmp_path: Path) -> None:
    def of(gap: int) -> tg.Program:
        return tg.program(Silent=BY_KEY.process(Silences(gap)))

    with of(7).session(checkpoint=tmp_path) as session:
        session.push("S", [("a", 10, 1)])
        session.step()
    with pytest.raises(tg.TidegateError, match="Silent"):
        of(8).session(checkpoint=tmp_path)


def test_ties_are_those_of_all_ordered_operators() -> None:
    tied = [("a", 1, 1), ("a", 1, 1), ("a", 2, 3), ("a", 2, 2)]
    with tg.program(C=BY_KEY.process(Changes())).session() as session:
        session.push("S", tied)
        session.finish()
        session.step()
        assert session.results("C") == [{"k": "a", "t": 1, "v": 1}]


Step = Callable[[pl.DataFrame, Mapping[str, pl.DataFrame], tg.Reach], Any]


@dataclass(frozen=True)
class Broken(tg.Operator):
    """An operator that does something else than it says."""

    does: Step
    tables: ClassVar = {"one": "v bigint"}

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream("Broken", "since bigint, t bigint", progress="t", relations=lambda row: row.since <= row.t)

    def step(self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach) -> Any:
        return self.does(events, state, reach)


def rows(**columns: object) -> pl.DataFrame:
    """The result of a step of one row, at the time of the event unless it says otherwise."""
    return pl.DataFrame({"partition": [0], "since": [5], "t": [5]} | {name: [value] for name, value in columns.items()})


@pytest.mark.parametrize(
    ("does", "message", "hint"),
    [
        (lambda *_: None, "step returned a NoneType, not rows and tables", ""),
        (lambda *_: (None, {}), "not rows and tables", ""),
        (lambda events, *_: (events, {}), "its result has the columns partition, since, t", ""),
        (lambda *_: (rows(t="soon"), {}), "its result has t bigint, and step returned String ('soon')", ""),
        (lambda *_: (rows(partition=0.0), {}), "its result has partition bigint, and step returned Float64 (0.0)", ""),
        (
            lambda *_: (rows(since=None), {}),
            "a row has no since, which is declared not null",
            'rows.drop_nulls("since")',
        ),
        (
            lambda *_: (rows(t=6), {}),
            "a row is complete at t = 6, and this step is about instants up to 5",
            "yield a row in the step",
        ),
        (
            lambda *_: (rows(since=6), {}),
            "the declared relation since <= t does not hold of the row {'k': 'a', 'since': 6, 't': 5}",
            "leave it out of relations=",
        ),
        (
            lambda *_: (rows(partition=1), {}),
            "its result has a row of a partition that step was not given: 1",
            "take it from the rows of events",
        ),
        (
            lambda *_: (rows(), {"other": rows()}),
            "a table 'other' that it does not declare",
            "it declares 'one': return one of those, or add 'other'",
        ),
        (lambda *_: (rows(), {"one": rows()}), "table 'one' has the columns partition, v", ""),
        (
            lambda *_: (rows(), {"one": pl.DataFrame({"partition": [7], "v": [1]})}),
            "of a partition that step was not given: 7",
            "take it",
        ),
        (lambda *_: 1 / 0, "step of Broken failed: ZeroDivisionError: division by zero", ""),
    ],
)
def test_what_breaks_its_word_is_told(does: Step, message: str, hint: str) -> None:
    with tg.program(Q=BY_KEY.process(Broken(does))).session() as session:
        session.push("S", [("a", 5, 1)])
        session.advance("S", 5)
        with pytest.raises(tg.TidegateError, match="TG305") as raised:
            session.step()
        assert message in str(raised.value)
        assert hint in str(raised.value)
    # And nothing has changed: another that keeps its word may go on.


@pytest.mark.parametrize(
    ("does", "errors"),
    [
        (lambda *_: 1 / 0, [ZeroDivisionError, tg.QueryError]),
        (lambda *_: (rows(t=6), {}), [tg.QueryError]),
    ],
)
def test_what_is_wrong_is_told_once(does: Step, errors: Sequence[type[Exception]]) -> None:
    """An error, and what the user's own code has raised, are one after the other, and nothing between them."""
    with tg.program(Q=BY_KEY.process(Broken(does))).session() as session:
        session.push("S", [("a", 5, 1)])
        session.advance("S", 5)
        with pytest.raises(tg.TidegateError) as raised:
            session.step()
    told: BaseException | None = raised.value
    chain = list[BaseException]()
    while told is not None:
        chain.insert(0, told)
        told = told.__cause__ or (None if told.__suppress_context__ else told.__context__)
    assert len(chain) == len(errors)
    assert all(map(isinstance, chain, errors))
    assert str(raised.value).count("TG305") == 1


@dataclass(frozen=True)
class Typed(tg.Operator):
    """A result and a table with a column `x` of a declared type, and the values that step gives it."""

    type: str
    values: Callable[[], pl.Expr]
    in_table: bool = False

    @property
    def tables(self) -> Mapping[str, str]:  # type: ignore[override]  # it depends on a parameter
        return {"one": f"x {self.type}"}

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream("Typed", f"t bigint, x {'bigint' if self.in_table else self.type}", progress="t")

    def step(self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach) -> Any:
        x, none = self.values(), pl.lit(None)
        rows = events.select("partition", "t", x=none if self.in_table else x)
        return rows, {"one": events.select("partition", x=x if self.in_table else none)}


@pytest.mark.parametrize("in_table", [False, True])
@pytest.mark.parametrize(
    ("declared", "values", "message", "hint"),
    [
        ("bigint", lambda: pl.lit(5.5), "bigint, and step returned Float64 (5.5)", "declare x double, or cast it"),
        ("bigint", lambda: pl.lit(5.0), "bigint, and step returned Float64 (5.0)", 'pl.col("x").cast(pl.Int64)'),
        ("bigint", lambda: pl.lit("5"), "bigint, and step returned String ('5')", "declare x string, or cast it"),
        (
            "bigint",
            lambda: pl.lit(value=True),
            "bigint, and step returned Boolean (True)",
            "declare x boolean, or cast it",
        ),
        ("bigint", lambda: pl.lit(1 << 63, pl.UInt64), "bigint, which cannot hold 9223372036854775808", "or NULL"),
        ("double", lambda: pl.lit((1 << 53) + 1), "double, which cannot hold 9007199254740993", "or NULL"),
        ("double", lambda: pl.lit("5.5"), "double, and step returned String ('5.5')", "declare x string, or cast it"),
        ("string", lambda: pl.lit(5.5), "string, and step returned Float64 (5.5)", 'pl.col("x").cast(pl.String)'),
        ("boolean", lambda: pl.lit(2), "boolean, and step returned Int32 (2)", "declare x bigint, or cast it"),
        ("timestamp", lambda: pl.lit(5.5), "timestamp, and step returned Float64 (5.5)", 'pl.col("x").cast(pl.Int64)'),
        (
            "timestamp",
            lambda: pl.lit(5).cast(pl.Datetime("ms")),
            "timestamp, and step returned Datetime(time_unit='ms', time_zone=None)",
            'pl.col("x").dt.epoch("us")',
        ),
        ("date", lambda: pl.lit(5).cast(pl.Date), "date, and step returned Date", 'pl.col("x").dt.epoch("d")'),
        (
            "interval",
            lambda: pl.lit(5).cast(pl.Duration("ms")),
            "duration, and step returned Duration",
            "total_microseconds",
        ),
        (
            "decimal(5,2)",
            lambda: pl.lit(5.5),
            "decimal(5,2), and step returned Float64 (5.5)",
            "return how often it is 0.01",
        ),
    ],
)
def test_a_type_that_would_change_a_value_is_told(
    declared: str, values: Callable[[], pl.Expr], message: str, hint: str, in_table: bool
) -> None:
    with tg.program(Q=BY_KEY.process(Typed(declared, values, in_table))).session() as session:
        session.push("S", [("a", 5, 1)])
        session.advance("S", 5)
        with pytest.raises(tg.TidegateError) as raised:
            session.step()
    where = "table 'one'" if in_table else "its result"
    assert f"TG305 Typed breaks what it declares: {where} has x {message}" in str(raised.value)
    assert hint in str(raised.value)


@pytest.mark.parametrize(
    ("declared", "values", "held"),
    [
        ("bigint", lambda: pl.lit(5, pl.Int8), 5),
        ("bigint", lambda: pl.lit((1 << 63) - 1, pl.UInt64), (1 << 63) - 1),
        ("double", lambda: pl.lit(5), 5.0),
        ("double", lambda: pl.lit(0.5, pl.Float32), 0.5),
        ("double", lambda: pl.lit(float("nan"), pl.Float32), None),
        *(
            (declared, lambda: pl.lit(None), None)
            for declared in ("bigint", "double", "string", "boolean", "timestamp")
        ),
    ],
)
def test_a_type_that_changes_no_value_is_taken(declared: str, values: Callable[[], pl.Expr], held: object) -> None:
    with tg.program(Q=BY_KEY.process(Typed(declared, values))).session() as session:
        session.push("S", [("a", 5, 1)])
        session.advance("S", 5)
        session.step()
        (row,) = session.results("Q")
        assert row["x"] == held or (row["x"] != row["x"] and held is None)


def test_instants_are_told_as_such() -> None:
    """Of a row outside its step, of rows that differ, and of a relation that does not hold."""
    events = tg.stream("E", "k string, at timestamp", progress="at")

    @dataclass(frozen=True)
    class Late(tg.Operator):
        late: int
        before: int = 0

        def result(self, events: Mapping[str, str]) -> tg.Relation:
            declared = "at timestamp, since timestamp"
            return tg.stream("Late", declared, progress="at", relations=lambda row: row.since <= row.at)

        def step(self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach) -> Any:
            return events.select("partition", pl.col("at") + self.late, since=pl.col("at") - self.before), {}

    for late, before, told in (
        (
            1,
            0,
            "complete at at = 2026-03-02T12:00:00.000001Z, and this step is about instants up to 2026-03-02T12:00:00Z",
        ),
        (0, -1, "{'k': 'a', 'at': 2026-03-02T12:00:00Z, 'since': 2026-03-02T12:00:00.000001Z}"),
    ):
        with tg.program(Q=events.partition_by("k").process(Late(late, before))).session() as session:
            session.push("E", [("a", "2026-03-02T12:00Z")])
            session.advance("E", "2026-03-02T12:00Z")
            with pytest.raises(tg.TidegateError) as raised:
                session.step()
        assert told in str(raised.value)


COUNTER = itertools.count()


def last_of(events: pl.DataFrame, value: pl.Expr) -> pl.DataFrame:
    """One row for each partition, complete at its last event."""
    return events.group_by("partition", maintain_order=True).agg(since=value, t=pl.col("t").last())


def every(events: pl.DataFrame) -> pl.DataFrame:
    return events.select("partition", since="t", t="t")


@pytest.mark.parametrize(
    ("does", "message"),
    [
        (
            lambda events, *_: (last_of(events, pl.lit(-next(COUNTER))), {}),
            "step yields other rows when it was called again",
        ),
        (
            lambda events, *_: (every(events), {"one": events.head(1).select("partition", v=pl.lit(next(COUNTER)))}),
            "step keeps other rows of table 'one' when it was called again",
        ),
        (
            lambda events, *_: (last_of(events, pl.len().cast(pl.Int64) * -1), {}),
            "step yields other rows when its events came in",
        ),
        (
            lambda events, state, _: (every(events), {"one": events.select("partition", v=pl.col("t") % 2).unique()}),
            "step keeps other rows of table 'one' when its events came in two batches, those up to 5",
        ),
    ],
)
def test_the_test_kit_finds_steps_that_depend_on_chance_or_on_batches(does: Step, message: str) -> None:
    def pushed(run: Any) -> None:
        run.add("S", [("a", 5, 1), ("a", 6, 1), ("b", 6, 1)])
        run.advance("S", t=6)
        run.step()

    with testing.drive(tg.program(Q=BY_KEY.process(Broken(does)))) as run:
        with pytest.raises(tg.TidegateError, match="TG305 Broken") as raised:
            pushed(run)
        assert message in str(raised.value)
    with testing.drive(program()) as run:
        pushed(run)
        run.finish()
        run.step()
        assert found(run.results("Changed")) == [("a", 5, 1), ("b", 6, 1)]


@dataclass(frozen=True)
class Tails(tg.Operator):
    """The last `keeps` events of a partition at its next event, or where no more come; they go `gap` after the last."""

    keeps: int
    limit: Any = None
    kept_for: int | None = None
    gap: int = 10
    table: str = "tail"
    tables: ClassVar = {"tail": "t bigint"}

    @property
    def most(self) -> Mapping[str, int]:  # type: ignore[override]  # it depends on a parameter
        return {} if self.limit is None else {self.table: self.limit}

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream("Tails", "t bigint, n bigint", progress="t")

    def step(
        self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach
    ) -> tuple[pl.DataFrame, Mapping[str, pl.DataFrame]]:
        rows = pl.concat([state["tail"], events.select("partition", "t")]).sort("partition", "t")
        tail = rows.group_by("partition", maintain_order=True).tail(self.keeps)
        if reach.until is not None:
            tail = tail.filter(pl.col("t").max().over("partition") + self.gap > reach.until)
        return events.select("partition", "t", n=pl.lit(1)).clear(), {"tail": tail}


def stepped(session: Any, rows: Sequence[Event], until: int) -> dict[str, int]:
    """How much an operator keeps after these rows."""
    session.push("S", rows)
    session.advance("S", until)
    session.step()
    return {name: count for name, count in session.live_rows().items() if name.endswith("state")}


def test_a_partition_has_no_more_rows_than_declared(tmp_path: Path) -> None:
    with tg.program(Q=BY_KEY.process(Tails(2, 2))).session() as session:
        assert stepped(session, [("a", 1, 1), ("a", 2, 1), ("a", 3, 1), ("b", 3, 1)], 3) == {"Q: state": 3}
    with tg.program(Q=BY_KEY.process(Tails(2, 1))).session(checkpoint=tmp_path) as session:
        assert stepped(session, [("a", 1, 1), ("b", 1, 1)], 1) == {"Q: state": 2}
        with pytest.raises(tg.TidegateError) as raised:
            stepped(session, [("b", 2, 1)], 2)
    assert (
        "TG305 Tails breaks what it declares: table 'tail' has 2 rows of the partition {'k': 'b'}, and it "
        "declares 1 at most"
    ) in str(raised.value)
    assert "declare more: most = {'tail': 2}" in str(raised.value)
    with (
        tg.program(Q=S.partition_by().process(Tails(2, 1))).session() as session,
        pytest.raises(tg.TidegateError, match="has 2 rows of the one partition, and"),
    ):
        stepped(session, [("a", 1, 1), ("b", 2, 1)], 2)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_partition_is_seen_and_kept_no_longer_once_its_time_is_over(restarts: bool, tmp_path: Path) -> None:
    """Nothing but `kept_for` wakes these partitions, also after a start from the checkpoint."""
    program = tg.program(Q=BY_KEY.process(Tails(2, None, kept_for=10)))
    session = program.session(checkpoint=tmp_path)
    for rows, until, kept in (
        ([("a", 1, 1), ("b", 2, 1)], 3, 2),
        ([("a", 5, 1)], 5, 3),
        ([], 11, 3),
        ([], 12, 2),
        ([], 14, 2),
        ([], 15, 0),
    ):
        assert stepped(session, rows, until) == {"Q: state": kept}
        if restarts:
            session.close()
            session = program.session(checkpoint=tmp_path)
    session.close()


@pytest.mark.parametrize("restarts", [False, True])
def test_rows_that_stay_too_long_are_told(restarts: bool, tmp_path: Path) -> None:
    program = tg.program(Q=BY_KEY.process(Tails(2, None, kept_for=10, gap=20)))
    session = program.session(checkpoint=tmp_path)
    stepped(session, [("a", 1, 1), ("b", 2, 1), ("a", 3, 1), ("b", 4, 1)], 12)
    if restarts:
        session.close()
        session = program.session(checkpoint=tmp_path)
    with session, pytest.raises(tg.TidegateError) as raised:
        stepped(session, [], 13)
    assert (
        "TG305 Tails breaks what it declares: table 'tail' has 2 rows of the partition {'k': 'a'}, whose "
        "last event is at 3; it is kept up to 13 by kept_for, and 13 is reached" in str(raised.value)
    )
    assert "keep nothing of a partition once kept_for is over" in str(raised.value)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, 1])
def test_spark_checks_what_is_kept(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    monkeypatch.setattr(placement, "MOST_SHARDS", 4)
    limits: dict[str, Any] = {"driver_bytes": 0 if shard_bytes else 1 << 20, "shard_bytes": shard_bytes}
    program = tg.program(Q=BY_KEY.process(Tails(2, 2, kept_for=10)))
    with testing.drive(program, spark=spark, **limits) as run:
        run.add("S", [("a", 1, 1), ("b", 2, 1), ("b", 3, 1)])
        for until, kept in ((3, 3), (12, 2), (13, 0)):
            run.advance("S", t=until)
            run.step()
            assert run.live_rows["Q: state"] == kept
    with testing.drive(tg.program(Q=BY_KEY.process(Tails(2, 1))), spark=spark, **limits) as run:
        run.add("S", [("a", 1, 1), ("b", 2, 1), ("b", 3, 1)])
        run.advance("S", t=3)
        with pytest.raises(tg.TidegateError, match="has 2 rows of the partition"):
            run.step()


def test_with_another_duration_it_is_another_program(tmp_path: Path) -> None:
    def of(duration: int) -> tg.Program:
        class Silent(Silences):
            kept_for = duration

        return tg.program(Q=BY_KEY.process(Silent(7)))

    assert "kept for 10 after the last event" in str(of(10).explain())
    with of(10).session(checkpoint=tmp_path) as session:
        session.step()
    with pytest.raises(tg.TidegateError, match="TG501"):
        of(11).session(checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("operator", "keys", "told"),
    [
        (Tails(2, None), ("k",), "tail: unbounded: missing most['tail']"),
        (Tails(2, None, 10), ("k",), "tail: unbounded: missing most['tail']"),
        (Tails(2, 2000), ("k", "w"), "tail: keys(S by k, w) × 2,000"),
        (Tails(2, 2, 10), ("k",), "tail: rate(S) × 10 × 2"),
        (Tails(2, 2, 10), (), "tail: 2"),
        (Changes(), ("k",), "last: keys(S by k) × 1"),
    ],
)
def test_the_bound_is_explained(operator: tg.Operator, keys: Sequence[str], told: str, tmp_path: Path) -> None:
    program = tg.program(Q=S.with_(w=S.v).partition_by(*keys).process(operator))
    explained = str(program.explain())
    assert f"holds       {told}" in explained
    assert ("keys        different values of these keys" in explained) == ("keys(" in told)
    with program.session(checkpoint=tmp_path) as session:
        assert stepped(session, [("a", 5, 1), ("b", 6, 1)], 6) in ({"Q: state": 2}, {"Q: state": 1})
    assert f"bound       {told}" in str(list_state(LocalStore(tmp_path)))


def test_matches_of_a_table_count_in_the_bound() -> None:
    names = tg.table("N", "number bigint, name string")
    named = S.join(names, names.number == S.v).select(k=names.name, t=S.t, v=S.v)
    for kept_for, told in ((10, "rate(S) × matches(N) × 10 × 2"), (None, "keys(S by k) × 2")):
        program = tg.program(Q=named.partition_by("k").process(Tails(2, 2, kept_for)))
        assert f"holds       tail: {told}" in str(program.explain())


def test_a_timer_that_is_never_reached_goes_off_at_the_end() -> None:
    """Whatever instant says so, the greatest of 64 bits, too."""

    @dataclass(frozen=True)
    class Lasts(tg.Operator):
        tables: ClassVar = {"last": "t bigint, never bigint"}
        wakes = ("last", "never")

        def result(self, events: Mapping[str, str]) -> tg.Relation:
            return tg.stream("Lasts", "t bigint", progress="t")

        def step(self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach) -> Any:
            new = events.select("partition", "t", never=pl.lit((1 << 63) - 1))
            last = pl.concat([state["last"], new]).sort("partition", "t").group_by("partition").last()
            seen.append((last.height, reach.ends))
            return new.select("partition", "t"), {"last": last}

    seen: list[tuple[int, bool]] = []
    with tg.program(Q=BY_KEY.process(Lasts())).session() as session:
        assert stepped(session, [("a", 1, 1), ("b", 2, 1)], 3) == {"Q: state": 2}
        session.finish()
        session.step()
    assert seen == [(2, False), (2, True)]


def test_an_event_is_seen_once_while_others_need_it() -> None:
    """Another query keeps the events, and progress is at one of them."""
    pairs = S.join(S.rename(k="k2", t="t2", v="v2"), lambda a, b: b.t2.between(a.t, a.t + 50))
    with tg.program(Counted=BY_KEY.process(Bursts(20)), Pairs=pairs).session() as session:
        for t in (5, 6):
            stepped(session, [("a", t, 1)], t)
        session.finish()
        session.step()
        assert session.results("Counted") == [{"k": "a", "first": 5, "last": 6, "n": 2, "over": 26}]


def test_an_event_at_a_rounded_instant_is_seen_once() -> None:
    """The buffer has rows of earlier steps, too: which of them are relevant is known up to the rounding only."""
    rounded = S.select("k", "v", t=tg.ceil(S.t, 4)).partition_by("k", time="t", tie="v")
    program = tg.program(Q=rounded.process(Changes()))
    rows = [("a", t, t) for t in range(5, 13)]
    with program.session() as session:
        for row in rows:
            stepped(session, [row], row[1])
        session.finish()
        session.step()
        (query,) = program.definition.queries
        assert found(session.results("Q")) == sorted(evaluate(query.node, {"S": rows}), key=str)


def test_what_is_gone_does_not_come_back_with_a_start_from_the_checkpoint(tmp_path: Path) -> None:
    """Of so many rows a batch writes the changes alone."""
    program = tg.program(Q=BY_KEY.process(Bursts(50)))
    many = [(f"k{number}", 40, 1) for number in range(SMALL + 1)]
    for rows, until, kept in (([("a", 1, 1)], 1, 1), (many, 40, SMALL + 2), ([], 52, SMALL + 1), ([], 60, SMALL + 1)):
        with program.session(checkpoint=tmp_path) as session:
            assert stepped(session, rows, until) == {"Q: state": kept}


def numbered(events: pl.DataFrame, state: Mapping[str, pl.DataFrame], _: tg.Reach) -> Any:
    """Rows with the number of the event, counted through all partitions."""
    return events.select("partition", since=-pl.int_range(pl.len()), t="t"), {}


def before(events: pl.DataFrame, state: Mapping[str, pl.DataFrame], _: tg.Reach) -> Any:
    """The time of the event before, of which it is forgotten that it be one of the partition."""
    rows = events.select("partition", since=pl.col("t").shift(), t="t").filter(pl.int_range(pl.len()) > 0)
    return rows.with_columns(pl.min_horizontal("since", "t")), {}


def later(events: pl.DataFrame, state: Mapping[str, pl.DataFrame], _: tg.Reach) -> Any:
    """Rows by which the last event of all is kept."""
    return every(events), {"one": events.select("partition", v=pl.col("t").max()).unique()}


def missing(events: pl.DataFrame, state: Mapping[str, pl.DataFrame], _: tg.Reach) -> Any:
    """The same, and there is none of the first event of all."""
    return events.select("partition", since=pl.min_horizontal(pl.col("t").shift(), "t"), t="t").head(
        1 if events.get_column("partition").n_unique() == 1 else 0
    ).with_columns(since=pl.lit(None, pl.Int64)), {}


def first_kept(events: pl.DataFrame, state: Mapping[str, pl.DataFrame], _: tg.Reach) -> Any:
    """Rows with the first row of a table, whose rows come in no order."""
    known = state["one"].group_by("partition", maintain_order=True).first()
    rows = every(events).join(known, on="partition", how="left").with_columns(since=-pl.col("v").fill_null(0)).drop("v")
    return rows, {"one": pl.concat([state["one"], events.select("partition", v="t")])}


@pytest.mark.parametrize(
    ("does", "message", "mend"),
    [
        (
            numbered,
            "step yields other rows when partitions came without the others: {'k': 'b', 'since': ",
            '.over("partition")',
        ),
        (before, "step yields other rows when partitions came without the others", '.over("partition")'),
        (later, "step keeps other rows of table 'one' when partitions came without the others", '.over("partition")'),
        (
            missing,
            "when partitions came without the others, a row has no since, which is declared not",
            '.over("partition")',
        ),
        (
            first_kept,
            "step yields other rows when the rows of its tables came in another order: {'k': 'a', ",
            "sort them by",
        ),
    ],
)
def test_the_test_kit_finds_steps_that_mix_partitions_or_rely_on_an_order(does: Step, message: str, mend: str) -> None:
    def pushed(run: Any) -> None:
        for t in (5, 7, 9):
            run.add("S", [("a", t, 1), ("b", t + 1, 1)] if t < 9 else [("a", t, 1)])
            run.advance("S", t=t + 1)
            run.step()

    with testing.drive(tg.program(Q=BY_KEY.process(Broken(does)))) as run:
        with pytest.raises(tg.TidegateError, match="TG305 Broken breaks what it declares") as raised:
            pushed(run)
        assert message in str(raised.value)
        assert mend in str(raised.value)


@pytest.mark.parametrize("keeps", [False, True])
def test_the_test_kit_finds_steps_that_depend_on_the_order_of_a_set_of_texts(keeps: bool) -> None:
    texts = tg.stream("S", "k string, t bigint, words string", progress="t").partition_by("k")
    words = " ".join(f"word{number}" for number in range(12))

    def driven(sorts: bool) -> list[dict[str, Any]]:
        with testing.drive(tg.program(Q=texts.process(Words(sorts, keeps)))) as run:
            run.add("S", [("a", 5, words)])
            run.finish()
            run.step()
            return run.results("Q")

    (row,) = driven(sorts=True)
    assert row["words"] == ("" if keeps else " ".join(sorted(words.split())))
    with pytest.raises(tg.TidegateError) as raised:
        driven(sorts=False)
    assert (
        f"TG305 Words breaks what it declares: step {'keeps' if keeps else 'yields'} other "
        f"rows{' of table' if keeps else ''}"
    ) in str(raised.value)
    assert "when another process did it, where the hashes of texts are others: {'k" in str(raised.value)
    assert "do not depend on the order of a set of texts" in str(raised.value)


def test_zeros_of_two_signs_are_one_partition() -> None:
    readings = tg.stream("R", "t bigint, v bigint, y double", progress="t")
    signed = readings.with_(z=readings.y * 0.0)
    with tg.program(Q=signed.partition_by("z").process(Changes())).session() as session:
        for t, y in ((1, -1.0), (2, 1.0)):
            session.push("R", [(t, 7, y)])
            session.advance("R", t)
            session.step()
        (row,) = session.results("Q")
        assert str(row["z"]) == "0.0"


def test_a_row_is_complete_in_one_step_alone() -> None:
    with tg.program(Q=BY_KEY.process(Broken(lambda *_: (rows(), {})))).session() as session:
        for t in (5, 6):
            session.push("S", [("a", t, 1)])
            session.advance("S", t)
            if t == 5:
                session.step()
        with pytest.raises(
            tg.TidegateError, match="complete at t = 5, and this step is about instants after 5 and up to 6"
        ):
            session.step()


def test_results_progress_on_what_a_declared_relation_bounds() -> None:
    bursts = BY_KEY.process(Bursts(3))
    assert tg.program(Q=bursts.select("last")).check() == []
    assert [problem.code for problem in tg.program(Q=bursts.select("first")).check()] == ["TG201"]


def declaring(**given: Any) -> tg.Operator:
    """An operator with these declarations, and what every operator has."""

    def result(self: tg.Operator, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream("Declaring", "t bigint", progress="t")

    def step(self: tg.Operator, events: pl.DataFrame, state: object, reach: object) -> Any:
        return events, {}

    made = {"result": result, "step": step} | given
    cls = type("Declaring", (tg.Operator,), {name: value for name, value in made.items() if value is not None})
    return cast("tg.Operator", cls())


@dataclass(frozen=True)
class MisspeltField(Broken):
    read: tuple[str, ...] = ("v",)
    table: str = "one"


@pytest.mark.parametrize(
    ("operator", "message", "hint"),
    [
        (declaring(result=None), "Declaring has no result(...)", "write def result(self, events): return tg.stream("),
        (declaring(step=None), "Declaring has no step(...)", "write def step(self, events, state, reach): return rows"),
        (declaring(step=None, steps=len), "Declaring has no step(...)", "is steps meant? write def step("),
        (declaring(result=lambda self: None), "result of Declaring: too many positional arguments", "write def result"),
        (declaring(step=lambda self, events: None), "step of Declaring: too many positional", "write def step(self,"),
        (declaring(reads="v"), "Declaring declares reads as 'v'", 'write reads = ("v",)'),
        (declaring(reads=3), "Declaring declares reads as 3", 'write reads = ("speed",)'),
        (
            declaring(tables=("one",)),
            "Declaring declares tables as ('one',)",
            'write tables = {"last": "speed double"}',
        ),
        (declaring(tables={"one": {"v": int}}), "Declaring declares tables as {'one'", "write tables = "),
        (declaring(tables={"one": "partition bigint"}), "table 'one' of Declaring declares a column", "leave it out"),
        (declaring(most=("one", 1)), "Declaring declares most as ('one', 1)", 'write most = {"last": 1}'),
        (declaring(wakes="one"), "Declaring declares wakes as 'one'", 'write wakes = ("last", "due")'),
        (declaring(wakes=("one", "due")), "Declaring wakes by 'one', which is no table of it", "it has none"),
        (
            declaring(tables={"one": "v bigint, w double"}, wakes=("one", "due")),
            "Declaring wakes by 'due', which is no bigint of table 'one'",
            "the table has v bigint, w double",
        ),
        (
            declaring(tables={"one": "v bigint, w double"}, wakes=("one", "w")),
            "Declaring wakes by 'w', which is no bigint of table 'one'",
            "the table has v bigint, w double",
        ),
        (declaring(table={"one": "v bigint"}), "an operator declares no 'table': Declaring", "did you mean tables?"),
        (declaring(read=("v",)), "an operator declares no 'read': Declaring", "did you mean reads?"),
        (MisspeltField(lambda *_: None), "an operator declares no 'read': MisspeltField", "did you mean reads?"),
        (declaring(keep_for="1h"), "an operator declares no 'keep_for': Declaring", "did you mean kept_for?"),
    ],
)
def test_what_an_operator_declares_is_checked_where_it_is_written(
    operator: tg.Operator, message: str, hint: str
) -> None:
    with pytest.raises(tg.QueryError) as raised:
        BY_KEY.process(operator)
    assert raised.value.code == "TG114"
    assert raised.value.message.startswith(message)
    assert raised.value.hint.startswith(hint)


def test_names_of_the_users_own_are_left_alone() -> None:
    BY_KEY.process(
        declaring(most_recent=3, reader="x", ready=lambda self: True, _table=1, tables={"table": "v bigint"})
    )
    BY_KEY.process(declaring(tables={"one": "due bigint"}, wakes=("one", "due"), reads=["v"], table=3))


@pytest.mark.parametrize(
    ("does", "message", "hint"),
    [
        (lambda events, *_: events, "step returned a DataFrame, not rows and tables", "return rows, {'one': ...}"),
        (lambda events, *_: (events.rows(), {}), "step returned a list and a dict, not rows", "return rows, {'one'"),
        (lambda events, state, _: state["two"], "step of Broken failed: KeyError", "tables that are declared: one"),
        (
            lambda events, *_: (events.select("w"), {}),
            "step of Broken failed: ColumnNotFoundError",
            'if w is theirs: reads = ("w",)',
        ),
        (
            lambda events, *_: (events.select(pl.col("t").dt.hour()), {}),
            "step of Broken failed: InvalidOperationError",
            'pl.from_epoch("t", time_unit="us").dt',
        ),
    ],
)
def test_a_step_that_fails_is_told_with_its_line_and_what_it_may_have_missed(
    does: Step, message: str, hint: str
) -> None:
    with tg.program(Q=BY_KEY.process(Broken(does))).session() as session:
        session.push("S", [("a", 5, 1)])
        session.finish()
        with pytest.raises(tg.TidegateError, match="TG305") as raised:
            session.step()
    assert message in raised.value.message
    assert hint in raised.value.hint
    assert "\n" not in raised.value.message
    if "failed" in message:
        assert raised.value.problems[0].because[0].startswith("test_process.py:")


class Remembers(tg.Operator):
    """One that keeps state in the object."""

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream("Remembers", "t bigint", progress="t")

    def step(self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach) -> Any:
        self.seen = events.height
        return events, {}


def test_state_in_the_object_is_refused() -> None:
    with tg.program(Q=BY_KEY.process(Remembers())).session() as session:
        session.push("S", [("a", 5, 1)])
        session.finish()
        with pytest.raises(tg.TidegateError, match=r"TG305 Remembers breaks .*: step keeps 'seen' in the object"):
            session.step()


def test_columns_that_lack_are_told_with_what_to_return() -> None:
    with tg.program(Q=BY_KEY.process(Broken(lambda events, *_: (events, {})))).session() as session:
        session.push("S", [("a", 5, 1)])
        session.finish()
        with pytest.raises(tg.TidegateError) as raised:
            session.step()
    assert raised.value.hint == 'return a frame of Polars with them: .select("partition", "since", "t")'


def test_what_cannot_be_an_operator_is_refused_where_it_is_written() -> None:
    with pytest.raises(tg.QueryError, match="not an operator"):
        BY_KEY.process("Changes")  # type: ignore[arg-type]  # as a user may err
    with pytest.raises(tg.QueryError, match=r"process got the class Changes, not an operator") as raised:
        BY_KEY.process(Changes)  # type: ignore[arg-type]  # as a user may err
    assert "write Changes(value=...)" in str(raised.value)
    with pytest.raises(tg.QueryError, match="TG101"):
        BY_KEY.process(Changes("speed"))
    with pytest.raises(tg.QueryError, match="TG103"):
        S.partition_by("k", "v").process(Changes())
    with pytest.raises(tg.QueryError, match="TG114 Tails bounds 'head', which is no table of it"):
        BY_KEY.process(Tails(2, 2, table="head"))
    for most in (0, True, "2"):
        with pytest.raises(tg.QueryError, match="TG114 Tails has at most"):
            BY_KEY.process(Tails(2, most))
    for kept_for in (-1, "5s", 1.5):
        with pytest.raises(tg.QueryError, match="TG160 kept_for"):
            BY_KEY.process(Tails(2, None, kept_for))  # type: ignore[arg-type]  # as a user may err


@dataclass(frozen=True)
class Counts(tg.Operator):
    """How many events a partition has had with each, and `off` more from its third on; what it means is said of `other`
    names.
    """

    off: int = 0
    means: Any = None
    tables: ClassVar = {"n": "n bigint not null"}

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream("Counts", "t bigint, n bigint", progress="t")

    def step(self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach) -> Any:
        rows = events.join(state["n"], on="partition", how="left")
        counted = pl.col("n").fill_null(0) + pl.int_range(pl.len()).over("partition") + 1
        rows = rows.select("partition", "t", n=counted)
        last = pl.concat([state["n"], rows.select("partition", "n")]).group_by("partition").agg(pl.col("n").max())
        return rows.with_columns(n=pl.col("n") + self.off * (pl.col("n") > 2)), {"n": last}

    def meaning(self, events: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        if self.means is not None:
            return self.means(events)  # type: ignore[no-any-return]
        return [{"t": event["t"], "n": number} for number, event in enumerate(events, 1)]


@pytest.mark.parametrize("ends", [(5,), (2, 5), (1, 2, 3, 4, 5)])
@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (Counts(), None),
        (
            Counts(1),
            "Counts breaks what it declares: its meaning has the row {'k': 'a', 't': 3, 'n': 3}, and step does",
        ),
        (Counts(0, lambda _: []), "step yields the row {'k': 'a', 't': 1, 'n': 1}, and its meaning does not have it"),
        (Counts(0, lambda events: [{"t": event["t"]} for event in events]), "and meaning has the row {'t': 1}"),
        (Counts(0, lambda events: [(event["t"], 1) for event in events]), "and meaning has the row (1, 1)"),
        (Counts(0, lambda events: [{"t": e["t"], "n": e["v"]} for e in events]), "meaning of Counts failed: KeyError"),
    ],
)
def test_the_test_kit_compares_with_the_meaning(
    operator: tg.Operator, message: str | None, ends: Sequence[int]
) -> None:
    """In every step, however events come, with those of all steps before it."""

    def pushed(run: Any) -> None:
        for after, until in itertools.pairwise((0, *ends)):
            run.add("S", [("a", t, 1) for t in range(after + 1, until + 1)])
            run.advance("S", t=until)
            run.step()
        run.finish()
        run.step()

    with testing.drive(tg.program(Q=BY_KEY.process(operator))) as run:
        if message is None:
            pushed(run)
            assert [row["n"] for row in run.results("Q")] == [1, 2, 3, 4, 5]
        else:
            with pytest.raises(tg.TidegateError, match="TG305") as raised:
                pushed(run)
            assert message in str(raised.value)


def test_a_row_that_a_meaning_has_without_events_is_missed() -> None:
    """A timer that a step does not set; of a partition that it is not shown then."""

    @dataclass(frozen=True)
    class Unwoken(Silences):
        wakes = None  # type: ignore[assignment]  # the mistake

        @property
        def kept_for(self) -> None:  # type: ignore[override]
            return None

    with testing.drive(tg.program(Q=BY_KEY.process(Unwoken(7)))) as run:
        run.add("S", [("a", 1, 1)])
        run.advance("S", t=7)
        run.step()
        run.advance("S", t=9)
        with pytest.raises(tg.TidegateError, match="TG305") as raised:
            run.step()
    assert "its meaning has the row {'k': 'a', 'since': 1, 'at': 8}, and step does not" in str(raised.value)


def test_a_start_from_a_checkpoint_compares_with_no_meaning() -> None:
    """What was before it is not known."""
    with testing.drive(tg.program(Q=BY_KEY.process(Counts()))) as run:
        for t in (1, 2, 3):
            run.add("S", [("a", t, 1)])
            run.advance("S", t=t)
            run.step()
            run.engine.restart()
        assert [row["n"] for row in run.results("Q")] == [1, 2, 3]


class First(tg.Operator):
    """Events, as an operator with no parameters."""

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream("First", "t bigint", progress="t")

    def step(self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach) -> Any:
        return events.select("partition", "t"), {}


class FirstOf(First):
    """One that keeps its parameter in the object."""

    def __init__(self, n: int) -> None:
        self.n = n


class FirstOfSlots(First):
    """One that keeps it in a slot."""

    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n


@dataclass(frozen=True)
class FirstComputed(First):
    """One that computes something from its fields once."""

    n: int

    @cached_property
    def twice(self) -> int:
        return 2 * self.n

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream("First", "t bigint", progress="t") if self.twice else super().result(events)


@dataclass
class FirstThatChanges(First):
    n: int


@dataclass(frozen=True)
class FirstOfList(First):
    n: Any


@pytest.mark.parametrize("operator", [FirstOf(3), FirstOfSlots(3)])
def test_parameters_that_are_no_fields_are_refused(operator: tg.Operator) -> None:
    with pytest.raises(tg.QueryError) as raised:
        BY_KEY.process(operator)
    name = type(operator).__name__
    assert f"TG114 {name} keeps 'n' in the object, and it is no field of a dataclass" in str(raised.value)
    assert f"write @dataclass(frozen=True) above class {name}, with a field n, and no __init__" in str(raised.value)


@pytest.mark.parametrize("operator", [FirstThatChanges(3), FirstOfList([3])])
def test_parameters_that_may_change_are_refused(operator: tg.Operator) -> None:
    with pytest.raises(tg.QueryError, match=r"TG114 \w+ has no hash: unhashable type") as raised:
        BY_KEY.process(operator)
    assert "numbers, texts, tuples" in str(raised.value)


@pytest.mark.parametrize("make", [First, lambda: FirstComputed(3)])
def test_the_checkpoint_of_an_equal_operator_fits(make: Callable[[], tg.Operator], tmp_path: Path) -> None:
    for _ in range(2):
        operator = make()
        BY_KEY.process(operator)  # whatever it computes then
        with tg.program(Q=BY_KEY.process(operator)).session(checkpoint=tmp_path) as session:
            session.step()
