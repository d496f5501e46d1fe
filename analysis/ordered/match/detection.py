"""Earliest detection: the first instant at which a match is certain, whatever the unknown ends are (rule R26)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tidegate.algebra.allen import ANY, converse_mask, group_bits, relation_of
from tidegate.algebra.ordered.derive import START, Derive
from tidegate.algebra.ordered.match.node import Emission, Match, RowIntervals
from tidegate.algebra.terms import Term
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import INT64_MAX, DataType
from tidegate.analysis.ordered.match.pattern import Pattern, Symbol, interval_bound, pattern
from tidegate.analysis.zones.zone import NONE, Matrix


@dataclass(frozen=True, slots=True, eq=False)
class Detection:
    """The detection times of a pattern's matches, as plain values for a kernel.

    Endpoint 2i is the start of the i-th symbol, 2i + 1 its end.

    - `masks[i, j]`: relations allowed from i to j, bit r for the r-th of `RELATIONS`; `ANY` where there is no
      constraint.
    - `groups[i, j]`: three bits, which prefix groups are allowed as a whole.
    - `zones[z, w, v]`: bound on `v - w` in the z-th zone of the negations of general constraints, closed, `NONE` where
      there is none.
    - `implied[w, v]`: bound on `v - w` that a general constraint states by itself, `NONE` where none does.
    - `at_least[i]`, `at_most[i]`: limits of durations, 0 and the largest int64 where there are none.
    - `start_offsets[i]`, `end_offsets[i]`: a match is detected at `ts + o` or `te + o` of one of its intervals, for
      one of these o, in order, 0 among them.
    """

    pattern: Pattern
    within: int | None
    emission: Emission
    masks: NDArray[np.uint16]
    groups: NDArray[np.uint8]
    zones: NDArray[np.int64]
    implied: NDArray[np.int64]
    at_least: NDArray[np.int64]
    at_most: NDArray[np.int64]
    start_offsets: tuple[tuple[int, ...], ...]
    end_offsets: tuple[tuple[int, ...], ...]

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        return self.pattern.symbols


def detection(
    symbols: Sequence[Symbol],
    condition: Term,
    time: DataType,
    within: int | None = None,
    emission: Emission = "earliest",
) -> Detection:
    """The detection of a condition over the symbols' endpoints, which are instants of type `time`."""
    pattern_ = pattern(symbols, condition, time)
    m = len(symbols)
    masks = np.full((m, m), ANY, dtype=np.uint16)
    for pair in pattern_.pairs:
        masks[pair.i, pair.j] = pair.mask
        masks[pair.j, pair.i] = converse_mask(pair.mask)
    groups = np.array([[group_bits(int(mask)) for mask in row] for row in masks], dtype=np.uint8).reshape(m, m)
    matrices = [zone.matrix for general in pattern_.general for zone in general.negation]
    offsets = _offsets(pattern_, matrices if emission == "earliest" else [])
    return Detection(
        pattern_,
        within,
        emission,
        masks,
        groups,
        np.array(matrices, dtype=np.int64).reshape(-1, 2 * m, 2 * m),
        _implied(pattern_),
        np.array([symbol.at_least or 0 for symbol in symbols], dtype=np.int64),
        np.array([INT64_MAX if s.at_most is None else s.at_most for s in symbols], dtype=np.int64),
        offsets[0::2],
        offsets[1::2],
    )


@lru_cache(maxsize=128)
def detection_of(node: Match) -> Detection:
    """The detection of the operator's matches."""
    symbols = [_symbol(name, situation) for name, situation in zip(node.symbols, node.situations, strict=True)]
    return detection(symbols, node.pattern, node.situations[0].schema[START].type, node.within, node.emission)


def _symbol(name: str, situation: Derive | RowIntervals) -> Symbol:
    if isinstance(situation, RowIntervals):
        return Symbol(name, points=situation.points)
    return Symbol(name, None if situation.at_least == 1 else situation.at_least, situation.at_most)


def _offsets(pattern: Pattern, matrices: Sequence[Matrix]) -> tuple[tuple[int, ...], ...]:
    """The possible offsets between each endpoint and a detection that it causes.

    A zone dies at `v + d(v, u)` only if u is not known by then, and all starts are: u is an end. Where the start of an
    interval tells no later, its end does not count.
    """
    offsets: list[set[int]] = [{0} for _ in range(2 * len(pattern.symbols))]
    for i, symbol in enumerate(pattern.symbols):
        if symbol.at_least is not None and symbol.at_least > 1:
            offsets[2 * i].add(symbol.at_least - 1)
    for matrix in matrices:
        for i, symbol in enumerate(pattern.symbols):
            from_start, from_end = matrix[2 * i, 1::2].tolist(), matrix[2 * i + 1, 1::2].tolist()
            offsets[2 * i].update(d for d in from_start if 0 < d < NONE)
            least = interval_bound(symbol).c
            pairs = zip(from_start, from_end, strict=True)
            offsets[2 * i + 1].update(d for start, d in pairs if 0 < d < NONE and start + least > d)
    return tuple(tuple(sorted(of_endpoint)) for of_endpoint in offsets)


def _implied(pattern: Pattern) -> Matrix:
    """The bounds whose negation is a zone by itself."""
    rows = {row: place for place, row in enumerate(pattern.base.layout.rows)}
    bounds = np.full((len(rows), len(rows)), NONE, dtype=np.int64)
    for zone in (zone for general in pattern.general for zone in general.negation):
        added = zone.edges[len(pattern.base.edges) :]
        if len(added) == 1:
            w, v = rows[added[0].w], rows[added[0].v]
            bounds[v, w] = min(bounds[v, w], -added[0].c - 1)
    return bounds


def detection_time(detection: Detection, endpoints: Sequence[Extended]) -> int | None:
    """When the match of these intervals is detected: `A.ts, A.te, B.ts, …`, ends that are not known being +∞.

    None where they are no match, or none as far as is known. A function of the match alone: ends after its value do not
    matter, known or not.
    """
    starts, ends = endpoints[0::2], endpoints[1::2]
    certain = _certain_from(detection, endpoints)
    detected = max(certain, *ends) if detection.emission == "final" else certain
    if detected == INF or (detection.within is not None and detected - min(starts) > detection.within):
        return None
    return int(detected)


def _certain_from(detection: Detection, endpoints: Sequence[Extended]) -> Extended:
    """The least instant, all starts being known, at which no completion of unknown ends is a counterexample; or +∞."""
    times = [max(endpoints[0::2])]
    for i, symbol in enumerate(detection.symbols):
        times.append(_duration_certain_from(symbol, endpoints[2 * i], endpoints[2 * i + 1]))
    for pair in detection.pattern.pairs:
        a, b = endpoints[2 * pair.i : 2 * pair.i + 2], endpoints[2 * pair.j : 2 * pair.j + 2]
        times.append(pair_certain_from(pair.mask, a[0], a[1], b[0], b[1]))
    times += [death(zone, endpoints) for zone in detection.zones]
    return max(times)


def _duration_certain_from(symbol: Symbol, ts: Extended, te: Extended) -> Extended:
    least, most = symbol.at_least, symbol.at_most
    if (least is not None and te - ts < least) or (most is not None and te - ts > most):
        return INF
    if most is not None:
        return te
    # An interval that has not ended by then lasts a tick longer.
    return ts if least is None else ts + least - 1


def pair_certain_from(mask: int, a_ts: Extended, a_te: Extended, b_ts: Extended, b_te: Extended) -> Extended:
    """When it is certain that A is to B in a relation of the mask (TPStream, Table 2); +∞ where it is not.

    With starts known before, meets and their converses are certain, and so is a prefix group; within one, the first end
    decides. Both ends being +∞, the relation that they seem to be in stands for its group.
    """
    relation = relation_of(a_ts, a_te, b_ts, b_te)
    if not mask & relation.bit:
        return INF
    if relation.group is None or group_bits(mask) >> relation.group & 1:
        return max(a_ts, b_ts)
    return min(a_te, b_te)


def death(zone: Matrix, endpoints: Sequence[Extended]) -> Extended:
    """The first instant at which what is known contradicts a closed zone over the endpoints; +∞ where nothing does.

    A known v and the bound on u contradict once u is known, or cannot be early enough: from `max(v, v + d(v, u))` on.
    """
    earliest: Extended = INF
    for w, row in enumerate(zone.tolist()):
        v = endpoints[w]
        if v != INF:
            times = (v + max(d, 0) for u, d in zip(endpoints, row, strict=True) if d < NONE and u - v > d)
            earliest = min(earliest, min(times, default=INF))
    return earliest
