"""The kill rule: a final right row of an anti-join that discards all left rows a stored row can be part of (rule
R22).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tidegate.algebra.formulas import (
    And,
    Ceil,
    Compare,
    Floor,
    Formula,
    Shift,
    TemporalTerm,
    Truth,
    Var,
    temporal_formula,
)
from tidegate.algebra.nodes import Imbed, Node, Project, Rename, Scan, Select
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.terms import (
    TRUE,
    Attr,
    Lit,
    Term,
    attributes_of,
    call,
    conjunction,
    conjuncts,
    disjunction,
    rename_attributes,
)
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.types import MAX_SHIFT
from tidegate.analysis.state.origins import AntiJoin, Origin, Sources
from tidegate.analysis.state.partner import Naming, plus
from tidegate.analysis.zones.normal_form import All, Bound, Normal, normal_form
from tidegate.analysis.zones.zone import Variable, Zone, is_copy


@dataclass(frozen=True, slots=True)
class Reach:
    """A demand on the killing row's instant y that a stored row meets if one of its alternatives holds.

    `y - x <= c` for one of `after` (x, c), or `y <= p_a + c` for one of `passed` (a, c); or `x - y <= c` of `before`.
    """

    y: str
    after: tuple[tuple[str, int], ...] = ()
    passed: tuple[tuple[str, int], ...] = ()
    before: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Kill:
    """When a row of `counterpart`, final as it is stored, kills a row of `occurrence` in a zone. Both number
    occurrences.

    It must be one of which `right`, the anti-join's right side, makes a row. `direct` are conditions over both rows, in
    attributes of the anti-join that `names` traces to them; `reaches` what else has to hold between their instants.
    """

    occurrence: int
    counterpart: int
    streams: tuple[StreamDef, StreamDef]
    right: Node
    direct: tuple[Term, ...]
    names: Mapping[str, Origin]
    reaches: tuple[Reach, ...]

    def condition(
        self, p: Mapping[str, Extended], named: Naming, columns: tuple[frozenset[str], frozenset[str]]
    ) -> Term | None:
        """The rule over both rows' columns, the counterpart's as `named`, at progress p. None: columns are missing."""
        needed = {o for term in self.direct for o in map(self.names.__getitem__, attributes_of(term))}
        if any(o.attribute not in columns[0 if o.occurrence == self.occurrence else 1] for o in needed):
            return None
        place = {
            n: o.attribute if o.occurrence == self.occurrence else named(o.attribute) for n, o in self.names.items()
        }
        parts = [rename_attributes(term, place) for term in self.direct]
        return conjunction([*parts, *(self._reached(reach, p, named) for reach in self.reaches)])

    def _reached(self, reach: Reach, p: Mapping[str, Extended], named: Naming) -> Term:
        schema, other = (stream.schema for stream in self.streams)
        y, type_ = Attr(named(reach.y)), other[reach.y].type
        cases: list[Term] = [call("le", y, plus(Attr(x), c, schema[x].type)) for x, c in reach.after]
        cases += [call("le", Attr(x), plus(y, c, type_)) for x, c in reach.before]
        for a, c in reach.passed:
            limit = p[a]
            if limit == INF:
                return TRUE
            if limit != -INF:
                cases.append(call("le", y, Lit(int(limit) + c, type_)))
        return disjunction(cases)


def kills(sources: Sources, zone: Zone, occurrence: int, promised: Collection[str]) -> tuple[Kill, ...]:
    """The kills of an occurrence that the zone does not ignore, one per anti-join above it."""
    candidates = (
        _kill(sources, anti, zone, occurrence, promised) for anti in sources.antijoins if occurrence in anti.left
    )
    return tuple(kill for kill in candidates if kill is not None)


def final_side(node: Node) -> bool:
    """Whether every row that a stored row of this input gives is there for good: the input looks at rows one by one.

    A row that an anti-join or aggregation lets through may be taken back, so its rows kill nothing.
    """
    match node:
        case Scan(stream):
            return not stream.static
        case Select(input_, _) | Project(input_, _) | Rename(input_, _) | Imbed(input_, _, _):
            return final_side(input_)
        case _:
            return False


def _kill(sources: Sources, anti: AntiJoin, zone: Zone, occurrence: int, promised: Collection[str]) -> Kill | None:
    if not final_side(anti.node.right):
        return None
    partner = anti.right.start
    both = Schema((*anti.node.left.schema.attributes, *anti.node.right.schema.attributes))
    names = {
        name: origin
        for name, origins in anti.origins.items()
        for origin in origins
        if origin.occurrence in (occurrence, partner) and origin.shift == 0
    }
    direct: list[Term] = []
    reaches: list[Reach] = []
    for part in conjuncts(anti.node.condition):
        if attributes_of(part) <= names.keys():
            if resolve(part, both).fallible:
                return None
            direct.append(part)
            continue
        bounds = _exact_bounds(part, both)
        if bounds is None:
            return None
        for bound in bounds:
            reach = _reach(anti, zone, occurrence, bound, promised)
            if reach is None:
                return None
            if reach.y:
                reaches.append(reach)
    streams = (sources.streams[occurrence], sources.streams[partner])
    return Kill(occurrence, partner, streams, anti.node.right, tuple(direct), names, tuple(reaches))


def _exact_bounds(part: Term, schema: Schema) -> list[Bound] | None:
    """The difference constraints of a condition that is exactly a conjunction of such; None for any other."""
    formula = temporal_formula(part, schema)
    if not _exact(formula):
        return None
    flat: list[Bound] = []
    stack: list[Normal] = [normal_form(formula)]
    while stack:
        match stack.pop():
            case Bound() as bound:
                flat.append(bound)
            case All(parts):
                stack += parts
            case _:
                return None
    return flat


def _exact(formula: Formula) -> bool:
    """Whether the normal form says the same: no rounding, nothing but comparisons of instants."""
    match formula:
        case Compare(left, _, right):
            return _unrounded(left) and _unrounded(right)
        case And(parts):
            return all(_exact(part) for part in parts)
        case Truth():
            return True
        case _:
            return False


def _unrounded(term: TemporalTerm) -> bool:
    match term:
        case Var():
            return True
        case Shift(inner, _):
            return _unrounded(inner)
        case Floor() | Ceil():
            return False
        case _:
            return all(_unrounded(part) for part in term.terms)


def _reach(anti: AntiJoin, zone: Zone, occurrence: int, bound: Bound, promised: Collection[str]) -> Reach | None:
    """What makes `v - w <= c` true of every left row in the zone made of the own row, given the killing row's instant.

    None: nothing does. A constraint between left instants must hold in the zone; its `y` is empty.
    """
    v, w = _origin(anti, zone, bound.v), _origin(anti, zone, bound.w)
    if v is None or w is None:
        return None
    c = bound.c + w.shift - v.shift
    if abs(c) > MAX_SHIFT:
        return None
    later: Variable = ("x", v.occurrence, v.attribute)
    earlier: Variable = ("x", w.occurrence, w.attribute)
    killer = anti.right.start
    columns = tuple(row[2] for row in zone.layout.rows if is_copy(row) and row[1] == occurrence)
    if v.occurrence != killer and w.occurrence != killer:
        return Reach("") if zone.distance(earlier, later) <= c else None
    if v.occurrence == w.occurrence:
        return None
    if v.occurrence == killer:
        # The left instant is at least `x - d(w, x)`, and at least `p_a + 1 - d(w, a)` where the row is yet to pass.
        after = [(x, c - d) for x in columns if (d := zone.distance(earlier, ("x", occurrence, x))) != INF]
        passed = [(a, 1 + c - d) for a in promised if (d := zone.distance(earlier, ("a", a))) != INF]
        return _within(Reach(v.attribute, after=_ints(after), passed=_ints(passed)))
    before = [(x, c - d) for x in columns if (d := zone.distance(("x", occurrence, x), later)) != INF]
    return _within(Reach(w.attribute, before=_ints(before)))


def _ints(pairs: list[tuple[str, Extended]]) -> tuple[tuple[str, int], ...]:
    return tuple((name, int(c)) for name, c in pairs if abs(c) <= MAX_SHIFT)


def _within(reach: Reach) -> Reach | None:
    return reach if reach.after or reach.passed or reach.before else None


def _origin(anti: AntiJoin, zone: Zone, name: str) -> Origin | None:
    """The instant that an attribute is a copy of: one of the killing row, or one of which the zone speaks."""
    killer = anti.right.start
    known = anti.origins.get(name, ())
    return next((o for o in known if o.occurrence == killer or o.occurrence not in zone.ignored), None)
