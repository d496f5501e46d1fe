"""Rows as they arrive, of whatever form, by attribute: nothing is judged yet but whether they are rows of a stream at
all.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import Schema
from tidegate.runtime.connectors.sources import Source, reader_of
from tidegate.runtime.eval.columns import one_array
from tidegate.runtime.ingest.values import UnreadableValue
from tidegate.runtime.state.errors import memory_errors

#: Bytes inside a character of several, 0x80 to 0xBF, are less than this.
_CONTINUED = -64
_MOST_BYTES = 2**31 - 1
#: Rows of several pushes are put together up to so many bytes.
_TOGETHER_BYTES = 64 << 20

#: What a user may pass as rows: an Arrow table or batch, a pandas, Polars or batch Spark frame, rows as mappings or
#: tuples.
Rows = Any

Column: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[object]"


@dataclass(frozen=True, slots=True)
class Raw:
    """Columns as they arrived, by attribute: an Arrow array (in pieces if so asked for), or Python objects where the
    values have no common type."""

    columns: Mapping[str, Column]
    count: int
    absent: frozenset[str] = frozenset()
    """Attributes that the input has no column for; `columns` has NULLs in their place."""
    content: Mapping[str, Column] = field(default_factory=dict)
    """All columns of an input that lacks some, under its own names."""
    unnamed: frozenset[str] = frozenset()
    """Attributes that no row names, of rows that are all mappings; `columns` has NULLs in their place."""

    def piece(self, first: int, most: int) -> Raw:
        """Up to so many of the rows, from one on; all of them as they are."""
        if not first and self.count <= most:
            return self
        count = min(most, self.count - first)
        columns = {name: _part_of(column, first, count) for name, column in self.columns.items()}
        return Raw(columns, count, self.absent)


@dataclass(frozen=True, slots=True)
class CheckedColumn(Sequence[object]):
    """A column whose malformed values were found before it was stored: `values` has NULLs in their place."""

    values: pa.Array
    malformed: Mapping[int, UnreadableValue]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, position: Any) -> Any:
        value = self.values[position]
        return self.malformed.get(position, value if value.is_valid else None)


def _part_of(column: Column, first: int, count: int) -> Column:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        part: pa.Array | pa.ChunkedArray = column.slice(first, count)
        return part
    if not isinstance(column, CheckedColumn):
        return column[first : first + count]
    malformed = {n: column.malformed[first + n] for n in range(count) if first + n in column.malformed}
    return CheckedColumn(column.values.slice(first, count), malformed)


def raw(data: Rows, schema: Schema, *, absent: Collection[str] = (), in_pieces: bool = False) -> Raw:
    """Input of any accepted form, by attribute. Columns beyond the schema are ignored; a missing one is an error of the
    call unless it may be `absent`, a key missing in a single row a NULL. In pandas NaN means missing.

    With `in_pieces`, numbers and truth values of an Arrow table are what its columns are, not put together.
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if isinstance(data, pa.Table):
        return _raw_table(data, schema, absent, in_pieces)
    module = type(data).__module__.partition(".")[0]
    if module == "pyspark":
        if data.isStreaming:
            raise QueryError(
                "TG311",
                "a streaming DataFrame is no table of rows: it has no end",
                hint="read it by program.start(spark, sources=...), as the source of a stream",
            )
        missing_columns(data.columns, schema, absent)
        places = [i for i, name in enumerate(data.columns) if name in schema]
        plain = data.toDF(*(f"c{i}" for i in range(len(data.columns)))).select(*(f"c{i}" for i in places))
        return _raw_table(plain.toArrow().rename_columns([data.columns[i] for i in places]), schema, absent)
    if module == "polars":
        data = data.collect() if hasattr(data, "collect") else data
        if hasattr(data, "columns"):  # a series has none: what it exports is judged below
            return _raw_table(data.to_arrow(), schema, absent)
    if module == "pandas" and hasattr(data, "columns"):
        missing = missing_columns(list(data.columns), schema, absent)
        columns = {name: _from_pandas(data[name]) for name in schema if name not in missing}
        return _with_absent(columns, len(data), missing)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _raw_table(_from_capsule(data), schema, absent)
    if isinstance(data, Mapping):
        return _raw_columns(data, schema, absent)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _raw_rows(list(data), schema)
    raise _no_rows(data)


def put_together(parts: Sequence[Raw]) -> list[Raw]:
    """The same rows in the same order, in fewer parts: neighbours whose columns are of one kind each are one part.

    Large ones stay by themselves: there is little to gain, and a column of text has less than 2 GiB.
    """
    together: list[Raw] = []
    for kinds, some in itertools.groupby(parts, _kinds):
        if kinds is None:
            together += some
            continue
        waiting: list[Raw] = []
        size = 0
        for part in some:
            if waiting and size + _bytes_of(part) > _TOGETHER_BYTES:
                together.append(_one_part(waiting))
                waiting, size = [], 0
            waiting.append(part)
            size += _bytes_of(part)
        together.append(_one_part(waiting))
    return together


def _one_part(parts: Sequence[Raw]) -> Raw:
    if len(parts) == 1:
        return parts[0]
    columns = {name: _end_to_end([part.columns[name] for part in parts]) for name in parts[0].columns}
    return Raw(columns, sum(part.count for part in parts))


def _bytes_of(part: Raw) -> int:
    """The size of the Arrow columns of some rows."""
    return sum(column.nbytes for column in part.columns.values() if isinstance(column, pa.Array))


def _kinds(part: Raw) -> tuple[object, ...] | None:
    """What the columns of some rows are; None where the rows stay by themselves."""
    if part.absent or part.content:
        return None
    kinds = tuple(column.type if isinstance(column, pa.Array) else type(column) for column in part.columns.values())
    return kinds if all(kind is list or isinstance(kind, pa.DataType) for kind in kinds) else None


def _end_to_end(columns: Sequence[Any]) -> Column:
    if isinstance(columns[0], list):
        return list(itertools.chain.from_iterable(columns))
    joined: pa.Array = pa.concat_arrays(columns)
    return joined


def _raw_columns(data: Mapping[str, Any], schema: Schema, absent: Collection[str]) -> Raw:
    """A mapping from names to columns."""
    missing = missing_columns(list(data), schema, absent)
    single = next((name for name in schema if name not in missing and _is_single(data[name])), None)
    if single is not None:
        raise QueryError(
            "TG311",
            f"{shown(single)} is a value, not a column: {shown(data[single])}",
            hint="one row is [{...}]; a mapping by itself has a column of values per name",
        )
    lists = {name: list(data[name]) for name in schema if name not in missing}
    if len({len(values) for values in lists.values()}) > 1:
        raise QueryError("TG311", "columns have different lengths", hint="give every column one value per row")
    if not missing:
        return Raw(lists, len(next(iter(lists.values()), [])))
    content = {name: list(values) for name, values in data.items()}
    count = len(next(iter(content.values()), []))
    return replace(_with_absent(lists, count, missing), content=content)


def _no_rows(data: object) -> QueryError:
    """The error of what is no table of rows."""
    if isinstance(data, str | os.PathLike):
        return QueryError(
            "TG311",
            f"{shown(os.fspath(data))} is a path, and no table of rows",
            hint=f'a source reads files: sources={{"Name": {reader_of(data)}}}',
        )
    if isinstance(data, Source):
        return QueryError(
            "TG311",
            "a source is no table of rows",
            hint='a session takes sources as it is opened: sources={"Name": ...}',
        )
    return QueryError(
        "TG311",
        f"{type(data).__name__} is no table of rows",
        hint="pass an Arrow table, any frame that exports one, or rows as mappings or tuples",
    )


def _is_single(values: object) -> bool:
    """Whether this is a value rather than several."""
    return isinstance(values, str | bytes) or not isinstance(values, Iterable)


def _from_capsule(data: Any) -> pa.Table:
    """The rows of any object that exports Arrow data, as a stream or as one batch of structs."""
    try:
        with memory_errors(f"taking rows from {type(data).__name__}"):
            if hasattr(data, "__arrow_c_stream__"):
                return pa.RecordBatchReader.from_stream(data).read_all()
            return pa.Table.from_batches([pa.record_batch(data)])
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise QueryError(
            "TG311",
            f"{type(data).__name__} exports no table of rows: {error}",
            hint="its Arrow data must be records, one field per attribute",
        ) from error


def _raw_table(table: pa.Table, schema: Schema, absent: Collection[str], in_pieces: bool = False) -> Raw:
    missing = missing_columns(table.column_names, schema, absent)
    columns = {name: table.column(name) for name in schema if name not in missing}
    readable = {name: c if in_pieces and _may_be_pieces(c) else _readable(one_array(c)) for name, c in columns.items()}
    content = dict(zip(table.column_names, table.columns, strict=True)) if missing else {}
    return replace(_with_absent(readable, table.num_rows, missing), content=content)


def _may_be_pieces(column: pa.ChunkedArray) -> bool:
    t = pa.types
    plain = t.is_boolean(column.type) or t.is_integer(column.type) or t.is_float64(column.type)
    return bool(plain and column.num_chunks > 1)


def _readable(column: pa.Array) -> pa.Array | CheckedColumn:
    """A column, with values of text that are not UTF-8 set apart: whoever reads one as text fails."""
    t = pa.types
    if t.is_string(column.type) or t.is_large_string(column.type):
        if _is_utf8(column):
            return column
    elif not t.is_string_view(column.type):
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return _decoded(column.cast(pa.large_binary()).to_pylist())
    return column


def _is_utf8(column: pa.Array) -> bool:
    """Whether all text is UTF-8, by its bytes taken together, a third of the time of one value after the other.

    They are if no byte is beyond ASCII, or if they are as one value and no value begins inside a character. Not all
    where this is false: behind a NULL may lie anything.
    """
    _, offsets, data = column.buffers()
    if data is None or not len(column):
        return True
    width = np.int64 if pa.types.is_large_string(column.type) else np.int32
    starts = np.frombuffer(offsets, width, len(column) + 1, column.offset * np.dtype(width).itemsize)
    first, last = int(starts[0]), int(starts[-1])
    text = np.frombuffer(data, np.int8)[first:last]
    if not len(text) or text.min() >= 0:
        return True
    if len(text) > _MOST_BYTES or (text[starts[: np.searchsorted(starts, last)] - first] < _CONTINUED).any():
        return False
    ends = pa.py_buffer(np.array([first, last]))
    whole = pl.Series(pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, data]))
    try:
        return not whole.cast(pl.String).has_nulls()
    except pl.exceptions.PolarsError:
        return False


def _decoded(values: Sequence[bytes | None]) -> CheckedColumn:
    texts: list[str | None] = []
    malformed: dict[int, UnreadableValue] = {}
    for position, value in enumerate(values):
        try:
            texts.append(None if value is None else value.decode("utf-8"))
        except UnicodeDecodeError:
            texts.append(None)
            malformed[position] = UnreadableValue((value or b"").decode("utf-8", "backslashreplace"))
    return CheckedColumn(pa.array(texts, pa.large_string()), malformed)


def _with_absent(columns: Mapping[str, Column], count: int, missing: frozenset[str]) -> Raw:
    return Raw({**columns, **{name: pa.nulls(count) for name in sorted(missing)}}, count, missing)


def holds_containers(values: Iterable[object]) -> bool:
    """Whether some value is a list, a dictionary or the like: Arrow goes down into them without end."""
    return any(issubclass(type_, Iterable) and not issubclass(type_, str | bytes) for type_ in set(map(type, values)))


def _from_pandas(series: Any) -> pa.Array | Sequence[object]:
    try:
        if series.dtype == object and holds_containers(series):
            raise pa.ArrowTypeError("lists or the like")
        return _readable(one_array(pa.Array.from_pandas(series)))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        missing = series.isna()
        return [None if gone else value for value, gone in zip(series, missing, strict=True)]


def _raw_rows(rows: list[Any], schema: Schema) -> Raw:
    names = schema.names
    columns: dict[str, list[object]] = {name: [] for name in names}
    for position, row in enumerate(rows):
        if isinstance(row, Mapping):
            for name in names:
                columns[name].append(row.get(name))
        elif isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) == len(names):
            for name, value in zip(names, row, strict=True):
                columns[name].append(value)
        else:
            raise QueryError(
                "TG311",
                f"row {position} is no row of ({', '.join(names)}): {shown(row)}",
                hint="pass a mapping, or a tuple in this order",
            )
    return Raw(columns, len(rows), unnamed=_unnamed(rows, columns))


def _unnamed(rows: list[Any], columns: Mapping[str, list[object]]) -> frozenset[str]:
    """The attributes that no row names; `QueryError` TG312 for one while a key has nearly its name."""
    empty = [name for name, values in columns.items() if all(value is None for value in values)]
    if not rows or not empty:
        return frozenset()
    keys = {key for row in rows if isinstance(row, Mapping) for key in row if isinstance(key, str)}
    for name in empty:
        meant = nearest(name, keys - {*columns}) if name not in keys else []
        if meant:
            raise QueryError(
                "TG312", f"no row has {name!r}", hint=f"is it what they call {' or '.join(map(repr, meant))}?"
            )
    return frozenset(empty) - keys if all(isinstance(row, Mapping) for row in rows) else frozenset()


def check_named(rows: Raw, schema: Schema) -> None:
    """`QueryError` TG312 for an attribute that no row names, of rows that are all there will be."""
    if lacking := [name for name in schema if name in rows.unnamed]:
        raise QueryError(
            "TG312",
            f"no row has {', '.join(map(repr, lacking))}",
            hint="name it in one row at least, with None where it has no value",
        )


def raw_of(name: str, rows: Rows, schema: Schema, whole: Schema | None = None) -> Raw:
    """Rows for an input, the `whole` of a stream of that schema if given; what is wrong with them says for which."""
    try:
        raw_rows = raw(rows, schema)
        if whole is not None:
            check_named(raw_rows, whole)
        return raw_rows
    except QueryError as error:
        named = [replace(problem, message=f"{name}: {problem.message}") for problem in error.problems]
        raise QueryError.of(named) from error.__cause__


def missing_columns(columns: list[Any], schema: Schema, absent: Collection[str] = ()) -> frozenset[str]:
    """The attributes without a column; `QueryError` TG312 for one that may not be absent, or that is there twice."""
    missing = frozenset(name for name in schema if name not in columns)
    if refused := [name for name in schema if name in missing and name not in absent]:
        raise QueryError(
            "TG312",
            f"input lacks {', '.join(map(repr, refused))}",
            hint=(
                "its columns are "
                f"{', '.join(name if isinstance(name, str) else shown(name) for name in columns) or 'none'}"
            ),
        )
    twice = [name for name in schema if columns.count(name) > 1]
    if twice:
        raise QueryError("TG312", f"input has {', '.join(map(repr, twice))} more than once")
    return missing
