"""A user's code as type checkers see it: `make typecheck` has mypy and pyright read it, nothing runs it.

What is wrong on purpose says which error is expected; a checker that finds none there complains of the comment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, assert_type

import pandas as pd
import polars as pl
import pyarrow as pa

import tidegate as tg

orders = tg.stream("Orders", "order_id bigint, ordered timestamp, amount double", progress="ordered")
payments = tg.stream("Payments", "order_id bigint, paid timestamp", progress="paid")
o, p = orders.as_("o"), payments.as_("p")
assert_type(o, tg.Relation)
unpaid = o.anti_join(p, p.order_id == o.order_id, o.ordered <= p.paid, p.paid <= o.ordered + tg.minutes(30))
assert_type(unpaid, tg.Relation)
per_hour = orders.group_by(hour=tg.ceil(orders.ordered, "1h")).agg(orders=tg.count(), amount=tg.sum(orders.amount))
assert_type(per_hour, tg.Relation)
found = orders.partition_by("order_id").derive(
    High=tg.situation(orders.amount > 5), Low=tg.situation(orders.amount < 2)
)
around = orders.over(by="order_id", order="ordered", before=tg.lag(orders.amount), total=tg.sum(orders.amount))
assert_type(around, tg.Relation)
assert_type(orders.windows(tg.session("5m"), by="order_id", order="ordered").agg(n=tg.count()), tg.Relation)
assert_type(tg.hopping("24h", every="10m"), tg.WindowBounds)
ends = orders.with_(end=tg.ceil(orders.ordered, "1h"))
assert_type(ends.top_k(3, by=("end", "order_id"), order=tg.desc(orders.amount)), tg.Relation)
assert_type(ends.ranked(by="end", order=("amount", lambda r: tg.desc(r.order_id)), place=tg.rank()), tg.Relation)
assert_type(ends.ranked(by="end", order=ends.amount, a=tg.dense_rank(), b=tg.row_number()), tg.Relation)
assert_type(orders.ticks("5m", by="order_id", within=tg.hours(1), order="ordered"), tg.Relation)
assert_type(orders.fill_gaps("5m", by=orders.order_id, order="ordered", tie="amount"), tg.Relation)
assert_type(tg.ticks("1d", orders, payments, offset="1h"), tg.Relation)
assert_type(tg.calendar("month", zone="Europe/Berlin", size=3), tg.WindowBounds)
assert_type(tg.landmark("2026-01-01T00:00Z", every="1h"), tg.WindowBounds)
assert_type(tg.rows(100, every=10), tg.WindowBounds)
paying = tg.between(orders, payments, by="order_id", at_most=tg.hours(2), opens_at="ordered")
assert_type(paying, tg.Between)
assert_type(orders.windows(paying, order="ordered").agg(n=tg.count()), tg.Relation)
assert_type(orders.in_context(paying, at="ordered", values={"since": "start"}), tg.Relation)
assert_type(orders.over(range=("5m", "1m"), mean=tg.avg(orders.amount)), tg.Relation)
assert_type(orders.over(rows=(2, 0), next=lambda r: tg.lead(r.amount, within="1h")), tg.Relation)
looked_up = o.asof_join(p, by="order_id", direction="nearest", within="5m", how="inner")
assert_type(looked_up, tg.Relation)
table = p.versioned(by="order_id", deleted=lambda r: r.order_id == 3)
assert_type(table, tg.Versioned)
assert_type(table.history(), tg.Relation)
assert_type(o.temporal_join(table, on="order_id", at=o.ordered, how="inner"), tg.Relation)
assert_type(o.asof_join(p, by=[("order_id", p.order_id)], left_on=o.ordered, strict=True), tg.Relation)
matches = tg.match(found.High.before(found.Low), within="1d")
late = matches.where(matches.High.te > matches.Low.ts, matches.detected.is_not_null())
program = tg.program(Unpaid=unpaid, PerHour=per_hour, Late=late)
assert_type(program, tg.Program)


def complete(given: pl.DataFrame) -> None:
    results = program.run({"Orders": given, "Payments": [(1, "2026-01-01")]})
    assert_type(results, tg.Results)
    table = results["Unpaid"]
    assert_type(table, tg.ResultTable)
    assert_type(table.polars(), pl.DataFrame)
    assert_type(table.pandas(), pd.DataFrame)
    assert_type(table.arrow(), pa.Table)  # pyright: ignore[reportUnknownMemberType]  # pyarrow has no types
    assert_type(table.rows(), list[dict[str, Any]])
    assert_type(table.columns, list[str])


def by_batches() -> None:
    with program.session(sources={"Orders": tg.parquet("orders", delay="5m")}, checkpoint="state") as session:
        assert_type(session, tg.Session)
        session.push("Payments", [(1, "2026-01-01")])
        session.advance("Payments", {"paid": "2026-01-01"})
        assert_type(session.step(), tg.BatchReport)
        assert_type(session.table("Unpaid"), tg.ResultTable)
        assert_type(session.results("Unpaid"), list[dict[str, Any]])


def on_spark() -> None:
    query = program.start(tg.spark_session("orders"), sources={"Orders": tg.parquet("orders")}, checkpoint="state")
    assert_type(query, tg.RunningQuery)
    assert_type(query.table("Unpaid"), tg.ResultTable)
    assert_type(query.results("Unpaid"), list[dict[str, Any]])
    assert_type(query.reports, list[tg.BatchReport])


def looked_at() -> None:
    assert_type(program.explain().to_dict(), dict[str, Any])
    print([one["bound"] for one in program.explain().to_dict()["queries"][0]["occurrences"]])
    assert_type(program.check(), list[tg.Problem])
    assert_type(program.timeline({"Orders": [(1, "2026-01-01", 2.0)]}, result="Late"), tg.Timeline)
    assert_type(orders.amount > 5, tg.Expression)
    assert_type(tg.sum(orders.amount), tg.AggregateExpression)
    assert_type(orders["amount"].is_null(), tg.Expression)
    assert_type(tg.lag(orders.amount, 1, 0.0), tg.OverExpression)


@dataclass(frozen=True)
class Smoothed(tg.Operator):
    gap: int
    reads = ("amount",)
    tables: ClassVar = {"last": "amount double, due timestamp"}
    wakes = ("last", "due")
    most: ClassVar = {"last": 1}

    @property
    def kept_for(self) -> str:
        return f"{self.gap}s"

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream("Smoothed", f"ordered timestamp, amount {events['amount']}", progress="ordered")

    def step(
        self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach
    ) -> tuple[pl.DataFrame, Mapping[str, pl.DataFrame]]:
        return events if reach.ends else events.head(1), {"last": state["last"]}

    def meaning(self, events: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        return events


class Hourly(tg.Operator):
    reads = ("amount",)
    kept_for = "1h"


def of_ones_own() -> None:
    assert_type(orders.partition_by("order_id").process(Smoothed(60)), tg.Relation)
    orders.partition_by("order_id").process(Smoothed)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class WrongStep(tg.Operator):
    reads = "amount"  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

    def step(self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach) -> pl.DataFrame:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return events


def wrong() -> None:
    program.run({}, on_eror="fail")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    program.session(thread=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    tg.parquet("orders", delai="5m")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    tg.csv("orders", on_bad_file="ignore")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    orders.amount.avgg()  # type: ignore[operator]  # pyright: ignore[reportCallIssue]
    tg.tumblin(orders.ordered, "1h")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    orders.where(tg.max(orders.amount) > 3)  # type: ignore[operator,arg-type]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
    orders.where(tg.lag(orders.amount) > 3)  # type: ignore[operator,arg-type]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
    orders.over(before=orders.amount)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    orders.asof_join(payments, direction="ahead")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    orders.ticks(by="order_id")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    orders.over(rows=3, n=tg.count())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    program.run({})["Unpaid"].dataframe()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
