"""How many rows are kept for a row pattern at most, or which constraint is missing for that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton, automaton
from tidegate.algebra.ordered.sequences.certainty.counts import MostRows, most_rows
from tidegate.algebra.ordered.sequences.definition import EveryMatch, Limit, Point, limit_text
from tidegate.algebra.ordered.sequences.navigation import MatchNumber, Variables, reach_of
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import (
    Anchor,
    Repetition,
    longest,
    longest_by_variable,
    pattern_text,
    patterns_of,
    variables_of,
)
from tidegate.algebra.printing.plans import ticks_text
from tidegate.analysis.ordered.family import rate_of, stream_of
from tidegate.analysis.ordered.sequences.growth import is_endless
from tidegate.analysis.ordered.sequences.waits import span_of, waits_of
from tidegate.analysis.zones.wording import amount, factor

#: The name of what is kept.
ROWS: Final = "rows"
#: Of a pattern with more steps, missing limits are not looked for: the more points they name, the longer it takes.
MOST_STEPS: Final = 8
#: Longer than any limit, in ticks.
_LONG: Final = 1 << 80


def bound_of(node: Sequences) -> str:
    """How many rows are kept at most (rule R46): some of each partition, those of a while, and, of partitions that may
    wait for their next row for ever, those of a while in each.
    """
    waits, most = waits_of(node), most_rows_of(node)
    anchors = {part.at for part in patterns_of(node.pattern) if isinstance(part, Anchor)}
    marks = "start" in anchors or any(isinstance(navigation, MatchNumber) for navigation in node.navigations)
    back, ahead = reach_of(node.navigations)
    ahead = max(ahead, int("end" in anchors))
    if waits.after_first is not None:
        return _text(node, max(back, int(marks)), lasting=0, passing=waits.after_first + waits.leading)
    if most is not None and (most <= 1 or _are_adjacent(node)):
        rows = max(most, 1) - 1 + ahead + back
        lasting = waits.leading + (waits.trailing if waits.absent is None else 0)
        return _text(node, rows, lasting, passing=waits.absent or 0)
    if waits.span is not None:
        return _text(node, ahead + back, lasting=waits.span + waits.trailing + waits.leading, passing=0)
    return f"{ROWS}: unbounded: {_missing(node)}"


def most_rows_of(node: Sequences) -> int | None:
    """How many rows a match has at most, by its pattern and, if it is a preferred one, by what conditions count; None:
    there is no such number.
    """
    by_pattern = longest(node.pattern)
    if isinstance(node.selection, EveryMatch):
        return by_pattern
    total, counted = 0, dict[Variables, int]()
    for variable, rows in longest_by_variable(node.pattern).items():
        most = _counted_rows(node, variable)
        if rows is None and most is None:
            return by_pattern
        if most is None or (rows is not None and rows <= most.most):
            total += rows or 0
        else:
            counted[most.variables] = max(counted.get(most.variables, 0), most.most)
    total += sum(counted.values())
    return total if by_pattern is None else min(total, by_pattern)


def _counted_rows(node: Sequences, variable: str) -> MostRows | None:
    """The least count of rows, those of a variable among them, that the condition of the variable asks for."""
    found = [most for most in most_rows(node, node.condition_of(variable)) if most.counts(variable)]
    return min(found, key=lambda most: most.most, default=None)


def _text(node: Sequences, rows: int, lasting: int, passing: int) -> str:
    """So many `rows` of each partition, those of a `lasting` while in each, and those of a `passing` one."""
    many = f"keys({stream_of(node.input)[1]} by {', '.join(node.keys)}) × " if node.keys else ""
    type_ = node.input.schema[node.time].type
    summands = [f"{many}{rows:,}"] if rows else []
    for ticks, of in ((lasting, many), (passing, "")):
        if ticks:
            summands.append(f"{of}{rate_of(node.input)} × {factor(amount(ticks, type_))}")
    return f"{ROWS}: {' + '.join(summands) or 0}"


def _are_adjacent(node: Sequences) -> bool:
    return not isinstance(node.selection, EveryMatch) or node.selection.skipping == "contiguous"


def _missing(node: Sequences) -> str:
    """What lets the rows that are kept be ever more, and which constraints would end that."""
    if _are_adjacent(node):
        parts = [
            part
            for part in patterns_of(node.pattern)
            if isinstance(part, Repetition) and is_endless(part) and not _is_counted(node, part)
        ]
        type_ = node.input.schema[node.time].type
        written = {pattern_text(part, lambda ticks: ticks_text(ticks, type_)): part for part in parts}
        counted = [_counted(part, text) for text, part in written.items()]
        have = "have" if len(written) > 1 else "has"
        return f"{' and '.join(written)} {have} no upper count: missing within= or {' and '.join(counted)}"
    gaps = _gaps(node)
    if not gaps:
        return "missing within="
    limits = " and ".join(limit_text(limit, lambda _: "c") for limit in gaps.values())
    return f"waits for {' and '.join(gaps)} for ever: missing within= or {limits}"


def _is_counted(node: Sequences, part: Repetition) -> bool:
    """Whether conditions let it have only so many rows."""
    if isinstance(node.selection, EveryMatch):
        return False
    return all(_counted_rows(node, variable) is not None for variable in variables_of(part.part))


def _counted(part: Repetition, text: str) -> str:
    """The text of a repetition with an upper count."""
    sign, reluctant = {0: "*", 1: "+"}.get(part.least, f"{{{part.least},}}"), "" if part.greedy else "?"
    return f"{text.removesuffix(sign + reluctant)}{{{part.least},n}}{reluctant}"


def _gaps(node: Sequences) -> dict[str, Limit]:
    """The limits without which a match may wait for its next row for ever, by the variable of this row; none where they
    are not looked for, or would not do.
    """
    of = automaton(node.pattern)
    if len(of.states) > MOST_STEPS + 1 or _goes_back(of):
        return {}
    gaps: dict[str, Limit] = {}
    for state in of.states[BEGIN + 1 :]:
        for following in (of.states[way.to] for way in state.transitions if way.to is not None):
            name, first = following.variable, Point(following.variable, "first")
            if name == state.variable:
                gaps.setdefault(f"another {name}", Limit(Point(name, "last"), first, _LONG))
            else:
                gaps.setdefault(name, Limit(first, Point(state.variable, "last"), _LONG))
    for name in list(gaps):
        others = {other: limit for other, limit in gaps.items() if other != name}
        if _ends(node, others.values()):
            gaps = others
    return gaps if _ends(node, gaps.values()) else {}


def _ends(node: Sequences, limits: Iterable[Limit]) -> bool:
    """Whether matches last a limited time with further limits."""
    return span_of(replace(node, limits=(*node.limits, *limits))) is not None


def _goes_back(of: Automaton) -> bool:
    """Whether several steps are repeated together: then the rows that limits name may come in very many orders."""
    ways = ((number, way.to) for number, state in enumerate(of.states) for way in state.transitions)
    return any(to is not None and to < number for number, to in ways)
