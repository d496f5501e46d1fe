"""Rejected values and rows as text, for the quarantine and for errors: of whatever was given, so nothing here fails."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import polars as pl
import pyarrow as pa

from tidegate.algebra.time import format_instant
from tidegate.runtime.arrow_arrays import array_of_numbers
from tidegate.runtime.ingest.values import UnreadableValue

#: A column of Arrow, or of values as they were given.
Values: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[object]
#: Rows that are Python values at a time.
_TOGETHER: Final = 256
#: A key that is a tuple, a list that contains itself, an integer of more digits than Python writes.
_NO_JSON = (TypeError, ValueError, RecursionError)


def value_text(value: Any) -> str | None:
    """A malformed value as text, at most 200 characters of it."""
    value = _plain(value)
    return None if value is None else _utf8(_text(value)[:200])


def row_texts(columns: Mapping[str, Values], positions: pl.Series) -> Iterator[tuple[str, UnreadableValue | None]]:
    """Rows of some columns as JSON, in the order of their positions; values that JSON does not know as their text.

    A line that is no row is its text as JSON, and comes with what it is.
    """
    for first in range(0, len(positions), _TOGETHER):
        some = positions[first : first + _TOGETHER]
        values = [_plain_values(column, some) for column in columns.values()]
        for row in zip(*values, strict=True) if values else [()] * len(some):
            line = row[0] if row else None
            if isinstance(line, UnreadableValue) and line.error is not None:
                yield _json(line.text), line
            else:
                yield _row_text(dict(zip(columns, row, strict=True))), None


def _row_text(values: Mapping[str, object]) -> str:
    try:
        return _json(values)
    except _NO_JSON:
        return _json({name: _known(value) for name, value in values.items()})


def _plain_values(column: Values, positions: pl.Series) -> list[Any]:
    """Values as Python has them; where one has no such, one by one."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        try:
            values: list[Any] = column.take(array_of_numbers(positions.to_numpy())).to_pylist()
        except (ValueError, OverflowError, KeyError, pa.ArrowException):
            pass
        else:
            return values
    return [_plain(column[position]) for position in positions]


def file_text(path: str, clock: int) -> str:
    """A file that was set aside as JSON: its size, its time, and the clock (microseconds) of the batch that did."""
    content: dict[str, object] = {"set_aside": format_instant(clock)}
    try:
        status = os.stat(path)
    except OSError:
        return _json(content)
    return _json({"bytes": status.st_size, "modified": format_instant(status.st_mtime_ns // 1000), **content})


def _plain(value: Any) -> Any:
    """A value as Python has it; an instant that no datetime can hold, or of a zone that nobody knows, as its count."""
    if not isinstance(value, pa.Scalar):
        return value
    try:
        return value.as_py()
    except (ValueError, OverflowError, KeyError):
        pass
    try:
        return value.cast(pa.int64()).as_py()
    except pa.ArrowException:
        return f"a value of type {value.type}"


def _json(value: object) -> str:
    return _utf8(json.dumps(value, default=_text, ensure_ascii=False))


def _known(value: object) -> object:
    """The value itself if it has a JSON, else its text."""
    try:
        _json(value)
    except _NO_JSON:
        return _text(value)
    return value


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a value's own method raises anything; Python writes no very long integers
        return f"a value of type {type(value).__name__}"


def _utf8(text: str) -> str:
    """Half a surrogate pair has no UTF-8; as an escape it is JSON still."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
