"""Events as every family reads them: by partition, in order of time and tie-break."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cmp_to_key

from tidegate.algebra.evaluation import EvaluationError, key_of
from tidegate.algebra.functions.aggregates import Aggregate, Form
from tidegate.algebra.nodes import Aggregation, Reading, Row
from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Value
from tidegate.algebra.typed.kernels import compare
from tidegate.algebra.types import DataType, Kind


def partitions(reading: Reading, events: Sequence[Row]) -> list[tuple[Row, list[Row]]]:
    """Events by their keys, NULL equal to NULL."""
    places = [reading.input.schema.names.index(key) for key in reading.keys]
    by_key: dict[tuple[object, ...], tuple[Row, list[Row]]] = {}
    for event in events:
        key = tuple(event[place] for place in places)
        by_key.setdefault(tuple(map(key_of, key)), (key, []))[1].append(event)
    return list(by_key.values())


def in_order(reading: Reading, events: list[Row]) -> list[Row]:
    """Events by time, then by the tie-break, NULL first; `EvaluationError` TG304 where these leave the order open."""
    schema = reading.input.schema
    places = [schema.names.index(name) for name in (reading.time, reading.tie) if name is not None]
    ranked = cmp_to_key(_compare)
    ordered = sorted(events, key=lambda event: tuple(ranked(event[place]) for place in places))
    for event, following in itertools.pairwise(ordered):
        if all(key_of(event[place]) == key_of(following[place]) for place in places):
            raise tied(event[places[0]], schema.attributes[places[0]].type)
    return ordered


def tied(at: Value, type_: DataType) -> EvaluationError:
    """TG304 of events at an instant."""
    return EvaluationError(
        "TG304",
        f"two events of one partition at {value_text(at, type_)}: nothing says which comes first",
        hint='name an attribute that orders them: tie="sequence" in partition_by(...), over(...) or sequences(...)',
    )


def first_or_last(aggregate: Aggregate, rows: Iterable[Row], schema: Schema, aggregation: Aggregation) -> Value:
    """A first or last value in the order of rows: that of the first or last of them that has one."""
    alone = (aggregation(aggregate, [row], schema) for row in rows)
    known = [value for value in alone if value is not None]
    return None if not known else known[0] if aggregate.entry.form is Form.EARLIEST else known[-1]


def key_text(schema: Schema, keys: Sequence[str], key: Row) -> str:
    """The key of a partition, as people read it."""
    return ", ".join(f"{name} = {value_text(value, schema[name].type)}" for name, value in zip(keys, key, strict=True))


def too_far(
    many: int, most: int, what: str, at: Value, type_: DataType, key: str, *, in_all: int | None = None
) -> EvaluationError:
    """TG306 of an instant that is so far after the one before that what lies between is more than memory holds: `many`,
    where `most` are allowed. `key` is that of its partition, as people read it. Where all rows together have too many,
    `in_all`, it is the one that has most.
    """
    hint = "leave out rows that are too far ahead or too long ago: in the input, or by a condition before this operator"
    if in_all is not None:
        hint += "; or let a batch read less (per_batch=)"
    if type_.kind is not Kind.BIGINT:
        hint += (
            "; skew_guard= of a source sets aside rows that are ahead of the clock, and age_guard= those far behind it "
            "(where an earlier batch has accepted such a row, begin a new checkpoint)"
        )
    where = f"{what} {value_text(at, type_)}{f' where {key}' if key else ''}"
    if in_all is None:
        text = f"{many:,} {where}, more than {most:,}: this instant is too far from the one before"
    else:
        text = f"{many:,} {where}, with those of other rows {in_all:,}, more than {most:,}: instants are too far apart"
    return EvaluationError("TG306", text, hint=hint)


def _compare(left: Value, right: Value) -> int:
    """Below 0 where one value comes before the other, 0 where both are one; NULL comes before all others."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    return compare(left, right)


def instant_of(value: Value) -> int:
    assert isinstance(value, int)
    return value
