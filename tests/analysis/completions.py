"""Detection by brute force: a match is certain at t if every completion of the ends not known at t satisfies the
pattern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from tests.analysis.build import ticks
from tests.properties.brute import Grid, holds
from tidegate.algebra.terms import Attr, Term, call, conjunction
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.ordered.match.pattern import Symbol


def endpoints(symbols: Sequence[Symbol]) -> tuple[str, ...]:
    return tuple(name for symbol in symbols for name in (symbol.ts, symbol.te))


def asked(symbols: Sequence[Symbol], condition: Term) -> Term:
    """The condition and the limits of durations."""
    parts = [condition]
    for symbol in symbols:
        duration = call("sub", Attr(symbol.te), Attr(symbol.ts))
        if symbol.at_least is not None:
            parts.append(call("ge", duration, ticks(symbol.at_least)))
        if symbol.at_most is not None:
            parts.append(call("le", duration, ticks(symbol.at_most)))
    return conjunction(parts)


def completions(at: Mapping[str, Extended], t: int, room: int) -> dict[str, Grid]:
    """All completions of the instants after t, each at most `room` ticks later; the known ones stay."""
    unknown = [name for name, instant in at.items() if instant > t]
    rows = np.array(list(product(range(t + 1, t + room + 1), repeat=len(unknown))), dtype=np.int64)
    return {
        name: rows[:, unknown.index(name)] if name in unknown else np.full(len(rows), instant, dtype=np.int64)
        for name, instant in at.items()
    }


def certain_from(symbols: Sequence[Symbol], condition: Term, values: Sequence[Extended], room: int) -> int | None:
    """The least t from the last start on at which the match is certain, tried one after the other, or None.

    `room` has to exceed all differences that the condition distinguishes, added up.
    """
    at = dict(zip(endpoints(symbols), values, strict=True))
    full = asked(symbols, condition)
    last = int(max(value for value in values if value != INF))
    for t in range(int(max(values[0::2])), last + room + 1):
        if holds(full, completions(at, t, room)).all():
            return t
    return None
