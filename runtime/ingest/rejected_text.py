"""Rejected values and rows as text, for the quarantine and for errors: of whatever was given, so nothing here fails."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidegate.algebra.time import format_instant
from tidegate.runtime.ingest.values import UnreadableValue

#: A key that is a tuple, a list that contains itself, an integer of more digits than Python writes.
_NO_JSON = (TypeError, ValueError, RecursionError)


def value_text(value: Any) -> str | None:
    """A malformed value as text, at most 200 characters of it."""
    value = _plain(value)
    return None if value is None else _utf8(_text(value)[:200])


def row_text(columns: Mapping[str, pa.Array | pa.ChunkedArray | Sequence[object]], position: int) -> str:
    """One row of some columns as JSON; values that JSON does not know as their text. A line that is no row is text."""
    if (line := broken_line(columns, position)) is not None:
        return _json(line.text)
    values = {name: _plain(column[position]) for name, column in columns.items()}
    try:
        return _json(values)
    except _NO_JSON:
        return _json({name: _known(value) for name, value in values.items()})


def broken_line(
    columns: Mapping[str, pa.Array | pa.ChunkedArray | Sequence[object]], position: int
) -> UnreadableValue | None:
    """The line that stands in the place of a row, if it could not be taken apart."""
    column = next(iter(columns.values()), None)
    value = None if column is None or isinstance(column, pa.Array | pa.ChunkedArray) else column[position]
    return value if isinstance(value, UnreadableValue) and value.error is not None else None


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
