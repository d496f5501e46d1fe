"""Admission of new rows: which are accepted, which are rejected and why, and what of them is buffered.

Every row of a batch has exactly one fate: accepted, or rejected for one reason. Both engines run this code, Spark in its
Python workers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.terms import TRUE, Term
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.columns import Raw, Rows, held_arrow_schema, hold_column, only, raw, validate
from tidegate.runtime.embedded.few.increment import Rows as HeldRows
from tidegate.runtime.embedded.few.increment import as_frame, few_absorbed
from tidegate.runtime.embedded.few.rows import Few, Unfit
from tidegate.runtime.embedded.filters import kept
from tidegate.runtime.embedded.relational import evaluate
from tidegate.runtime.embedded.terms import compile_term
from tidegate.runtime.keys import repeated
from tidegate.runtime.plan.slices import Slice
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.sources import SourceOptions
from tidegate.runtime.state.manifest import SourceCounts
from tidegate.runtime.state.segments import Segment, read_segments
from tidegate.runtime.state.store import Store

LATE = "late"
RELATION = "relation"
AHEAD = "ahead"

#: A rejected row as the quarantine stores it: where it came from, why it was rejected, and the row itself as JSON text.
QUARANTINE_SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("attribute", pa.string()),
        pa.field("row", pa.string(), nullable=False),
    ]
)
#: Characters of a rejected row that an error shows.
_SHOWN = 500
#: So many rows, or more, are stored together, and then their arrivals are let go: of large files one is in memory at a time.
TOGETHER = 500_000
_POSITION, _ORIGIN, _REASON, _ATTRIBUTE = "\0position", "\0origin", "\0reason", "\0attribute"
_NONE_REFUSED = pl.DataFrame(schema={_POSITION: pl.Int64, _REASON: pl.String, _ATTRIBUTE: pl.String})


@dataclass(frozen=True, slots=True)
class Arrival:
    """Some rows of one stream, and where they came from (a file, a push)."""

    origin: str
    rows: Rows | Raw


@dataclass(frozen=True, slots=True)
class Intake:
    """What admission of one stream's rows needs in one batch; plain data, so that workers can have it.

    `progress` holds b of every progressing attribute before the batch; `door` the keep condition per buffer; `limits`
    the greatest instant that is not ahead, of the progressing attributes that have a skew guard; `remembered` the
    accepted rows that others must not repeat; `arrival` is the instant at which the batch receives rows. `joining`: events
    may be joined to stretches where the stream's delay says which of them are final.
    """

    stream: StreamDef
    progress: Mapping[str, Extended]
    buffers: tuple[Buffer, ...]
    door: Mapping[str, Term]
    limits: Mapping[str, int] = field(default_factory=dict)
    remembered: tuple[Segment, ...] = ()
    arrival: int = 0
    joining: bool = False


@dataclass(slots=True)
class IngestedRows:
    """The fates of one stream's rows: counts, greatest instants, what each buffer stores, and the rejected rows.

    `punctuations` counts rows that carry progress and nothing else; they are not rows of the stream, so they have no fate.
    `seen`, where the stream has a key, are the rows that further ones must not repeat.
    """

    accepted: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    punctuations: int = 0
    greatest: dict[str, int] = field(default_factory=dict)
    punctuation: dict[str, int] = field(default_factory=dict)
    stored: dict[str, HeldRows] = field(default_factory=dict)
    quarantine: list[tuple[str, str, int, str, str | None, str]] = field(default_factory=list)
    first_rejected: str = ""
    """One rejected row with its place and what is wrong with it, for an error."""
    seen: pl.DataFrame | None = None

    @property
    def counts(self) -> SourceCounts:
        """All of them by fate."""
        rows_in = self.accepted + sum(self.rejected.values())
        return SourceCounts(rows_in, self.accepted, self.rejected, self.punctuations)

    def quarantine_table(self) -> pa.Table:
        columns = list(zip(*self.quarantine, strict=True)) or [()] * len(QUARANTINE_SCHEMA)
        arrays = [pa.array(column, f.type) for column, f in zip(columns, QUARANTINE_SCHEMA, strict=True)]
        return pa.Table.from_arrays(arrays, schema=QUARANTINE_SCHEMA)


def ingest_rows(
    arrivals: Iterable[Arrival],
    intake: Intake,
    statics: Mapping[str, pl.DataFrame],
    options: SourceOptions,
    seen: pl.DataFrame | None = None,
) -> IngestedRows:
    """Judges all rows of one stream in a batch and applies the chains of its buffers to the accepted ones.

    `seen` are the rows that these must not repeat, in a stream with a key.
    """
    ingest = _Ingest(intake, statics, options, IngestedRows(seen=seen))
    for waiting in map(ingest.judge, arrivals):  # none is kept while the next one is read
        if waiting >= TOGETHER:
            ingest.store()
    if ingest.waiting:
        ingest.store()
    return ingest.finished()


@dataclass(slots=True)
class _Ingest:
    """Ingesting rows of one stream: accepted ones wait, by origin, until enough are together; `parts` are those stored."""

    intake: Intake
    statics: Mapping[str, pl.DataFrame]
    options: SourceOptions
    done: IngestedRows
    waiting: list[tuple[str, pl.DataFrame]] = field(default_factory=list)
    parts: dict[str, list[HeldRows]] = field(default_factory=dict)

    def judge(self, arrival: Arrival) -> int:
        """Notes the fates of an arrival's rows; the accepted ones wait. Gives how many rows do."""
        done, intake, options = self.done, self.intake, self.options
        stream = intake.stream
        judged = options.judged(stream.schema)
        source = _columns(arrival, stream, judged)
        checked = validate(source, judged)
        rows = pl.DataFrame(checked.accepted)
        if checked.rejected.num_rows:
            rows = rows.with_columns(pl.Series(_POSITION, checked.positions))
        said = _read_progress(source, intake, options, judged)
        for attribute, values in said.values.items():
            # Of rejected rows too: what a row says of progress holds whatever is wrong with its values.
            if (value := pc.max(values).as_py()) is not None:
                done.punctuation[attribute] = max(done.punctuation.get(attribute, value), value)
        if options.arrival is not None:
            rows = rows.with_columns(pl.lit(intake.arrival, pl.Int64).alias(options.arrival))
        fine, refused = admit(rows, intake, options.progress_columns)
        if done.seen is not None:
            reason = repeated(fine, done.seen, options.key, options.arrival)
            fine = _placed(fine)
            again = fine.filter(reason.is_not_null())
            nowhere = pl.lit(None, pl.String).alias(_ATTRIBUTE)
            refused = pl.concat([refused, again.select(_POSITION, reason.drop_nulls().alias(_REASON), nowhere)])
            fine = fine.filter(reason.is_null())
            done.seen = pl.concat([done.seen, fine.select(done.seen.columns)])
        done.accepted += fine.height
        self.waiting.append((arrival.origin, fine))
        bad = [
            (r["position"], r["reason"], r["attribute"])
            for r in checked.rejected.to_pylist()
            if r["position"] not in said.alone
        ]
        bad += refused.rows()
        bad += [(position, AHEAD, column) for position, column in said.alone.items() if column is not None]
        done.punctuations += sum(column is None for column in said.alone.values())
        for position, reason, attribute in sorted(bad):
            done.rejected[reason] = done.rejected.get(reason, 0) + 1
            if options.policy == "fail" and not done.first_rejected:
                wrong = f"{attribute} is {reason}" if attribute else reason
                text = _row_text(source, position)
                done.first_rejected = f"row {position} of {arrival.origin}: {wrong}: {text[:_SHOWN]}"
            if options.policy == "quarantine":
                text = _row_text(source, position)
                done.quarantine.append((stream.name, arrival.origin, position, reason, attribute, text))
        return sum(rows.height for _, rows in self.waiting)

    def store(self) -> None:
        """Applies the chains of the buffers to the rows that wait, all as one slice of the stream; then none wait."""
        names = self.intake.stream.schema.names
        parts = [only(part, names) for _, part in self.waiting]
        rows = parts[0] if len(parts) == 1 else pl.concat(parts)
        latest: dict[str, int] = {}
        for name in self.intake.stream.progress:
            if (value := rows[name].max()) is not None:
                latest[name] = int(value)  # type: ignore[arg-type]  # an int64 column
                self.done.greatest[name] = max(latest[name], self.done.greatest.get(name, latest[name]))
        held = as_few(rows)
        for buffer in self.intake.buffers:
            try:
                slice_ = _slice(rows, buffer, self.options, latest) if self.intake.joining else None
                part = absorbed(held, buffer, self.intake.door[buffer.id], self.statics, slice_)
            except EvaluationError as error:
                placed = pl.concat(
                    _placed(part).select(*names, _POSITION, pl.lit(origin).alias(_ORIGIN))
                    for origin, part in self.waiting
                )
                raise _with_place(error, placed, buffer, self.statics) from error
            self.parts.setdefault(buffer.id, []).append(part)
        self.waiting.clear()

    def finished(self) -> IngestedRows:
        """All fates, and what each buffer stores."""
        for buffer in self.intake.buffers:
            if parts := self.parts.get(buffer.id):
                self.done.stored[buffer.id] = parts[0] if len(parts) == 1 else _as_one(buffer, parts)
        return self.done


def _as_one(buffer: Buffer, parts: Sequence[HeldRows]) -> pl.DataFrame:
    """What a buffer stores of all rows of a batch, from that of some at a time."""
    rows = pl.concat([as_frame(part) for part in parts])
    if buffer.partial is None:
        return rows
    from tidegate.runtime.embedded.aggregates import merge

    return merge(buffer.partial, rows)  # one partial result per group


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with their places in the arrival; without any beforehand, all of the arrival are there."""
    return rows if _POSITION in rows.columns else rows.with_columns(pl.int_range(pl.len()).alias(_POSITION))


def _slice(rows: pl.DataFrame, buffer: Buffer, options: SourceOptions, latest: Mapping[str, int]) -> Slice | None:
    """Between which instants a buffer may join these rows, all accepted ones of a stretch of input."""
    if buffer.stretches is None or buffer.stretches.time not in options.delay or not rows.height:
        return None
    time = buffer.stretches.time
    return Slice.of(rows[time].min(), latest[time], options.delay[time])  # type: ignore[arg-type]  # int64


def load_seen(store: Store, intake: Intake, options: SourceOptions) -> pl.DataFrame | None:
    """The rows that new ones must not repeat; None for a stream without a key."""
    if not options.key:
        return None
    schema = held_arrow_schema(intake.stream.schema)
    return pl.DataFrame(read_segments(store, intake.remembered, schema=schema))


def _with_place(
    error: EvaluationError, rows: pl.DataFrame, buffer: Buffer, statics: Mapping[str, pl.DataFrame]
) -> EvaluationError:
    """The error of a row's term, saying which row of which source it is; found by halving."""
    while rows.height > 1:
        first = rows.head(rows.height // 2)
        try:
            absorb(first, buffer, TRUE, statics)
            rows = rows.tail(rows.height - first.height)
        except EvaluationError as found:
            rows, error = first, found
    place = f"{buffer.stream.name}, row {rows[_POSITION][0]} of {rows[_ORIGIN][0]}"
    return EvaluationError(error.code, f"{error.message} ({place})", hint=error.hint, because=error.problems[0].because)


def _columns(arrival: Arrival, stream: StreamDef, judged: Schema) -> Raw:
    """The rows of an arrival by column. A file may lack some: of attributes, its rows are rejected one by one."""
    if isinstance(arrival.rows, Raw):
        return arrival.rows
    try:
        source = raw(arrival.rows, judged, absent=judged.names)
    except QueryError as error:
        raise QueryError(error.code, f"{arrival.origin}: {error.message}", hint=error.hint) from error
    # A progress column may be absent: then the file says nothing of progress.
    return replace(source, absent=source.absent & frozenset(stream.schema))


@dataclass(frozen=True, slots=True)
class _Said:
    """What rows say of progress: values per progressing attribute, and the rows that carry nothing else.

    `alone` has the positions of these, with the column whose value is ahead, None where none is.
    """

    values: Mapping[str, pa.Array]
    alone: Mapping[int, str | None]


def _read_progress(source: Raw, intake: Intake, options: SourceOptions, judged: Schema) -> _Said:
    values: dict[str, pa.Array] = {}
    speaks = np.zeros(source.count, dtype=np.bool_)
    ahead: dict[int, str] = {}
    for attribute, column in options.progress_columns.items():
        said, _ = hold_column(source.columns[column], judged[column].as_nullable())
        speaks |= said.is_valid().to_numpy(zero_copy_only=False)
        if (limit := intake.limits.get(attribute)) is not None:
            beyond = pc.greater(said, limit).fill_null(False)
            for position in np.flatnonzero(beyond.to_numpy(zero_copy_only=False)):
                ahead.setdefault(int(position), column)
            said = pc.if_else(beyond, pa.scalar(None, said.type), said)
        values[attribute] = said
    for name in (name for name in intake.stream.schema if name != options.arrival):
        if not speaks.any():
            break
        speaks &= _null_mask(source.columns[name])
    return _Said(values, {int(position): ahead.get(int(position)) for position in np.flatnonzero(speaks)})


def _null_mask(column: pa.Array | Sequence[object]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if isinstance(column, pa.Array):
        return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    return np.fromiter((value is None for value in column), dtype=np.bool_, count=len(column))


def _row_text(source: Raw, position: int) -> str:
    values = {}
    for name, column in source.columns.items():
        value = column[position]
        try:
            values[name] = value.as_py() if isinstance(value, pa.Scalar) else value
        except (ValueError, OverflowError):  # an instant that no datetime can hold
            assert isinstance(value, pa.Scalar)
            values[name] = value.cast(pa.int64()).as_py()
    # Half a surrogate pair has no UTF-8; as an escape it is JSON still.
    return json.dumps(values, default=str, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8")


def admit(rows: pl.DataFrame, intake: Intake, progress_columns: Mapping[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Accepted rows, and the places of rejected ones with reason and attribute.

    A row is late iff some progressing attribute is at or below b (rule on passing), and ahead iff one, or what it says
    of progress, is beyond the skew guard. A row that breaks a declared relation of its stream would make the analysis
    wrong, so it is rejected as `relation`. The first of relation, late and ahead that applies counts.
    """
    tests: list[tuple[str, str | None, pl.Expr]] = []
    if intake.stream.relations != TRUE:
        holds = compile_term(intake.stream.relations, intake.stream.schema)
        tests.append((RELATION, None, ~holds.fill_null(False)))
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
        return rows, _NONE_REFUSED
    reason, attribute = pl.lit(None, pl.String), pl.lit(None, pl.String)
    for why, at, applies in tests:
        attribute = pl.when(applies & reason.is_null()).then(pl.lit(at, pl.String)).otherwise(attribute)
        reason = pl.when(applies & reason.is_null()).then(pl.lit(why)).otherwise(reason)
    judged = _placed(rows).with_columns(reason.alias(_REASON), attribute.alias(_ATTRIBUTE))
    fine = pl.col(_REASON).is_null()
    refused = judged.filter(~fine).select(_POSITION, _REASON, _ATTRIBUTE)
    return judged.filter(fine).drop(_REASON, _ATTRIBUTE), refused


def _plainly_fine(rows: pl.DataFrame, intake: Intake, progress_columns: Mapping[str, str]) -> bool:
    """Whether least and greatest instants show that no row is late or ahead, as in most batches."""
    if intake.stream.relations != TRUE or progress_columns:
        return False
    late = any(_least(rows, name) <= b for name, b in intake.progress.items())
    return not late and all(_greatest(rows, name) <= limit for name, limit in intake.limits.items())


def _least(rows: pl.DataFrame, name: str) -> Extended:
    found = rows.get_column(name).min()
    return found if isinstance(found, int) else INF


def _greatest(rows: pl.DataFrame, name: str) -> Extended:
    found = rows.get_column(name).max()
    return found if isinstance(found, int) else -INF


def as_few(rows: pl.DataFrame) -> HeldRows:
    """The rows as arrays where they are few and none has a NULL or a NaN."""
    try:
        return Few.of(rows)
    except Unfit:
        return rows


def absorbed(
    rows: HeldRows, buffer: Buffer, door: Term, statics: Mapping[str, pl.DataFrame], slice_: Slice | None = None
) -> HeldRows:
    """`absorb`, of few rows by NumPy."""
    if isinstance(rows, Few):
        try:
            return few_absorbed(rows, buffer, door, slice_)
        except Unfit:
            rows = rows.frame()
    return absorb(rows, buffer, door, statics, slice_)


def absorb(
    rows: pl.DataFrame, buffer: Buffer, door: Term, statics: Mapping[str, pl.DataFrame], slice_: Slice | None = None
) -> pl.DataFrame:
    """What a buffer stores of accepted rows: the chain applied, rows that nobody needs any more dropped at the door.

    Of a buffer of stretches, events in the slice are joined to some.
    """
    names = buffer.stream.schema.names
    leaves = {buffer.scan: only(rows, names)}
    leaves |= {index: statics[name] for index, name in buffer.statics}
    stored = evaluate(buffer.chain, leaves)
    if door != TRUE:
        stored = kept(stored, compile_term(door, buffer.schema))
    if buffer.partial is not None:
        from tidegate.runtime.embedded.aggregates import partial

        stored = partial(buffer.partial, stored)
    if buffer.stretches is not None:
        from tidegate.runtime.embedded.stretches import stretched

        stored = stretched(buffer, stored, slice_)
    return stored
