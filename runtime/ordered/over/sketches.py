"""Sketches of all rows up to one: what they say at each row, and the sketch itself at the last row of a partition."""

from __future__ import annotations

import polars as pl

from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.terms import Value
from tidegate.algebra.types import DataType
from tidegate.runtime.eval.aggregates.sketches import OpenSketch, entries, sketch_of
from tidegate.runtime.ordered.over.block import Block
from tidegate.runtime.ordered.over.whole import held_values


def running_sketch(
    aggregate: Aggregate, argument: DataType, rows: pl.Series, block: Block, told: pl.Series, texts: pl.Series
) -> dict[str, pl.Series]:
    """The parts of a running sketch by place, over `rows` by place; `told` and `texts` are those of kept rows.

    The last row of each partition is kept, as a running value needs it, so the sketch is written there alone.
    """
    found: list[Value] = [None] * block.height
    written: list[str | None] = [None] * block.height
    for place, value, sketched in zip(block.kept_places.tolist(), told.to_list(), texts.to_list(), strict=True):
        found[place], written[place] = value, sketched
    places = entries(sketch_of(aggregate), argument, rows).to_list()
    bounds = zip(block.offsets[:-1].tolist(), block.first.tolist(), block.offsets[1:].tolist(), strict=True)
    for start, first, end in bounds:
        if first == end:
            continue
        text: str | None = None
        if first > start:
            text, written[first - 1] = written[first - 1], None
        sketch = OpenSketch.of(aggregate, text)
        for place in range(first, end):
            entry = places[place]
            if entry is not None:
                sketch.add(entry)
            found[place] = sketch.told
        written[end - 1] = sketch.text()
    return {"v": held_values(aggregate, argument, found), "sketch": pl.Series(written, dtype=pl.String)}
