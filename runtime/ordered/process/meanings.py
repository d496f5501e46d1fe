"""Whether a step yields the rows of the operator's own `meaning`, as the test kit asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.evaluation import comparable
from tidegate.algebra.ordered.process import Operator, Process, Reach
from tidegate.runtime.eval.aggregates.partials import same_zero
from tidegate.runtime.ordered.process.conforming import failed, row_text, wrong


def has_meaning(operator: Operator) -> bool:
    """Whether an operator says what its rows are."""
    return type(operator).meaning is not Operator.meaning


def require_meaning(node: Process, events: pl.DataFrame, reach: Reach, result: pl.DataFrame) -> None:
    """`EvaluationError` TG305 where a step yields other rows than `meaning` has in its span, given all events so far.

    No event to come changes a row that is complete, so every step can be compared; not one that closes what is open at
    an instant of which `meaning` is not told.
    """
    if reach.close_at is not None:
        return
    actual, wanted = Counter(result.iter_rows()), Counter(_meant(node, events, reach))
    yielded, meant = (Counter(map(_comparable, rows.elements())) for rows in (actual, wanted))
    if yielded == meant:
        return
    row, template = next(
        (row, template)
        for rows, others, template in (
            (wanted, yielded - (yielded - meant), "its meaning has the row {}, and step does not yield it"),
            (actual, meant - (meant - yielded), "step yields the row {}, and its meaning does not have it"),
        )
        for row in rows
        if rows[row] > others[_comparable(row)]
    )
    types = {attribute.name: attribute.type for attribute in node.schema.attributes}
    text = row_text(dict(zip(types, row, strict=True)), types)
    raise wrong(type(node.operator).__name__, template.format(text), hint="correct its step, or its meaning")


def _meant(node: Process, events: pl.DataFrame, reach: Reach) -> Iterator[tuple[Any, ...]]:
    """The rows that `meaning` has of these events, complete in the span of a step."""
    what, names = type(node.operator).__name__, node.result.schema.names
    for key, members in _partitions(node, events):
        try:
            rows: list[Any] = list(node.operator.meaning(members))
        except Exception as error:
            raise failed(what, "meaning", type(node.operator).meaning, error) from error
        for row in rows:
            if not isinstance(row, Mapping) or {*row} != {*names}:
                written = ", ".join(f"{name!r}: ..." for name in names)
                raise wrong(
                    what,
                    f"its result has {', '.join(names)}, and meaning has the row {shown(row)}",
                    hint=f"a row is {{{written}}}",
                )
            at = row[node.completed_by]
            if (reach.after is None or at > reach.after) and (reach.until is None or at <= reach.until):
                yield (*key, *(row[name] for name in names))


def _partitions(node: Process, events: pl.DataFrame) -> Iterator[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    """The events of each partition in their order, and its keys."""
    order = [node.time, *(() if node.tie is None else (node.tie,))]
    doubles = [name for name in node.keys if events.schema[name] == pl.Float64()]
    ordered = events.with_columns(same_zero(pl.col(name)).alias(name) for name in doubles).sort(order)
    for group in ordered.partition_by(node.keys, maintain_order=True) if node.keys else [ordered]:
        yield group.select(node.keys).row(0) if node.keys else (), group.to_dicts()


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(comparable, row))
