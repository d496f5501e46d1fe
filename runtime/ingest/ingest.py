"""The fate of each new row, and what of the accepted ones is buffered: an engine's `ingest` ends here.

Every row of a batch has exactly one fate: accepted, or rejected for one reason. Both engines run this code, Spark in
its Python workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.runtime.connectors.sources import SourceOptions
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.unevaluable import failures
from tidegate.runtime.ingest.admission import (
    AHEAD,
    ATTRIBUTE,
    ERROR,
    NONE_REFUSED,
    POSITION,
    REASON,
    UNEVALUABLE,
    Intake,
    admit,
    admit_beginnings,
    said_of_progress,
    with_places,
)
from tidegate.runtime.ingest.beginnings.fates import refused_beginnings_and_ends
from tidegate.runtime.ingest.beginnings.told import split
from tidegate.runtime.ingest.buffering import absorbed, as_small
from tidegate.runtime.ingest.keys import ReadIndexed, RememberedRows, key_rejections
from tidegate.runtime.ingest.raw_rows import Column, Raw, Rows, raw
from tidegate.runtime.ingest.rejected_text import file_text, row_texts
from tidegate.runtime.ingest.validation import JUDGED, ValidatedRows, validate, validated_pieces
from tidegate.runtime.ingest.values import MISSING
from tidegate.runtime.plan.slices import Slice
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.rows import Rows as HeldRows
from tidegate.runtime.rows import as_frame
from tidegate.runtime.state.errors import is_out_of_memory
from tidegate.runtime.state.manifest import UNREADABLE, SourceCounts
from tidegate.runtime.state.quarantine import RejectedRow, RejectedRows, error_text

#: The position of an entry of the quarantine that stands for a file.
WHOLE_FILE: Final = -1
#: How the quarantine begins to say which columns a file has that lacks some.
COLUMNS: Final = "the columns of the file are: "
#: Characters of a rejected row that an error shows.
_SHOWN = 500
#: Rows after which what was read is stored: this bounds memory to one large file.
TOGETHER = 500_000

#: What to do about a file that cannot be read, and what else if its content is at fault.
REPAIR_HINT: Final = "repair the file or move it away; the batch is then repeated without it"
SET_ASIDE_HINT: Final = f'{REPAIR_HINT}; on_bad_file="quarantine" sets such files aside'


class UnreadableFile(QueryError):
    """A file whose content is not what it should be: no rows can be made of it, however often it is read."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Some rows of one stream, and where they came from (a file, a push); of a file that cannot be read, why.

    `of_folders` are the columns whose values are those of the file's folders.
    """

    origin: str
    rows: Rows | Raw
    unreadable: UnreadableFile | None = None
    of_folders: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Remembered:
    """Accepted rows by which others of their stream are judged: with a key those that must not be repeated, and what is
    known of beginnings of intervals.
    """

    seen: RememberedRows | None = None
    begun: RememberedRows | None = None


@dataclass(slots=True)
class IngestedRows:
    """The fates of one stream's rows: counts, greatest instants, what each buffer stores, and the rejected rows.

    `punctuations` counts rows that carry progress and nothing else; they are not rows of the stream, so they have no
    fate; nor are beginnings of intervals, which count as such. `unreadable` counts files that were set aside: nobody
    knows how many rows they have.
    """

    accepted: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    punctuations: int = 0
    unreadable: int = 0
    greatest: dict[str, int] = field(default_factory=dict)
    punctuation: dict[str, int] = field(default_factory=dict)
    stored: dict[str, HeldRows] = field(default_factory=dict)
    quarantine: RejectedRows = field(default_factory=RejectedRows)
    first_rejected: str = ""
    """One rejected row with its place and what is wrong with it, for an error."""
    beyond_guard: bool = False
    """Whether some row, accepted or not, says more of progress than the skew guard lets count."""

    @property
    def counts(self) -> SourceCounts:
        """All of them by fate."""
        rows_in = self.accepted + sum(self.rejected.values())
        return SourceCounts(rows_in, self.accepted, self.rejected, self.punctuations)

    def add(self, other: IngestedRows) -> None:
        """The fates of further rows; not what is stored of them."""
        self.accepted += other.accepted
        self.punctuations += other.punctuations
        self.unreadable += other.unreadable
        for reason, rows in other.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + rows
        for own, others in ((self.greatest, other.greatest), (self.punctuation, other.punctuation)):
            for attribute, value in others.items():
                own[attribute] = max(value, own.get(attribute, value))
        self.quarantine.extend(other.quarantine)
        self.first_rejected = self.first_rejected or other.first_rejected
        self.beyond_guard |= other.beyond_guard


def ingest_rows(
    arrivals: Iterable[Arrival],
    intake: Intake,
    statics: Mapping[str, pl.DataFrame],
    options: SourceOptions,
    remembered: Remembered | None = None,
    spill: Callable[[pa.Table], None] | None = None,
) -> IngestedRows:
    """Judges all rows of one stream in a batch and applies the chains of its buffers to the accepted ones.

    `remembered` are the rows by which these are judged, in a stream with a key or with beginnings of intervals; those
    that are accepted are added. Many rejected rows go to `spill`, and are not among those of the result.
    """
    done = IngestedRows(quarantine=RejectedRows(spill))
    ingest = _Ingest(intake, statics, options, remembered or Remembered(), done)
    for waiting in map(ingest.judge, arrivals):  # none is kept while the next one is read
        if waiting >= TOGETHER:
            ingest.store()
    if ingest.waiting:
        ingest.store()
    return ingest.finished()


def ingest_side_by_side(
    shares: Sequence[Iterable[Arrival]], intake: Intake, statics: Mapping[str, pl.DataFrame], options: SourceOptions
) -> IngestedRows:
    """`ingest_rows` of shares of one stream's rows, each in a thread of its own: the same rows in the same order.

    Each share is a slice of the stream (or several): events are joined within it, and stitched to those of the next by
    the increment. Of a stream that is judged in order all rows are one share.
    """
    with ThreadPoolExecutor(len(shares), "tidegate-intake") as pool:
        parts = list(pool.map(lambda share: ingest_rows(share, intake, statics, options), shares))
    return together(intake, parts)


def together(intake: Intake, parts: Sequence[IngestedRows]) -> IngestedRows:
    """The rows of one stream in a batch, of which parts were ingested apart, in their order."""
    done = IngestedRows()
    for part in parts:
        done.add(part)
    for buffer in intake.buffers:
        stored = [part.stored[buffer.id] for part in parts if buffer.id in part.stored]
        if stored:
            done.stored[buffer.id] = _as_one(buffer, stored)
    return done


@dataclass(slots=True)
class _Ingest:
    """Ingesting rows of one stream: accepted ones wait, by origin, until enough are together; `parts` are those
    stored.
    """

    intake: Intake
    statics: Mapping[str, pl.DataFrame]
    options: SourceOptions
    remembered: Remembered
    done: IngestedRows
    waiting: list[tuple[str, pl.DataFrame]] = field(default_factory=list)
    waiting_rows: int = 0
    parts: dict[str, list[HeldRows]] = field(default_factory=dict)
    told: list[pl.DataFrame] = field(default_factory=list)
    """What is to be remembered of beginnings."""

    def judge(self, arrival: Arrival) -> int:
        """Notes the fates of an arrival's rows; the accepted ones wait. Gives how many rows do."""
        done = self.done
        try:
            source, pieces = _read(arrival, self.intake, self.options.judged(self.intake.stream.schema))
        except UnreadableFile as bad_file:
            self._set_aside(arrival.origin, bad_file)
            return self.waiting_rows
        shown: Mapping[str, Column] | None = None
        for first, checked in pieces:
            piece = source.piece(first, JUDGED) if len(pieces) > 1 else source
            bad = self._judge_piece(arrival, piece, checked, first)
            if bad is None:
                continue
            for reason, count in bad.group_by(REASON, maintain_order=True).len().iter_rows():
                done.rejected[reason] = done.rejected.get(reason, 0) + count
            if self._tells:
                if shown is None:
                    shown = _all_columns(arrival.origin, source) if source.absent else source.columns
                self._tell(arrival.origin, shown, bad)
        return self.waiting_rows

    @property
    def _tells(self) -> bool:
        """Whether something more is to be noted of rejected rows than how many they are."""
        policy = self.options.policy
        return policy == "quarantine" or (policy == "fail" and not self.done.first_rejected)

    def _judge_piece(self, arrival: Arrival, source: Raw, checked: ValidatedRows, first: int) -> pl.DataFrame | None:
        """Notes the fates of rows from the number `first` of an arrival on; those that are rejected, by number, with
        reason, attribute and error.
        """
        done, intake, options, origin = self.done, self.intake, self.options, arrival.origin
        stream = intake.stream
        judged = options.judged(stream.schema)
        rows = pl.from_arrow(checked.accepted, rechunk=False)
        assert isinstance(rows, pl.DataFrame)  # from a table
        if checked.rejected.num_rows:
            rows = rows.with_columns(pl.Series(POSITION, checked.positions))
        begun, malformed = None, checked.rejected
        if stream.begins is not None:
            begun, malformed = split(source, checked, judged, stream.begins, POSITION)
        said = said_of_progress(source, arrival.of_folders, intake, options, judged)
        done.beyond_guard |= said.beyond_guard
        for attribute, values in said.values.items():
            # Of rejected rows too: what a row says of progress holds whatever is wrong with its values.
            if (value := pc.max(values).as_py()) is not None:
                done.punctuation[attribute] = max(done.punctuation.get(attribute, value), value)
        if options.arrival is not None:
            rows = rows.with_columns(pl.lit(intake.arrival, pl.Int64).alias(options.arrival))
        fine, refused = admit(rows, intake, options.progress_columns)
        fine, failed = self._evaluable(fine, origin, first)
        seen = self.remembered.seen
        if seen is not None:
            fine, again = _without(fine, key_rejections(fine, seen.like(fine), options.key, options.arrival))
            refused = pl.concat([refused, again])
        if begun is not None:
            fine, more = self._announced(fine, begun)
            refused = pl.concat([refused, more])
        if seen is not None:
            seen.add(fine)
        done.accepted += fine.height
        self.waiting.append((origin, fine))
        self.waiting_rows += fine.height
        done.punctuations += sum(column is None for column in said.alone.values())
        bad = [refused, failed]
        if malformed.num_rows:
            alone = pl.Series(list(said.alone), dtype=pl.Int64).implode()
            of_values = pl.DataFrame(malformed).select(
                pl.col("position").alias(POSITION), pl.col("reason").alias(REASON), pl.col("attribute").alias(ATTRIBUTE)
            )
            bad.append(of_values.filter(~pl.col(POSITION).is_in(alone)))
        if ahead := [(position, AHEAD, column) for position, column in said.alone.items() if column is not None]:
            bad.append(pl.DataFrame(ahead, NONE_REFUSED.schema, orient="row"))
        bad = [part for part in bad if part.height]
        if not bad:
            return None
        return pl.concat(bad, how="diagonal").sort(POSITION).with_columns(pl.col(POSITION) + first)

    def _announced(self, ended: pl.DataFrame, begun: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Of the rows of intervals that have ended those that fit their beginnings, and the places of the rejected
        rows, beginnings among them. What is to be remembered is noted.
        """
        done, intake, beginnings = self.done, self.intake, self.intake.beginnings
        known = self.remembered.begun
        assert beginnings is not None
        assert known is not None
        if (arrival := self.options.arrival) is not None:
            begun = begun.with_columns(pl.lit(intake.arrival, dtype=pl.Int64).alias(arrival))
        begun, early = admit_beginnings(begun, intake)
        near, reached = known.like(begun, ended), intake.progress[beginnings.begins.end]
        of_begun, of_ended = refused_beginnings_and_ends(beginnings, begun, ended, near, reached, self.options.arrival)
        begun, refused_begun = _without(begun, of_begun)
        ended, refused_ended = _without(ended, of_ended)
        told = pl.concat([rows.select(known.columns) for rows in (begun, ended)])
        known.add(told)
        done.punctuations += begun.height
        self.told.append(told)
        if (latest := begun[beginnings.begins.start].max()) is not None:
            assert isinstance(latest, int)
            end = beginnings.begins.end
            done.greatest[end] = max(latest, done.greatest.get(end, latest))
        return ended, pl.concat([early, refused_begun, refused_ended])

    def _tell(self, origin: str, shown: Mapping[str, Column], bad: pl.DataFrame) -> None:
        """Notes rejected rows as the source's policy wants it: all of them, or the first."""
        policy, stream = self.options.policy, self.intake.stream.name
        columns = f"{COLUMNS}{', '.join(shown)}"[:_SHOWN]
        told = bad if ERROR in bad.columns else bad.with_columns(pl.lit(None, pl.String).alias(ERROR))
        rows = told.select(POSITION, REASON, ATTRIBUTE, ERROR).iter_rows()
        texts = row_texts(shown, told[POSITION])
        for (position, reason, attribute, error), (text, line) in zip(rows, texts, strict=True):
            if reason == MISSING:
                error = columns
            if line is not None:
                attribute, error = None, line.error
            if policy == "fail":
                wrong = f"{attribute} is {reason}" if attribute else error or reason
                self.done.first_rejected = f"row {position} of {origin}: {wrong}: {text[:_SHOWN]}"
                return
            self.done.quarantine.append(RejectedRow(stream, origin, position, reason, attribute, text, error))

    def _set_aside(self, path: str, error: UnreadableFile) -> None:
        """Notes a file that cannot be read, or raises why it cannot be."""
        if self.options.on_bad_file == "fail":
            raise error
        self.done.unreadable += 1
        text = file_text(path, self.intake.arrival)
        stream = self.intake.stream.name
        entry = RejectedRow(stream, path, WHOLE_FILE, UNREADABLE, None, text, error_text(error))
        self.done.quarantine.append(entry)

    def _evaluable(self, rows: pl.DataFrame, origin: str, first: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows for which every term of the queries that reads one row has a value; and the places of the others,
        with the error.

        `EvaluationError` for the first of the others where the source is to fail.
        """
        if not self.intake.terms or not rows.height:
            return rows, NONE_REFUSED
        failed = failures(self.intake.terms, rows, self.statics)
        if not failed:
            return rows, NONE_REFUSED
        rows = with_places(rows)
        if self.options.on_error == "fail":
            place, error = failed.first()
            raise _with_place(error, self.intake.stream.name, first + rows[POSITION][place], origin)
        positions = rows[POSITION].gather(failed.numbers)
        nowhere = pl.lit(None, pl.String).alias(ATTRIBUTE)
        told = pl.select(positions, pl.lit(UNEVALUABLE).alias(REASON), nowhere, failed.texts().alias(ERROR))
        return rows.filter(~pl.col(POSITION).is_in(positions.implode())), told

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
        small = as_small(rows)
        for buffer in self.intake.buffers:
            slice_ = _slice(rows, buffer, self.options, latest) if self.intake.joining else None
            part = absorbed(small, buffer, self.intake.filters[buffer.id], self.statics, slice_)
            self.parts.setdefault(buffer.id, []).append(part)
        self.waiting.clear()
        self.waiting_rows = 0

    def finished(self) -> IngestedRows:
        """All fates, and what each buffer stores."""
        for buffer in self.intake.buffers:
            if parts := self.parts.get(buffer.id):
                self.done.stored[buffer.id] = _as_one(buffer, parts)
        if self.told:
            assert self.intake.beginnings is not None
            self.done.stored[self.intake.beginnings.buffer.id] = pl.concat(self.told)
        return self.done


def _without(rows: pl.DataFrame, reason: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows without a reason to reject them, and the places of the others."""
    if not reason.count():
        return rows, NONE_REFUSED
    rows = with_places(rows)
    nowhere = pl.lit(None, pl.String).alias(ATTRIBUTE)
    refused = rows.filter(reason.is_not_null()).select(POSITION, reason.drop_nulls().alias(REASON), nowhere)
    return rows.filter(reason.is_null()), refused


def _as_one(buffer: Buffer, parts: Sequence[HeldRows]) -> HeldRows:
    """What a buffer stores of all rows of a batch, from that of some at a time."""
    if len(parts) == 1:
        return parts[0]
    rows = pl.concat([as_frame(part) for part in parts])
    if buffer.partial is None:
        return rows
    from tidegate.runtime.eval.aggregates.partials import merge

    return merge(buffer.partial, rows)  # one partial result per group


def _slice(rows: pl.DataFrame, buffer: Buffer, options: SourceOptions, latest: Mapping[str, int]) -> Slice | None:
    """The slice of time in which a buffer may join these rows: all accepted rows of a piece of input."""
    if buffer.encoding is None or buffer.encoding.time not in options.delay or not rows.height:
        return None
    time = buffer.encoding.time
    return Slice.of(rows[time].min(), latest[time], options.delay[time])  # type: ignore[arg-type]  # int64


def is_judged_in_order(stream: StreamDef, options: SourceOptions) -> bool:
    """Whether rows are judged by those that came before them, so that one task has all of them."""
    return bool(options.key) or stream.begins is not None


def remembered_of(intake: Intake, options: SourceOptions, read: ReadIndexed) -> Remembered:
    """The rows by which new ones are judged, of a stream with a key or with beginnings of intervals."""
    seen = begun = None
    if intake.memory is not None:
        seen = RememberedRows(intake.memory, options.key, intake.remembered, read)
    if (beginnings := intake.beginnings) is not None:
        begun = RememberedRows(beginnings.buffer, (beginnings.begins.id,), intake.begun, read)
    return Remembered(seen, begun)


def _with_place(error: EvaluationError, stream: str, position: int, origin: str) -> EvaluationError:
    """The error of a row's term, saying which row of which source it is."""
    place = f"{stream}, row {position} of {origin}"
    return EvaluationError(error.code, f"{error.message} ({place})", hint=error.hint, because=error.problems[0].because)


def _read(arrival: Arrival, intake: Intake, judged: Schema) -> tuple[Raw, list[tuple[int, ValidatedRows]]]:
    """The rows of an arrival by column, and what became of each, in pieces; `UnreadableFile` where a file has none."""
    source = _columns(arrival, intake, judged)
    try:
        if intake.stream.begins is not None:  # ends are judged by all beginnings that come with them
            return source, [(0, validate(source, judged))]
        return source, validated_pieces(source, judged)
    except pa.ArrowException as error:
        if is_out_of_memory(error):
            raise
        # Bytes that are no values of their column's type, of a type that Arrow can not convert.
        raise UnreadableFile(
            "TG412",
            f"{arrival.origin} cannot be read: {error}",
            hint=SET_ASIDE_HINT,
        ) from error


def _all_columns(origin: str, source: Raw) -> Mapping[str, Column]:
    """What a file has that lacks columns: all of its own, and those of its folders. Of Parquet only those were read
    that are needed.
    """
    with suppress(OSError, pa.ArrowException), pq.ParquetFile(origin) as file:
        table = file.read()
        if table.num_rows == source.count:
            own = dict(zip(table.column_names, table.columns, strict=True))
            return own | {name: column for name, column in source.content.items() if name not in own}
    return source.content or source.columns


def _columns(arrival: Arrival, intake: Intake, judged: Schema) -> Raw:
    """The rows of an arrival by column. A file may lack some: of attributes, its rows are rejected one by one.

    Columns of events that become event runs stay in pieces. Putting them together costs as much as encoding them.
    """
    if arrival.unreadable is not None:
        raise arrival.unreadable
    if isinstance(arrival.rows, Raw):
        return arrival.rows
    in_pieces = all(buffer.encoding is not None for buffer in intake.buffers)
    try:
        source = raw(arrival.rows, judged, absent=judged.names, in_pieces=in_pieces)
    except QueryError as error:
        raise UnreadableFile(error.code, f"{arrival.origin}: {error.message}", hint=error.hint) from error
    # A progress column may be absent: then the file says nothing of progress.
    return replace(source, absent=source.absent & frozenset(intake.stream.schema))
