"""Operators as users write them, which the package knows nothing of: one that drops rows like the one before, one with
timers.
"""

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
    most: ClassVar = {"last": 1}

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
    most: ClassVar = {"last": 1}

    @property
    def kept_for(self) -> int:
        return self.gap

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


@dataclass(frozen=True)
class Bursts(tg.Operator):
    """Events of a partition of which each comes within `gap` of the one before: when they began, when they ended, how
    many.
    """

    gap: int
    tables: ClassVar = {"open": "first bigint not null, last bigint not null, n bigint not null, due bigint not null"}
    wakes = ("open", "due")
    most: ClassVar = {"open": 1}

    @property
    def kept_for(self) -> int:
        return self.gap

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream(
            "Bursts",
            "first bigint, last bigint, n bigint, over bigint",
            progress="over",
            temporal=("first", "last"),
            relations=lambda row: [row.first <= row.last, row["over"] == row.last + self.gap],
        )

    def step(
        self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach
    ) -> tuple[pl.DataFrame, Mapping[str, pl.DataFrame]]:
        new = events.select("partition", first="t", last="t", n=pl.lit(1, pl.Int64), due=pl.col("t") + self.gap)
        rows = pl.concat([state["open"], new]).sort("partition", "first")
        apart = pl.col("first") > pl.col("due").shift().over("partition")
        bursts = (
            rows.with_columns(number=apart.fill_null(value=True).cum_sum())
            .group_by("partition", "number", maintain_order=True)
            .agg(pl.col("first").first(), pl.col("last").last(), pl.col("n").sum(), pl.col("due").last())
            .drop("number")
        )
        over = pl.lit(value=True) if reach.until is None else pl.col("due") <= reach.until
        return bursts.filter(over).rename({"due": "over"}), {"open": bursts.filter(~over)}

    def meaning(self, events: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        found: list[dict[str, Any]] = []
        for event in events:
            if found and event["t"] <= found[-1]["over"]:
                found[-1] |= {"last": event["t"], "n": found[-1]["n"] + 1}
            else:
                found.append({"first": event["t"], "last": event["t"], "n": 1})
            found[-1]["over"] = event["t"] + self.gap
        return found


@dataclass(frozen=True)
class Echoes(tg.Operator):
    """Every event once more, so long after it."""

    after: int
    value: str = "v"
    tables: ClassVar = {"coming": "at bigint not null, t bigint not null, v bigint"}
    wakes = ("coming", "at")

    @property
    def kept_for(self) -> int:
        return self.after

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]  # it depends on a parameter
        return (self.value,)

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream(
            "Echoes",
            f"t bigint, v {events[self.value]}, at bigint",
            progress="at",
            temporal="t",
            relations=lambda row: row.at == row.t + self.after,
        )

    def step(
        self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach
    ) -> tuple[pl.DataFrame, Mapping[str, pl.DataFrame]]:
        new = events.select("partition", at=pl.col("t") + self.after, t="t", v=self.value)
        rows = pl.concat([state["coming"], new])
        due = pl.lit(value=True) if reach.until is None else pl.col("at") <= reach.until
        return rows.filter(due), {"coming": rows.filter(~due)}

    def meaning(self, events: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        return [{"t": event["t"], "v": event[self.value], "at": event["t"] + self.after} for event in events]


@dataclass(frozen=True)
class Words(tg.Operator):
    """The words of each event, as a text. `sorts`: in their order; else in that of a set of them, which is another in
    every process.
    """

    sorts: bool
    keeps: bool = False
    reads = ("words",)
    tables: ClassVar = {"last": "words string"}

    def result(self, events: Mapping[str, str]) -> tg.Relation:
        return tg.stream("Words", "t bigint, words string", progress="t")

    def step(
        self, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: tg.Reach
    ) -> tuple[pl.DataFrame, Mapping[str, pl.DataFrame]]:
        texts = [set(text.split()) for text in events.get_column("words")]
        words = [" ".join(sorted(text) if self.sorts else text) for text in texts]
        rows = events.with_columns(pl.Series("words", words, pl.String)).select("partition", "t", "words")
        last = pl.concat([state["last"], rows.drop("t")]).group_by("partition", maintain_order=True).last()
        return (rows.with_columns(words=pl.lit("")), {"last": last}) if self.keeps else (rows, {})
