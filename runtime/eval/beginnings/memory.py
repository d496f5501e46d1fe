"""What is remembered of intervals that have begun, of streams that tell when one does (rule R21)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from tidegate.algebra.nodes import Scan
from tidegate.algebra.schema import Begins, Schema, StreamDef
from tidegate.algebra.terms import TRUE
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.state.open_intervals import longest
from tidegate.runtime.plan.steps import Buffer


@dataclass(frozen=True, slots=True)
class Beginnings:
    """The beginnings of a stream's intervals, in a buffer of their own. Its rows are those of the stream: with NULL for
    an end a beginning, and of intervals that have ended those of which something is still to be known.

    Beginning and end of an interval agree in the `compared` attributes. None lasts more than `longest` ticks.
    """

    buffer: Buffer
    begins: Begins
    compared: tuple[str, ...]
    longest: Extended

    def left(self, rows: pl.DataFrame, reached: Extended) -> pl.DataFrame:
        """The rows that still say something once progress has reached an instant.

        Those are beginnings without an end that may still come, and ends after whose start nothing is complete: until
        then their beginning may come, or another row with their identity.
        """
        start, end = pl.col(self.begins.start), pl.col(self.begins.end)
        if reached == INF:
            return rows.clear()
        ended = rows.filter(end.is_not_null())
        same = [self.begins.id, self.begins.start]
        begun = rows.filter(end.is_null()).join(ended.select(same), on=same, how="anti")
        if isinstance(reached, int):
            ended = ended.filter(start > reached)
            if isinstance(self.longest, int):
                begun = begun.filter(start + self.longest > reached)
        return pl.concat([begun, ended])

    def open(self, rows: pl.DataFrame, reached: Extended) -> pl.DataFrame:
        """Of these rows the beginnings of intervals that may still end."""
        return self.left(rows, reached).filter(pl.col(self.begins.end).is_null())


def beginnings_of(stream: StreamDef) -> Beginnings | None:
    """What is remembered of a stream that tells beginnings; None for others."""
    begins = stream.begins
    if begins is None:
        return None
    schema = without_end(stream.schema, begins)
    memory = replace(stream, schema=schema, relations=TRUE, progress=(begins.start,), begins=None)
    buffer = Buffer(memory_of(stream.name), memory, Scan(memory), 0, (), (begins.start,))
    compared = tuple(name for name in stream.schema if name not in (begins.end, *begins.later))
    return Beginnings(buffer, begins, compared, longest(stream))


def memory_of(stream: str) -> str:
    """The buffer that remembers beginnings of a stream."""
    return f"beginnings of {stream}"


def without_end(schema: Schema, begins: Begins) -> Schema:
    """The schema of rows whose end may be NULL."""
    return Schema(tuple(a.as_nullable() if a.name == begins.end else a for a in schema.attributes))
