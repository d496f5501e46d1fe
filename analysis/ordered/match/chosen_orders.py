"""The search orders of a pattern, one per trigger. The cost model chooses them, or the user pins one."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.printing.plans import listed
from tidegate.analysis.ordered.match.detection import Detection
from tidegate.analysis.ordered.match.order import Pair, Statistics, best_order, cost_of, initial_statistics
from tidegate.analysis.zones.zone import attribute_of


def first_statistics(detection: Detection) -> Statistics:
    """The statistics before any event: estimates by the relations that the pattern allows."""
    masks = {(pair.i, pair.j): pair.mask for pair in detection.pattern.pairs}
    return initial_statistics(masks, related(detection), len(detection.symbols))


def related(detection: Detection) -> list[Pair]:
    """The pairs of symbols related by constraints other than sets of Allen's relations."""
    names = {name: place // 2 for place, name in enumerate(detection.pattern.base.layout.attributes)}
    pairs: dict[Pair, None] = {}
    for general in detection.pattern.general:
        for zone in general.negation:
            given = zone.edges[len(detection.pattern.base.edges) :]
            ends = [(names[attribute_of(edge.w)], names[attribute_of(edge.v)]) for edge in given]
            pairs |= {ordered_pair(i, j): None for i, j in ends if i != j}
    return list(pairs)


def ordered_pair(first: int, second: int) -> Pair:
    return (first, second) if first < second else (second, first)


def chosen_orders(statistics: Statistics, pinned: Sequence[int] = ()) -> list[tuple[int, ...]]:
    """The order for every trigger: the pinned one after it, or the best."""
    symbols = range(len(statistics.sizes))
    if pinned:
        return [(trigger, *(symbol for symbol in pinned if symbol != trigger)) for trigger in symbols]
    return [best_order(trigger, statistics).symbols for trigger in symbols]


def pinned_order(node: Match) -> tuple[int, ...]:
    """The order that the user gave, as numbers of symbols; empty where the cost model decides."""
    return tuple(node.symbols.index(symbol) for symbol in node.order)


def order_lines(node: Match, orders: Sequence[Sequence[int]], statistics: Statistics, known_by: str) -> list[str]:
    """The orders and their reasons: per trigger the cost by the model and its inputs."""
    names = node.symbols
    pinned = pinned_order(node)
    lines = []
    for order in orders:
        line = f"from {names[order[0]]}: {listed([names[symbol] for symbol in order[1:]]) or 'nothing else'}"
        if len(order) > 1:
            line += f", cost {cost_of(order, statistics):.3g}"
        best = best_order(order[0], statistics)
        if tuple(order) != best.symbols and best.cost < cost_of(order, statistics):
            cheaper = listed([names[symbol] for symbol in best.symbols[1:]])
            line += f", where {cheaper} would cost {best.cost:.3g}"
        lines.append(line)
    if len(names) > 1:
        shares = listed([f"{names[i]}-{names[j]} {share:.2%}" for (i, j), share in statistics.selectivities.items()])
        sizes = listed([f"{size:.3g} {name}" for name, size in zip(names, statistics.sizes, strict=True)])
        known = f"{known_by}: a partition has {sizes}; pairs that fit: {shares or 'all'}"
        lines.append(f"{'pinned; ' if pinned else ''}{known}")
    return lines
