"""What a run is given from outside, as engines hold it: static tables, instants, files."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import json
import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any, get_args

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import csv

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.errors import QueryError
from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.time import EPOCH, INF, Extended, instant_ticks
from tidegate.algebra.types import MAX_INSTANT, DataType, Kind
from tidegate.runtime.connectors.folder_values import folder_values
from tidegate.runtime.connectors.parquet_files import read_parquet
from tidegate.runtime.connectors.read_files import check_stays
from tidegate.runtime.connectors.sources import FileFormat, Files, Source, source_given
from tidegate.runtime.ingest.ingest import REPAIR_HINT, SET_ASIDE_HINT, Arrival, UnreadableFile
from tidegate.runtime.ingest.raw_rows import Raw, Rows, check_named, raw
from tidegate.runtime.ingest.stored_rows import read_stored
from tidegate.runtime.ingest.validation import validate
from tidegate.runtime.ingest.values import NO_OBJECT, OUT_OF_RANGE, MalformedValue, UnreadableValue, held_value
from tidegate.runtime.state.errors import memory_errors
from tidegate.runtime.state.inputs.positions import SourceFile

#: Digits of an integer in JSON that is read as one; of more, Python refuses some.
_MOST_DIGITS = 40
#: How Arrow numbers the row after the header of a CSV file.
_FIRST_ROW = 2
#: Bytes of CSV that Arrow takes apart at a time: at first, and at most.
_CSV_BLOCK = 1 << 20
_CSV_MOST = (1 << 31) - 1
#: What Arrow says of a value that is no text, whatever the size of a block.
_CONVERSION = "conversion error"
#: Endings of names, and what Arrow calls the compression.
_COMPRESSED = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}
_QUOTED = re.compile(rb'"[^"]*"')
_LINE_END = re.compile(rb"[\r\n]")
#: A last field of a number, an instant or the like that begins with a quote and has none at its end.
_BEGUN = re.compile(rb',"[^",\r\n]*\Z')


_INSTANTS = {
    Kind.TIMESTAMP: "give a datetime or ISO text; of seconds since 1970: datetime.fromtimestamp(seconds, timezone.utc)",
    Kind.DATE: "give a date or ISO text",
    Kind.BIGINT: "give a whole number, as the rows have there",
}


class ProgressTicks(int):
    """An instant in ticks that the library itself gives: a number of a user does not say what it counts."""


def instant_of(value: Any, stream: StreamDef, attribute: str) -> Extended:
    """Ticks of a progress value given by a user, as the attribute's type wants it."""
    return given_instant(value, stream.schema[attribute].type, f"{stream.name}.{attribute}")


def given_instant(value: Any, type_: DataType, where: str) -> Extended:
    """Ticks of an instant given by a user: a datetime, a date or an integer as the type wants, or ±inf."""
    kind = type_.kind
    if isinstance(value, float) and value in (INF, -INF):
        return value
    if kind is Kind.TIMESTAMP and isinstance(value, dt.datetime) and value == value:  # not pandas' NaT
        return instant_ticks(value)
    if kind is Kind.DATE and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return (value - EPOCH.date()).days
    counts = isinstance(value, ProgressTicks) or (
        kind is Kind.BIGINT and isinstance(value, int) and not isinstance(value, bool)
    )
    if counts and abs(value) <= MAX_INSTANT:
        return int(value)
    if isinstance(value, str) and kind is not Kind.BIGINT:
        try:
            return int(held_value(value, type_) or 0)
        except MalformedValue:
            pass
    raise QueryError(
        "TG403",
        f"{where}: {shown(value)} is no instant of type {kind.value}",
        hint=_INSTANTS[kind],
    )


def advances_of(stream: StreamDef, progress: Any, arrival: str | None = None) -> dict[tuple[str, str], Extended]:
    """Progress values given by a user for one stream, in ticks: by attribute, or an instant of the only one.

    `QueryError` TG401 for what no call can move, TG403 for what is no instant.
    """
    if not isinstance(progress, Mapping):
        moved = [attribute for attribute in stream.progress if attribute != arrival] or list(stream.progress)
        if len(moved) != 1:
            raise QueryError(
                "TG403",
                (
                    f"{stream.name}: {shown(progress)} does not say which attribute progresses: "
                    f"{' or '.join(stream.progress)}"
                ),
                hint=f'write advance("{stream.name}", {{"{stream.progress[0]}": {shown(progress)}}})',
            )
        progress = {moved[0]: progress}
    if not progress:
        raise QueryError(
            "TG403",
            f"{stream.name}: {{}} names no attribute that progresses",
            hint=f'write advance("{stream.name}", {{"{next(iter(stream.progress), "time")}": ...}})',
        )
    for attribute in progress:
        if attribute not in stream.progress:
            raise QueryError(
                "TG401",
                f"{stream.name}: {shown(attribute)} is not an attribute on which it progresses",
                hint=f"it progresses on {', '.join(stream.progress)}",
            )
        if attribute == arrival and progress[attribute] != INF:
            raise QueryError(
                "TG401",
                f"{stream.name}.{attribute} is the time of arrival: the clock alone moves it",
                hint=f"leave it out; finish({stream.name!r}) ends the stream",
            )
    return {(stream.name, a): instant_of(value, stream, a) for a, value in progress.items()}


def hold_static(stream: StreamDef, data: Any) -> pl.DataFrame:
    """A static table as it is held; a malformed row is an error, since nobody would see it in a quarantine."""
    if isinstance(data, Source | str | os.PathLike):
        data = source_given(data).data
    if isinstance(data, Files):
        check_stays(stream.name, data)
        format_, files = data.format, data.found()
        read = ((read_file(file.path, format_, stream.schema, data.top), file.path) for file in files)
        return pl.concat([_hold_rows(stream, content.rows, path) for content, path in read] or [_hold_rows(stream, [])])
    table = _hold_rows(stream, data)
    # Spark promises no order, and a table in another order would be another program's.
    return table.sort(table.columns) if type(data).__module__.startswith("pyspark.") else table


def _hold_rows(stream: StreamDef, rows: Rows, file: str = "") -> pl.DataFrame:
    try:
        source = rows if isinstance(rows, Raw) else raw(rows, stream.schema)
        check_named(source, stream.schema)
        checked = validate(source, stream.schema)
    except QueryError as error:
        where = f" ({file})" if file else ""
        raise QueryError(error.code, f"table {stream.name}: {error.message}{where}", hint=error.hint) from error
    if checked.rejected.num_rows:
        first = checked.rejected.to_pylist()[0]
        raise QueryError(
            "TG404",
            f"table {stream.name}: {count_of(checked.rejected.num_rows, 'malformed row')}; row {first['position']}"
            f"{f' of {file}' if file else ''}: {first['attribute']} is {first['value']!r} ({first['reason']})",
            hint="correct the table, or declare the attribute's type so that it fits",
        )
    return pl.DataFrame(checked.accepted)


def static_digest(frame: pl.DataFrame) -> str:
    """A hash of a static table's content: another table makes another program."""
    digest = hashlib.blake2s(digest_size=16)
    for batch in frame.to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks().to_batches():
        digest.update(batch.serialize())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of a file, and the columns that it lacks and its folders have."""

    rows: Rows
    of_folders: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file as it was when it was opened, None where the file system did not say, and its rows, or why it has none.

    It may have been written again since a look at its directory: what is read then is the newer version.
    """

    file: SourceFile | None
    content: FileRows
    error: UnreadableFile | None = None

    @staticmethod
    def of(path: str, format_: FileFormat, schema: Schema, directory: str | None) -> FileRead:
        """Reads a file; errors are those of `read_file` that are not of its content."""
        file = SourceFile.found(path)
        try:
            return FileRead(file, read_file(path, format_, schema, directory))
        except UnreadableFile as error:
            return FileRead(file, FileRows([]), error)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Rows of a stream that were pushed, then those of files: each is read when its turn comes, so in memory by itself.

    `begun` are files that are being read already; they are let go once they have been passed on. `read` are those that
    were, as they were when they were opened. `found` are the files as they were found, where some may have been taken
    in before (`IntakeAhead`). They lie below the `directory`, whose folders may have values in their names.
    """

    pushed: tuple[Arrival, ...]
    paths: tuple[str, ...]
    format: FileFormat
    schema: Schema
    directory: str | None
    begun: dict[str, Future[FileRead]] = field(default_factory=dict)
    read: dict[str, SourceFile] = field(default_factory=dict)
    found: tuple[SourceFile, ...] = ()

    def __iter__(self) -> Iterator[Arrival]:
        yield from self.pushed
        for path in self.paths:
            yield self.of(path)

    def of(self, path: str) -> Arrival:
        """The rows of one of the files."""
        begun = self.begun.pop(path, None)
        done = FileRead.of(path, self.format, self.schema, self.directory) if begun is None else begun.result()
        if done.file is not None:
            self.read[path] = done.file
        return Arrival(path, done.content.rows, done.error, done.content.of_folders)


def shares(arrivals: Iterable[Arrival], count: int) -> list[Iterable[Arrival]]:
    """Up to `count` parts of what arrives, in its order, of about as many bytes each; files are not divided."""
    if not isinstance(arrivals, Arrivals) or count == 1 or not arrivals.paths:
        return [arrivals]
    parts = [replace(arrivals, pushed=(), paths=paths) for paths in neighbouring(arrivals.paths, count)]
    parts[0] = replace(parts[0], pushed=arrivals.pushed)
    return list(parts)


def neighbouring(paths: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """Files in up to `count` parts of about as many bytes each, in their order."""
    sizes = np.array([size_of(path) for path in paths], dtype=np.float64)
    middle = (sizes.cumsum() - sizes / 2) / max(sizes.sum(), 1.0)
    part = np.minimum(count * middle, count - 1).astype(np.int64)
    groups = (tuple(path for path, i in zip(paths, part, strict=True) if i == number) for number in range(count))
    return [group for group in groups if group]


def bytes_of(arrivals: Iterable[Arrival]) -> int:
    """The bytes of the files among what arrives."""
    return sum(map(size_of, arrivals.paths)) if isinstance(arrivals, Arrivals) else 0


def size_of(path: str) -> int:
    """The bytes of a file; none of one that has gone, which its reader says (TG412)."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def read_file(path: str, format_: FileFormat, schema: Schema, directory: str | None = None) -> FileRows:
    """The needed columns of a Parquet, CSV or JSON-lines file as they stand there; values are judged row by row later.

    A column that the file lacks has the value that a folder between the directory and the file has for it, if one does.

    A line that cannot be taken apart is a row of `UnreadableValue` values, so it is rejected and counted like any
    other. `UnreadableFile` TG412 where the content is at fault, `QueryError` TG412 where the file system refuses.
    """
    wanted = list(schema.names)
    given = {} if directory is None else folder_values(path, directory)
    folders = {name: value for name, value in given.items() if name in schema}
    try:
        with memory_errors(f"reading {path} as {format_}"):
            match format_:
                case "parquet":
                    table, of_folders = _with_folders(read_parquet(path, wanted), folders)
                    return FileRows(read_stored(table), of_folders)
                case "csv":
                    return _read_csv(path, wanted, folders)
                case "json":
                    return _read_json(path, wanted, folders)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        # Arrow says of damaged files, too, that they are an OSError; the file system gives a number.
        refused = isinstance(error, OSError) and error.errno is not None
        raise (QueryError if refused else UnreadableFile)(
            "TG412",
            f"{path} cannot be read as {format_}: {error}",
            hint=REPAIR_HINT if refused else f"{_other_reader(path, format_)}{SET_ASIDE_HINT}",
        ) from error


def _other_reader(path: str, format_: FileFormat) -> str:
    """What a file is read with by its name, if that is not what read it."""
    named = path.rpartition(".")[2].lower()
    others = [reader for reader in get_args(FileFormat) if reader == named != format_]
    return f"by its name it is read with tg.{others[0]}(...); else " if others else ""


def _with_folders(table: pa.Table, folders: Mapping[str, str | None]) -> tuple[pa.Table, frozenset[str]]:
    """A table with the values of folders in the columns that it lacks, and these columns."""
    lacking = {name: value for name, value in folders.items() if name not in table.column_names}
    for name, value in lacking.items():
        table = table.append_column(name, pa.repeat(pa.scalar(value, pa.large_string()), table.num_rows))
    return table, frozenset(lacking)


def _read_csv(path: str, wanted: Sequence[str], folders: Mapping[str, str | None]) -> FileRows:
    """All values as text. Lines with too few or too many fields stand where they are."""
    only = _only_line(path)
    if only == b"":
        return FileRows([])
    broken: list[csv.InvalidRow] = []

    def skip(row: csv.InvalidRow) -> str:
        broken.append(row)
        return "skip"

    def read(names: Sequence[str]) -> pa.Table:
        # Text, so that a number is judged by its attribute's type and not by what a column looks like.
        types = dict.fromkeys(names, pa.string())
        block = _CSV_BLOCK
        while True:
            broken.clear()
            with _content(path) if only is None else pa.BufferReader(only + b"\n") as file:
                pieces = _WholeLineEnds(file)
                try:
                    return csv.read_csv(
                        pieces,
                        # Several threads do not know which row a broken line is.
                        read_options=csv.ReadOptions(use_threads=False, block_size=block),
                        parse_options=csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
                        convert_options=csv.ConvertOptions(
                            column_types=types, strings_can_be_null=True, null_values=[""]
                        ),
                    )
                except pa.ArrowInvalid as error:
                    # Perhaps only for a line, quoted line ends in it, that no block of this size holds.
                    if pieces.read_bytes < block - 1 or block == _CSV_MOST or _CONVERSION in str(error):
                        raise
            block = min(16 * block, _CSV_MOST)

    table = read(wanted)
    named = [name for name in table.column_names if name in wanted]
    twice = len(set(named)) < len(named)  # which of two is meant is for the user to say
    # The quarantine has all columns of a file that lacks some, as they are written.
    names = named if twice or {*wanted} <= {*named, *folders} else table.column_names
    if names != named:
        table = read(names)
    places = {row.number - _FIRST_ROW: _broken_line(row) for row in broken}
    total = table.num_rows + len(broken)
    if total - 1 not in places:  # else the file ends with a broken line, which is rejected as such
        _check_closed(path, table)
    table, of_folders = _with_folders(table, folders)
    if twice or not broken:
        return FileRows(table, of_folders)
    columns = dict.fromkeys([*names, *folders])
    rows = {name: _with_broken(table.column(name).to_pylist(), places, total) for name in columns}
    return FileRows(rows, of_folders)


class _WholeLineEnds:
    """A file of which no piece ends between the two bytes of a line end: Arrow leaves out a line feed that begins a
    piece after one that ends with a carriage return, also within quotes.
    """

    closed = False

    def __init__(self, file: pa.NativeFile) -> None:
        self.file = file
        self.held = b""
        self.read_bytes = 0

    def read(self, size: int) -> bytes:
        """So many bytes, or one less if a carriage return would be the last of them."""
        more = self.file.read(max(size - len(self.held), 1))
        self.read_bytes += len(more)
        piece = self.held + more
        self.held = b"\r" if more and piece.endswith(b"\r") else b""
        return piece[: len(piece) - len(self.held)] or (self.read(size) if more else b"")


def _content(path: str) -> pa.NativeFile:
    """A file, or what is in it where its name ends as those of compressed files do."""
    return pa.input_stream(path, compression=_COMPRESSED.get(path.rpartition(".")[2].lower()))


def _only_line(path: str) -> bytes | None:
    """The one line of a file that has no more, perhaps without its end: Arrow calls such a header an empty file."""
    with _content(path) as file:
        begins: bytes = file.read(_CSV_BLOCK)
    text = begins.removeprefix(BOM_UTF8).strip(b"\r\n")
    return None if len(begins) == _CSV_BLOCK or _LINE_END.search(_QUOTED.sub(b"", text)) else text


def _check_closed(path: str, table: pa.Table) -> None:
    """`ArrowInvalid` for a file that ends within quotes: the reader takes all that follows them for one value, and
    says nothing.

    The field in which it ends is the last one, so the file ends with a comma, a quote and the text of that field; with
    a line end instead of the comma where there is one column.
    """
    if not table.num_rows:
        return
    last = table.column(table.num_columns - 1)[-1]
    if not last.is_valid or isinstance(last, pa.StringScalar | pa.BinaryScalar):
        value = last.as_py()  # of no instant: Python has none with nanoseconds
        text = value.encode() if isinstance(value, str) else value or b""
        tail = b'"' + text.replace(b'"', b'""')
        ending = _ending(path, len(tail) + 1)
        is_open = ending[1:] == tail and ending[:1] in ((b",",) if table.num_columns > 1 else (b"\n", b"\r"))
    else:  # of a column that nobody reads, and whose values have neither quotes nor commas in them
        is_open = _BEGUN.search(_ending(path, _CSV_BLOCK)) is not None
    if is_open:
        raise pa.ArrowInvalid("its last field begins with a quote that none closes, so it may be cut off")


def _ending(path: str, size: int) -> bytes:
    """The last bytes of a file, of a compressed one of its content."""
    ending = b""
    with _content(path) as file:
        if file.seekable():
            file.seek(max(file.size() - size, 0))
        while piece := file.read(max(size, _CSV_BLOCK)):
            ending = (ending + piece)[-size:]
    return ending


def _broken_line(row: csv.InvalidRow) -> UnreadableValue:
    return UnreadableValue(row.text, error=f"{count_of(row.actual_columns, 'field')} instead of {row.expected_columns}")


def _with_broken(values: Sequence[object], broken: Mapping[int, UnreadableValue], total: int) -> list[object]:
    rest = iter(values)
    return [broken[place] if place in broken else next(rest) for place in range(total)]


def _read_json(path: str, wanted: Sequence[str], folders: Mapping[str, str | None]) -> FileRows:
    """One object a line; numbers exactly as written, a missing key is NULL. The file lacks what no line has."""
    rows: list[dict[str, object]] = []
    lacking = dict(folders)
    with io.TextIOWrapper(_content(path), encoding="utf-8-sig") as lines:
        for line in lines:
            if line.strip():
                row = _json_row(line)
                if isinstance(row, dict):
                    rows.append({name: row.get(name) for name in wanted})
                    lacking = {name: value for name, value in lacking.items() if name not in row} if lacking else {}
                else:
                    rows.append(dict.fromkeys(wanted, UnreadableValue(line.strip(), error=NO_OBJECT)))
    for row in rows if lacking else []:
        row |= {name: value for name, value in lacking.items() if row[name] is None}  # a broken line has its text there
    return FileRows(rows, frozenset(lacking))


def _json_row(line: str) -> object:
    """What a line of JSON says; None where it is none, or nested a thousand levels deep."""
    try:
        return json.loads(line, parse_float=Decimal)
    except RecursionError:
        return None
    except (ValueError, InvalidOperation):
        # Perhaps only for a number that Python does not read: of more than 4,300 digits, or with an exponent of 20.
        try:
            return json.loads(line, parse_float=_json_number, parse_int=_json_integer)
        except (ValueError, RecursionError):
            return None


def _json_number(text: str) -> object:
    """A number with a point or an exponent, exactly; one that a Decimal cannot hold is one value to be rejected."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return UnreadableValue(text, OUT_OF_RANGE)


def _json_integer(text: str) -> object:
    return int(text) if len(text) <= _MOST_DIGITS else Decimal(text)
