"""Which beginnings of intervals are accepted, and which ends fit them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import polars as pl

from tidegate.algebra.time import Extended
from tidegate.runtime.eval.beginnings.memory import Beginnings
from tidegate.runtime.ingest.keys import CONFLICT, key_rejections

UNANNOUNCED: Final = "unannounced"
#: Stands before the names of what the beginning of a row says.
_ANNOUNCED = "\0announced "


def refused_beginnings_and_ends(
    beginnings: Beginnings,
    begun: pl.DataFrame,
    ended: pl.DataFrame,
    known: pl.DataFrame,
    reached: Extended,
    arrival: str | None = None,
) -> tuple[pl.Series, pl.Series]:
    """Per beginning and per row of an interval that has ended, in order of arrival, why it is rejected; NULL where it
    is not.

    `known` are the rows that came before, `reached` is how far progress had come then. A beginning has the identity of
    no other one; of two ends of one interval the first counts. What has begun by `reached` has been announced. The
    attribute `arrival` is not compared.
    """
    if arrival is not None:
        compared = tuple(name for name in beginnings.compared if name != arrival)
        beginnings = replace(beginnings, compared=compared)
    known = beginnings.left(known, reached)
    is_open = pl.col(beginnings.begins.end).is_null()
    before, early = known.filter(is_open), known.filter(~is_open)
    names = list(beginnings.compared)
    again = key_rejections(begun, before.select(names), [beginnings.begins.id])
    begun_reason = _first(again, _differing(beginnings, begun, early, None))
    announced = pl.concat([before.select(names), begun.filter(begun_reason.is_null()).select(names)])
    ended_reason = _differing(beginnings, ended, announced, reached)
    fine = ended.filter(ended_reason.is_null())
    twice = key_rejections(fine, early.select(*names, beginnings.begins.end), [beginnings.begins.id])
    places = ended_reason.is_null().arg_true()
    return begun_reason, ended_reason.scatter(places, twice) if len(places) else ended_reason


def _differing(beginnings: Beginnings, rows: pl.DataFrame, others: pl.DataFrame, reached: Extended | None) -> pl.Series:
    """Per row why it does not fit the one of the others that has its identity: it differs, or, if it begins no
    later than `reached`, there is none.
    """
    id_, start = beginnings.begins.id, beginnings.begins.start
    compared = [name for name in beginnings.compared if name != id_]
    theirs = others.select(id_, *(pl.col(name).alias(f"{_ANNOUNCED}{name}") for name in compared))
    both = rows.select(beginnings.compared).join(theirs, on=id_, how="left", maintain_order="left")
    is_there = pl.col(f"{_ANNOUNCED}{start}").is_not_null()
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"{_ANNOUNCED}{name}")) for name in compared)
    late = pl.lit(value=False) if not isinstance(reached, int) else pl.col(start) <= reached
    reason = pl.when(is_there & ~same).then(pl.lit(CONFLICT)).when(~is_there & late).then(pl.lit(UNANNOUNCED))
    return both.select(reason.otherwise(pl.lit(None, pl.String)).alias("reason"))["reason"]


def _first(one: pl.Series, other: pl.Series) -> pl.Series:
    return one.zip_with(one.is_not_null(), other)
