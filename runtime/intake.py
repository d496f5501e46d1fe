"""Admission of new rows: which are accepted, which are rejected and why, and what of them is buffered.

Every row of a batch has exactly one fate: accepted, or rejected for one reason. Both engines run this code, Spark in its
Python workers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import TRUE, Term
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.columns import Raw, Rows, hold_column, raw, validate
from tidegate.runtime.embedded.relational import evaluate
from tidegate.runtime.embedded.terms import compile_term
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.sources import SourceOptions

LATE = "late"
RELATION = "relation"

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
_POSITION, _ORIGIN, _REASON, _ATTRIBUTE = "\0position", "\0origin", "\0reason", "\0attribute"


@dataclass(frozen=True, slots=True)
class Arrival:
    """Some rows of one stream, and where they came from (a file, a push)."""

    origin: str
    rows: Rows | Raw


@dataclass(frozen=True, slots=True)
class Intake:
    """What admission of one stream's rows needs in one batch; plain data, so that workers can have it.

    `progress` holds b of every progressing attribute before the batch; `door` the keep condition per buffer.
    """

    stream: StreamDef
    progress: Mapping[str, Extended]
    buffers: tuple[Buffer, ...]
    door: Mapping[str, Term]


@dataclass(slots=True)
class IngestedRows:
    """The fates of one stream's rows: counts, greatest instants, what each buffer stores, and the rejected rows."""

    accepted: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    greatest: dict[str, int] = field(default_factory=dict)
    punctuation: dict[str, int] = field(default_factory=dict)
    stored: dict[str, pl.DataFrame] = field(default_factory=dict)
    quarantine: list[tuple[str, str, int, str, str | None, str]] = field(default_factory=list)

    def quarantine_table(self) -> pa.Table:
        columns = list(zip(*self.quarantine, strict=True)) or [()] * len(QUARANTINE_SCHEMA)
        arrays = [pa.array(column, f.type) for column, f in zip(columns, QUARANTINE_SCHEMA, strict=True)]
        return pa.Table.from_arrays(arrays, schema=QUARANTINE_SCHEMA)


def ingest_rows(
    arrivals: Iterable[Arrival], intake: Intake, statics: Mapping[str, pl.DataFrame], options: SourceOptions
) -> IngestedRows:
    """Judges all rows of one stream in a batch and applies the chains of its buffers to the accepted ones."""
    done = IngestedRows()
    stream = intake.stream
    judged = judged_schema(stream.schema, options.progress_columns)
    accepted: list[pl.DataFrame] = []
    for arrival in arrivals:
        source = arrival.rows if isinstance(arrival.rows, Raw) else raw(arrival.rows, judged)
        checked = validate(source, judged)
        rows = pl.DataFrame(checked.accepted.append_column(_POSITION, checked.positions))
        for attribute, column in options.progress_columns.items():
            # Of rejected rows too: a row without values may be there for its progress alone.
            said, _ = hold_column(source.columns[column], judged[column].as_nullable())
            if (value := pc.max(said).as_py()) is not None:
                done.punctuation[attribute] = max(done.punctuation.get(attribute, value), value)
        fine, refused = admit(rows, intake)
        accepted.append(fine.with_columns(pl.lit(arrival.origin).alias(_ORIGIN)))
        bad = [(r["position"], r["reason"], r["attribute"]) for r in checked.rejected.to_pylist()]
        bad += refused.select(_POSITION, _REASON, _ATTRIBUTE).rows()
        for position, reason, attribute in sorted(bad):
            done.rejected[reason] = done.rejected.get(reason, 0) + 1
            if options.policy == "quarantine":
                text = _row_text(source, position)
                done.quarantine.append((stream.name, arrival.origin, position, reason, attribute, text))
    if not accepted:
        return done
    rows = pl.concat(accepted)
    done.accepted = rows.height
    for name in stream.progress:
        if (value := rows[name].max()) is not None:
            done.greatest[name] = int(value)  # type: ignore[arg-type]  # an int64 column
    for buffer in intake.buffers:
        try:
            done.stored[buffer.id] = absorb(rows, buffer, intake.door[buffer.id], statics)
        except EvaluationError as error:
            raise _with_place(error, rows, buffer, statics) from error
    return done


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


def judged_schema(schema: Schema, columns: Mapping[str, str]) -> Schema:
    """The stream's attributes and the progress columns that are read beside them."""
    extra = (Attribute(column, schema[name].type) for name, column in columns.items() if column not in schema)
    return Schema((*schema.attributes, *extra))


def _row_text(source: Raw, position: int) -> str:
    values = {}
    for name, column in source.columns.items():
        value = column[position]
        try:
            values[name] = value.as_py() if isinstance(value, pa.Scalar) else value
        except (ValueError, OverflowError):  # an instant that no datetime can hold
            assert isinstance(value, pa.Scalar)
            values[name] = value.cast(pa.int64()).as_py()
    return json.dumps(values, default=str, ensure_ascii=False)


def admit(rows: pl.DataFrame, intake: Intake) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Accepted rows, and rejected ones with reason and attribute.

    A row is late iff some progressing attribute is at or below b (rule on passing); a row that breaks a declared
    relation of its stream would make the analysis wrong, so it is rejected as `relation`.
    """
    reason, attribute = pl.lit(None, pl.String), pl.lit(None, pl.String)
    if intake.stream.relations != TRUE:
        holds = compile_term(intake.stream.relations, intake.stream.schema).fill_null(False)
        reason = pl.when(holds).then(reason).otherwise(pl.lit(RELATION))
    for name, b in intake.progress.items():
        if b == -INF:
            continue
        late = pl.lit(True) if isinstance(b, float) else pl.col(name) <= b
        attribute = pl.when(late & reason.is_null()).then(pl.lit(name)).otherwise(attribute)
        reason = pl.when(late & reason.is_null()).then(pl.lit(LATE)).otherwise(reason)
    judged = rows.with_columns(reason.alias(_REASON), attribute.alias(_ATTRIBUTE))
    fine = pl.col(_REASON).is_null()
    return judged.filter(fine).drop(_REASON, _ATTRIBUTE), judged.filter(~fine)


def absorb(rows: pl.DataFrame, buffer: Buffer, door: Term, statics: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """What a buffer stores of accepted rows: the chain applied, rows that nobody needs any more dropped at the door."""
    names = list(buffer.stream.schema.names)
    leaves = {buffer.scan: rows.select(names).lazy()}
    leaves |= {index: statics[name].lazy() for index, name in buffer.statics}
    stored = evaluate(buffer.chain, leaves)
    if door != TRUE:
        stored = stored.filter(compile_term(door, buffer.schema))
    if buffer.partial is not None:
        from tidegate.runtime.embedded.aggregates import partial

        stored = partial(buffer.partial, stored)
    return stored.collect()
