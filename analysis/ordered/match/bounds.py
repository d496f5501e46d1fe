"""The most situations of a partition that a pattern keeps, whatever the events are (rules R17 and R27)."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.algebra.ordered.derive import Derive
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.ordered.match.detection import detection_of
from tidegate.analysis.ordered.match.matches import horizons


@dataclass(frozen=True, slots=True)
class SituationBound:
    """The most closed situations of a partition that wait for a match, for some symbols.

    One more may be open. They have begun within the window, or ended within `span` ticks where there is none.
    """

    symbols: tuple[str, ...]
    most: Extended
    span: Extended
    windowed: bool


def situation_bounds(node: Match) -> list[SituationBound]:
    """The bound of every derivation of a pattern, in the order of its symbols; intervals of rows are bounded as rows
    are.

    The situations of a partition follow each other: from one start to the next it takes the least duration, and a tick
    for the event between them, unless that may be of the same instant.
    """
    by_derivation: dict[Derive, list[int]] = {}
    for place, situation in enumerate(node.situations):
        if isinstance(situation, Derive):
            by_derivation.setdefault(situation, []).append(place)
    waits = None if node.within is not None else [horizon.after_end for horizon in horizons(detection_of(node))]
    bounds = []
    for derivation, places in by_derivation.items():
        apart = derivation.at_least + (1 if derivation.tie is None else 0)
        if node.within is not None:
            span: Extended = node.within
            instants: Extended = node.within - derivation.at_least
        else:
            assert waits is not None
            span = instants = max(waits[place] for place in places)
        most = INF if instants == INF else 0 if instants <= 0 else (int(instants) - 1) // apart + 1
        symbols = tuple(node.symbols[place] for place in places)
        bounds.append(SituationBound(symbols, most, span, node.within is not None))
    return bounds
