"""The rows that a buffer stores: accepted rows, after its chain, the admission filter, and partial grouping or
encoding.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from tidegate.algebra.terms import TRUE, Term
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.filters import holds_throughout, kept
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.eval.small.increment import small_absorbed
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.slices import Slice
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.rows import Rows as HeldRows
from tidegate.runtime.rows import SmallRows, Unsupported


def as_small(rows: pl.DataFrame) -> HeldRows:
    """The rows as arrays, unless they are many or contain NULL or NaN."""
    try:
        return SmallRows.of(rows)
    except Unsupported:
        return rows


def absorbed(
    rows: HeldRows, buffer: Buffer, admission: Term, statics: Mapping[str, pl.DataFrame], slice_: Slice | None = None
) -> HeldRows:
    """`absorb`, which NumPy does where the rows are arrays."""
    if isinstance(rows, SmallRows):
        try:
            return small_absorbed(rows, buffer, admission, slice_)
        except Unsupported:
            rows = rows.frame()
    return absorb(rows, buffer, admission, statics, slice_)


def absorb(
    rows: pl.DataFrame,
    buffer: Buffer,
    admission: Term,
    statics: Mapping[str, pl.DataFrame],
    slice_: Slice | None = None,
) -> pl.DataFrame:
    """The rows that a buffer stores: the chain is applied, and the admission filter drops rows that nobody needs.

    A buffer of event runs joins the events in the slice into runs.
    """
    names = buffer.stream.schema.names
    leaves = {buffer.scan: only(rows, names)}
    leaves |= {index: statics[name] for index, name in buffer.statics}
    stored = evaluate(buffer.chain, leaves)
    if admission != TRUE and not holds_throughout(admission, stored):
        stored = kept(stored, compile_term(admission, buffer.schema))
    if buffer.partial is not None:
        from tidegate.runtime.eval.aggregates.partials import partial

        stored = partial(buffer.partial, stored)
    if buffer.encoding is not None:
        from tidegate.runtime.ordered.event_runs import encode_events

        stored = encode_events(buffer, stored, slice_)
    return stored
