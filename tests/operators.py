"""Operators as users write them, which the package knows nothing of: one that drops rows like the one before, one with timers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

import tidegate as tg


@dataclass(frozen=True)
class Changes(tg.Operator):
    """Events of a partition of which the value is not that of the event before."""

    value: str = "v"
    tables: ClassVar = {"last": "v bigint"}
    bound = "of a partition one value"

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]  # it depends on a parameter
        return (self.value,)

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream("Changes", f"t bigint, v {events[self.value]}", progress="t")

    def step(
        self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach
    ) -> tuple[pl.DataFrame, Mapping[str, pl.DataFrame]]:
        known = state["last"].select("partition", pl.lit(None, pl.Int64).alias("t"), "v")
        rows = pl.concat([known, events.select("partition", "t", pl.col(self.value).alias("v"))])
        rows = rows.sort("partition", maintain_order=True)
        first = pl.col("partition") != pl.col("partition").shift().fill_null(-1)
        changed = pl.col("t").is_not_null() & (first | pl.col("v").ne_missing(pl.col("v").shift()))
        return rows.filter(changed), {"last": rows.group_by("partition").agg(pl.col("v").last())}

    def meaning(self, events: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        values = [event[self.value] for event in events]
        return [
            {"t": event["t"], "v": value}
            for place, (event, value) in enumerate(zip(events, values, strict=True))
            if place == 0 or value != values[place - 1]
        ]


@dataclass(frozen=True)
class Silences(tg.Operator):
    """When a partition has had no event for so long, and since when."""

    gap: int
    tables: ClassVar = {"last": "since bigint not null, due bigint not null"}
    wakes = ("last", "due")
    bound = "of a partition the last event, for so long"

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream(
            "Silences",
            "since bigint, at bigint",
            progress="at",
            temporal="since",
            relations=lambda row: row.since < row.at,
        )

    def step(
        self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach
    ) -> tuple[pl.DataFrame, Mapping[str, pl.DataFrame]]:
        new = events.select("partition", since="t", due=pl.col("t") + self.gap)
        rows = pl.concat([state["last"], new]).sort("partition", "since")
        # The event after it, if there is one yet.
        after = rows.with_columns(next=pl.col("since").shift(-1).over("partition"))
        silent = pl.col("next").is_null() | (pl.col("next") > pl.col("due"))
        reached = pl.lit(value=True) if reach.until is None else pl.col("due") <= reach.until
        told = after.filter(silent & reached).select("partition", "since", at="due")
        return told, {"last": after.filter(pl.col("next").is_null() & ~reached).select(rows.columns)}

    def meaning(self, events: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        times = [event["t"] for event in events]
        ends = [*times[1:], float("inf")]
        return [
            {"since": since, "at": since + self.gap}
            for since, end in zip(times, ends, strict=True)
            if end > since + self.gap
        ]
