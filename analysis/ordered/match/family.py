"""The family of patterns in the analysis: the relations of matches to their completing events, and problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tidegate.algebra.errors import Problem, QueryError
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.ordered.derive import END, START, Derive
from tidegate.algebra.ordered.match.counted import counted
from tidegate.algebra.ordered.match.node import DETECTED, Match, RowIntervals, endpoint_schema
from tidegate.algebra.ordered.summary import Halves, Summary
from tidegate.algebra.program import Query
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.time import INF
from tidegate.analysis.ordered.derive import KEPT_END, KEPT_START, different_values, reasons, situation_rows
from tidegate.analysis.ordered.family import (
    COMPLETING,
    Analysis,
    Family,
    StateBound,
    ZoneBuilder,
    equal_instants,
    keyed_event_zones,
    renamed,
)
from tidegate.analysis.ordered.match.bounds import SituationBound, situation_bounds
from tidegate.analysis.ordered.match.chosen_orders import chosen_orders, first_statistics, order_lines, pinned_order
from tidegate.analysis.ordered.match.detection import detection_of
from tidegate.analysis.ordered.match.interval_ends import interval_declarations, waiting_hint
from tidegate.analysis.ordered.match.matches import matching
from tidegate.analysis.ordered.match.partners import given_partners, situation_partners
from tidegate.analysis.ordered.match.problems import match_problems
from tidegate.analysis.ordered.match.restrictions import restrictions_of, zone_of_matches
from tidegate.analysis.zones.federation import Label
from tidegate.analysis.zones.normal_form import Bound
from tidegate.analysis.zones.wording import amount, usual_spans
from tidegate.analysis.zones.zone import Zone

#: Situations that `explain` counts: where they may be a microsecond apart, a window has room for more than any stream
#: brings.
_COUNTED = 1_000_000


class MatchFamily(Family[Match]):
    node = Match

    def zones(self, node: Match, build: ZoneBuilder) -> list[Zone]:
        """The relations of a match to each event that may complete it. A match waits for the events of every symbol."""
        detected = detection_of(node)
        matches = matching(detected)
        build.conflicts += matches.conflicts
        build.labels |= {
            ("v", 0, name): Label(name, detected.pattern.time)
            for zone in matches.zones[:1]
            for name in zone.layout.attributes
        }
        ends = {*endpoint_schema(node), DETECTED}
        known = Schema(tuple(a for a in node.schema.attributes if a.name in ends))
        one = zone_of_matches(node)
        matched = build.pruned(build.named(list(matches.zones) if one is None else [one], known), known)
        sides = [build.build_range(situation.input) for situation in node.situations]
        everything = range(sides[0][1].start, sides[-1][1].stop)
        awaited: set[int] = set()
        for (zones, places), symbol, situation in zip(sides, node.symbols, node.situations, strict=True):
            if isinstance(situation, RowIntervals):
                matched, known = _from_row(build, zones, matched, known, symbol, situation)
                awaited.update(places)
        relations: list[Zone] = []
        time = node.schema[DETECTED].renamed(COMPLETING)
        for (zones, places), situation in zip(sides, node.situations, strict=True):
            if isinstance(situation, RowIntervals):
                continue
            events = keyed_event_zones(zones, situation.readings[0], COMPLETING, build)
            keys = [node.schema[key] for key in node.keys]
            both = Schema((*keys, time, *known.attributes))
            same = equal_instants([(DETECTED, COMPLETING)])
            pairs = build.joined(build.named(events, Schema((*keys, time))), matched, both, same)
            others = [i for i in everything if i not in places and i not in awaited]
            relations += [zone.ignoring(others) for zone in build.named(pairs, node.schema)]
        return build.pruned(relations or build.named(matched, node.schema), node.schema)

    def problems(self, node: Match, query: Query) -> list[Problem]:
        return match_problems(detection_of(node), query)

    def with_progress(self, node: Match) -> Sequence[tuple[Match, str]]:
        """Variants that wait for all ends, with a window where a match would wait for ever."""
        if node.emission == "final":
            return ()
        ticks, span = usual_spans(node.schema[DETECTED].type)[0]
        final = replace(node, emission="final")
        said = 'wait for all ends: emission="final"'
        return ((final, said), (replace(final, within=ticks), f"{said} and within={span}"))

    def completion_hint(self, node: Match) -> str | None:
        """Matches of rows that are intervals may pass by their detection alone (rule R28)."""
        return waiting_hint(node)

    def declarations(self, node: Match, analysed: Analysis) -> Sequence[tuple[Mapping[str, StreamDef], str]]:
        return interval_declarations(node, analysed)

    def summary(
        self, node: Match, keys: Sequence[str], aggregates: Sequence[Aggregate], totals: Sequence[Halves]
    ) -> Summary | str:
        return counted(node, keys, aggregates, totals)

    def state(self, node: Match) -> StateBound:
        bounds = situation_bounds(node)
        longest = max((bound.span for bound in bounds), default=INF)
        # How far ahead of a situation's start, with a window, or else of its end, progress has to come for it to go.
        ahead = {} if isinstance(longest, float) else {KEPT_START if bounds[0].windowed else KEPT_END: longest}
        return StateBound(tuple(_bound_lines(node, bounds)), situation_rows(ahead))

    def freed(self, node: Match, *, always: bool) -> Sequence[str]:
        partners = situation_partners(node, always=always)
        lines = []
        for rule in () if partners is None else partners.freed:
            names = " or ".join(rule.symbols)
            if rule.partners:
                others = " or no ".join(rule.partners)
                lines.append(f"{names} has no {others}, and none to come, or no match is still open")
            else:
                lines.append(f"{names} is over")
        return lines

    def freed_inputs(self, node: Match, *, always: bool) -> Mapping[int, tuple[str, Sequence[str]]]:
        rules = given_partners(node, always=always)
        freed = () if rules is None else rules.freed
        return {node.symbols.index(symbol): (symbol, rule.partners) for rule in freed for symbol in rule.symbols}

    def joins_rows(self, node: Match) -> bool:
        return all(isinstance(situation, RowIntervals) for situation in node.situations)

    def one_by_one(self, node: Match, *, shared: bool) -> Sequence[str]:
        return reasons(node, shared=shared)

    def implied(self, node: Match) -> Sequence[str]:
        restrictions = restrictions_of(node)
        return () if restrictions is None else restrictions.lines()

    def orders(self, node: Match) -> Sequence[str]:
        """The first orders. A run learns and chooses again."""
        statistics = first_statistics(detection_of(node))
        return order_lines(
            node, chosen_orders(statistics, pinned_order(node)), statistics, "assumed until rows are seen"
        )


def _bound_lines(node: Match, bounds: Sequence[SituationBound]) -> list[str]:
    """The bound of a pattern's state, per derivation."""
    time = node.situations[0].schema[START].type
    lines = []
    for bound in bounds:
        names = " or ".join(bound.symbols)
        if bound.most <= 0 or bound.span == INF:
            lines.append(f"of a partition one {names} that is open" + (", and all that are over" if bound.most else ""))
            continue
        many = f"at most {bound.most:,}" if bound.most <= _COUNTED else "all"
        since = f"{'began' if bound.windowed else 'ended'} within {amount(int(bound.span), time)}"
        lines.append(f"of a partition {many} {names} that {since} and are over, and one that is open")
    derived = [
        (f" {s}", situation)
        for s, situation in zip(node.symbols, node.situations, strict=True)
        if isinstance(situation, Derive)
    ]
    return lines + [line for symbol, situation in derived for line in different_values(symbol, situation)]


def _from_row(
    build: ZoneBuilder, zones: list[Zone], matched: list[Zone], known: Schema, symbol: str, intervals: RowIntervals
) -> tuple[list[Zone], Schema]:
    """The relations of a match to the row that is one of its intervals, and the attributes that are known then."""
    rows = intervals.schema
    least = 0 if intervals.points else -1
    zones = build.named(zones, rows)
    if not all(zone.entails(Bound(START, END, least)) for zone in zones):
        raise _not_periods(symbol, intervals)
    for zone in zones:
        for name in _instants(intervals):
            hidden = zone.layout.rows[zone.layout.attributes[name]]
            if not build.labels[hidden].text:
                build.labels[hidden] = Label(f"{symbol}.{name}", build.labels[hidden].type)
    names = {name: f"{symbol}'.{name}" if name in (START, END) else f"{symbol}.{name}" for name in _instants(intervals)}
    named = renamed(build.named(zones, Schema(tuple(rows[name] for name in names))), names)
    further = Schema(tuple(rows[name].renamed(new) for name, new in names.items()))
    both = Schema((*known.attributes, *further.attributes))
    same = equal_instants((names[end], f"{symbol}.{end}") for end in (START, END))
    kept = Schema(tuple(a for a in both.attributes if a.name not in (names[START], names[END])))
    return build.pruned(build.named(build.joined(matched, named, both, same), kept), kept), kept


def _instants(intervals: RowIntervals) -> list[str]:
    """The instants of an interval's row that are no keys."""
    return [name for name in intervals.schema.temporal if name not in intervals.keys]


def _not_periods(symbol: str, intervals: RowIntervals) -> QueryError:
    sign, might = ("<=", "end before it begins") if intervals.points else ("<", "not end after it begins")
    return QueryError(
        "TG161",
        f"a row of {symbol} might {might}",
        because=(f"no declared relation and no filter says that {START} {sign} {END}",),
        hint=f"declare it, relations=lambda r: r.start {sign} r.end, or filter by it first"
        + ("" if intervals.points else "; points=True allows both to be equal"),
    )
