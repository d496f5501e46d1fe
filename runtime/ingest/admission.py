"""Which rows of a stream are accepted, and what rows say of progress: admission, by relations, lateness and the guards
of the clock.

The `Intake` of a stream says by what; `batch/admission.py` makes it for each batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.algebra.nodes import Node
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.terms import TRUE, Term
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.arrays import BoolArray
from tidegate.runtime.connectors.sources import SourceOptions
from tidegate.runtime.eval.beginnings.memory import Beginnings
from tidegate.runtime.eval.columns import as_mask
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.ingest.raw_rows import Raw
from tidegate.runtime.ingest.validation import hold_column
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.state.segments import Segment

LATE = "late"
RELATION = "relation"
AHEAD = "ahead"
OLD = "old"
UNEVALUABLE = "unevaluable"

#: Columns beside a row's own: its place in the arrival, why it is rejected, and the attribute that says so.
POSITION, REASON, ATTRIBUTE = "\0position", "\0reason", "\0attribute"
#: And the error of a term that has no value for it.
ERROR = "\0error"
NONE_REFUSED = pl.DataFrame(schema={POSITION: pl.Int64, REASON: pl.String, ATTRIBUTE: pl.String})


@dataclass(frozen=True, slots=True)
class Intake:
    """What admission of one stream's rows needs in one batch; plain data, so that workers can have it.

    `progress` holds b of every progressing attribute before the batch; `filters` the keep condition per buffer;
    `limits` the greatest instant that is not ahead, of the progressing attributes that have a skew guard; `floors` the
    least that is not old, of those that have an age guard; `remembered` the accepted rows of the buffer `memory` that
    others must not repeat; `arrival` is the instant at which the batch receives rows. `joining`: events may be joined
    into event runs where the stream's delay says which of them are final. `terms` are the row-wise parts of the queries
    that hold terms which can fail on a row. `beginnings` and the segments `begun` are what is known of beginnings of
    intervals, of a stream that tells them.
    """

    stream: StreamDef
    progress: Mapping[str, Extended]
    buffers: tuple[Buffer, ...]
    filters: Mapping[str, Term]
    limits: Mapping[str, int] = field(default_factory=dict)
    floors: Mapping[str, int] = field(default_factory=dict)
    memory: Buffer | None = None
    remembered: tuple[Segment, ...] = ()
    arrival: int = 0
    joining: bool = False
    terms: tuple[Node, ...] = ()
    beginnings: Beginnings | None = None
    begun: tuple[Segment, ...] = ()

    @property
    def stored(self) -> tuple[Buffer, ...]:
        """All buffers that store something of these rows."""
        return self.buffers if self.beginnings is None else (*self.buffers, self.beginnings.buffer)


def admit_beginnings(rows: pl.DataFrame, intake: Intake) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Accepted beginnings of intervals, and the places of rejected ones with reason and attribute.

    One comes at its start: it is old, late or ahead where ends of that instant would be.
    """
    assert intake.beginnings is not None
    begins = intake.beginnings.begins
    b, limit, floor = intake.progress[begins.end], intake.limits.get(begins.end), intake.floors.get(begins.end)
    start = pl.col(begins.start)
    old = pl.lit(value=False) if floor is None else start < floor
    late = pl.lit(b == INF) if isinstance(b, float) else start <= b
    ahead = pl.lit(value=False) if limit is None else start > limit
    known = pl.when(old).then(pl.lit(OLD)).when(late).then(pl.lit(LATE)).when(ahead).then(pl.lit(AHEAD))
    reason = known.otherwise(pl.lit(None, pl.String))
    judged = rows.with_columns(reason.alias(REASON), pl.lit(begins.start).alias(ATTRIBUTE))
    fine = pl.col(REASON).is_null()
    refused = judged.filter(~fine).select(POSITION, REASON, ATTRIBUTE)
    return judged.filter(fine).drop(REASON, ATTRIBUTE), refused


def admit(rows: pl.DataFrame, intake: Intake, progress_columns: Mapping[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Accepted rows, and the places of rejected ones with reason and attribute.

    A row is late iff some progressing attribute is at or below b (rule on passing), ahead iff one, or what it says of
    progress, is beyond the skew guard, and old iff one is behind the age guard: that everything up to long ago has
    arrived is true of any row. A row that breaks a declared relation of its stream would make the analysis wrong, so it
    is rejected as `relation`. The first of relation, old, late and ahead that applies counts: whether a row is old does
    not depend on what came before it.
    """
    tests: list[tuple[str, str | None, pl.Expr]] = []
    if intake.stream.relations != TRUE:
        holds = compile_term(intake.stream.relations, intake.stream.schema)
        tests.append((RELATION, None, ~holds.fill_null(False)))
    tests += [(OLD, name, pl.col(name) < floor) for name, floor in intake.floors.items()]
    tests += [
        (LATE, name, pl.lit(True) if isinstance(b, float) else pl.col(name) <= b)
        for name, b in intake.progress.items()
        if b != -INF
    ]
    for name, limit in intake.limits.items():
        tests.append((AHEAD, name, pl.col(name) > limit))
        if (column := progress_columns.get(name)) is not None:
            tests.append((AHEAD, column, (pl.col(column) > limit).fill_null(False)))
    if (
        not tests
        or (_plainly_fine(rows, intake, progress_columns))
        or not rows.select(pl.any_horizontal(applies for _, _, applies in tests).any()).item()
    ):
        return rows, NONE_REFUSED
    reason, attribute = pl.lit(None, pl.String), pl.lit(None, pl.String)
    for why, at, applies in tests:
        attribute = pl.when(applies & reason.is_null()).then(pl.lit(at, pl.String)).otherwise(attribute)
        reason = pl.when(applies & reason.is_null()).then(pl.lit(why)).otherwise(reason)
    judged = with_places(rows).with_columns(reason.alias(REASON), attribute.alias(ATTRIBUTE))
    fine = pl.col(REASON).is_null()
    refused = judged.filter(~fine).select(POSITION, REASON, ATTRIBUTE)
    return judged.filter(fine).drop(REASON, ATTRIBUTE), refused


def _plainly_fine(rows: pl.DataFrame, intake: Intake, progress_columns: Mapping[str, str]) -> bool:
    """Whether least and greatest instants show that no row is old, late or ahead, as in most batches."""
    if intake.stream.relations != TRUE or progress_columns:
        return False
    early = any(_least(rows, name) <= b for name, b in intake.progress.items())
    early = early or any(_least(rows, name) < floor for name, floor in intake.floors.items())
    return not early and all(_greatest(rows, name) <= limit for name, limit in intake.limits.items())


def _least(rows: pl.DataFrame, name: str) -> Extended:
    least = rows.get_column(name).min()
    return least if isinstance(least, int) else INF


def _greatest(rows: pl.DataFrame, name: str) -> Extended:
    greatest = rows.get_column(name).max()
    return greatest if isinstance(greatest, int) else -INF


def with_places(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with their places in the arrival; without any beforehand, all of the arrival are there."""
    return rows if POSITION in rows.columns else rows.with_columns(pl.int_range(pl.len()).alias(POSITION))


@dataclass(frozen=True, slots=True)
class ProgressValues:
    """What rows say of progress: values per progressing attribute, and the rows that carry nothing else of their own.

    `alone` has the positions of these, with the column whose value is ahead, None where none is. `beyond_guard`: some
    row has a value that is ahead, which is not among `values`.
    """

    values: Mapping[str, pa.Array]
    alone: Mapping[int, str | None]
    beyond_guard: bool


def said_of_progress(
    source: Raw, of_folders: Collection[str], intake: Intake, options: SourceOptions, judged: Schema
) -> ProgressValues:
    """What rows of a file, some of whose columns are those of its folders, or of a push say of progress.

    What folders have is the same in all rows, so it makes neither a row nor a punctuation of one.
    """
    values: dict[str, pa.Array] = {}
    schema = intake.stream.schema
    own = [name for name in schema if name != options.arrival and name not in of_folders]
    is_row_without = all(schema[name].nullable for name in own)
    speaks = np.zeros(source.count, dtype=np.bool_)
    ahead: list[tuple[str, BoolArray]] = []
    for attribute, column in options.progress_columns.items():
        said, _ = hold_column(source.columns[column], judged[column].as_nullable())
        if column not in of_folders and not is_row_without:
            speaks |= as_mask(said.is_valid())
        if (limit := intake.limits.get(attribute)) is not None:
            beyond = pc.greater(said, limit).fill_null(False)
            ahead.append((column, as_mask(beyond)))
            said = pc.if_else(beyond, pa.scalar(None, said.type), said)
        values[attribute] = said
    for name in own:
        if not speaks.any():
            break
        speaks &= _null_mask(source.columns[name])
    alone = np.flatnonzero(speaks).tolist()
    first_ahead = {n: next((column for column, beyond in ahead if beyond[n]), None) for n in alone}
    return ProgressValues(values, first_ahead, any(beyond.any() for _, beyond in ahead))


def _null_mask(column: pa.Array | pa.ChunkedArray | Sequence[object]) -> BoolArray:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return as_mask(column.is_null())
    return np.fromiter((value is None for value in column), dtype=np.bool_, count=len(column))
