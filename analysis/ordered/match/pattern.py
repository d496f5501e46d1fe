"""The constraints of a pattern: Allen's relations of pairs, and all others as zones of their negation (rule R25)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import assert_never

from tidegate.algebra.allen import ANY, GROUP_MASKS, RELATIONS, Allen, mask_of, relation_of, relations_in
from tidegate.algebra.errors import QueryError
from tidegate.algebra.formulas import inexact_part, temporal_formula
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import Attr, Lit, Term, conjuncts, subterms
from tidegate.algebra.types import BIGINT, DataType
from tidegate.analysis.zones.expansion import MAX_ZONES, expand
from tidegate.analysis.zones.normal_form import (
    All,
    AnyOf,
    Bound,
    Normal,
    bounds_of,
    conjoin,
    disjoin,
    estimate_zones,
    holds,
    negated,
    normal_form,
)
from tidegate.analysis.zones.zone import Conflict, Layout, Zone


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable of a pattern: intervals [ts, te) with `at_least <= te - ts <= at_most`, in ticks.

    Situations have ts < te. `points`: given intervals may also be points, ts = te.
    """

    name: str
    at_least: int | None = None
    at_most: int | None = None
    points: bool = False

    @property
    def ts(self) -> str:
        return f"{self.name}.ts"

    @property
    def te(self) -> str:
        return f"{self.name}.te"


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair constraint: symbol i is to symbol j in a relation of the mask, i < j. `sources` are the terms that state
    it.
    """

    i: int
    j: int
    mask: int
    sources: tuple[Term, ...]

    @property
    def source(self) -> Term:
        return self.sources[0]


@dataclass(frozen=True, slots=True, eq=False)
class General:
    """A constraint other than Allen's relations of two symbols, with the zones of its negation over all endpoints."""

    condition: Normal
    negation: tuple[Zone, ...]
    source: Term


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """A conjunction: at most one pair constraint for any two symbols, and general constraints.

    `base` is the zone over all endpoints, `A.ts, A.te, B.ts, …` in the order of the symbols, that says only that no
    interval ends before it begins.
    """

    symbols: tuple[Symbol, ...]
    time: DataType
    base: Zone
    pairs: tuple[Pair, ...]
    general: tuple[General, ...]


def pattern(symbols: Sequence[Symbol], condition: Term, time: DataType) -> Pattern:
    """The pattern of a condition over the endpoints of the symbols, of type `time`.

    A conjunct that only compares the endpoints of two symbols, neither of which may be a point, is a set of Allen's
    relations, exactly, since ts < te. `QueryError` TG153 for a condition that is not about endpoints alone, TG150 for
    one with too many cases.
    """
    reader = _Reader(tuple(symbols), endpoint_attributes(symbols, time))
    base = base_zone(symbols)
    pairs: dict[tuple[int, int], Pair] = {}
    general: list[General] = []
    for source in conjuncts(condition):
        for part in _parts(reader.normal_form(source)):
            between = reader.pair_of(part)
            if between is None:
                negation = expand([base], reader.negation(part, source), MAX_ZONES).zones
                if negation:
                    general.append(General(part, tuple(negation), source))
            else:
                known = pairs.get(between, Pair(*between, ANY, ()))
                sources = tuple(dict.fromkeys((*known.sources, source)))
                pairs[between] = Pair(*between, reader.mask(part, between) & known.mask, sources)
    constraining = tuple(pair for pair in pairs.values() if pair.mask != ANY)
    return Pattern(tuple(symbols), time, base, constraining, tuple(general))


def endpoint_attributes(symbols: Sequence[Symbol], time: DataType) -> dict[str, Attribute]:
    """The attributes that a pattern's condition reads."""
    names = [name for symbol in symbols for name in (symbol.ts, symbol.te)]
    return {name: Attribute(name, time, nullable=False, temporal=True) for name in names}


def named_layout(names: Sequence[str]) -> Layout:
    """The layout whose rows have these names."""
    return Layout(tuple(("v", 0, name) for name in names), {name: k for k, name in enumerate(names)})


def interval_bound(symbol: Symbol) -> Bound:
    """`ts < te`, or `ts <= te` where points are allowed."""
    return Bound(symbol.ts, symbol.te, 0 if symbol.points else -1)


def base_zone(symbols: Sequence[Symbol]) -> Zone:
    """The zone over all endpoints in which intervals do not end before they begin."""
    names = [name for symbol in symbols for name in (symbol.ts, symbol.te)]
    zone = Zone.free(named_layout(names)).conjoin(map(interval_bound, symbols), "intervals")
    assert not isinstance(zone, Conflict)
    return zone


def _parts(normal: Normal) -> tuple[Normal, ...]:
    return normal.parts if isinstance(normal, All) else (normal,)


def _representatives() -> tuple[tuple[int, int, int, int], ...]:
    examples: dict[Allen, tuple[int, int, int, int]] = {}
    for a_ts, a_te, b_ts, b_te in product(range(4), repeat=4):
        if a_ts < a_te and b_ts < b_te:
            examples.setdefault(relation_of(a_ts, a_te, b_ts, b_te), (a_ts, a_te, b_ts, b_te))
    return tuple(examples[relation] for relation in RELATIONS)


#: Per relation two intervals that are in it.
_EXAMPLES = _representatives()


def relation_bounds(relation: Allen, a: Symbol, b: Symbol, source: Term | None = None) -> tuple[Bound, ...]:
    """The relation of a to b as constraints, beside ts < te."""
    names = (a.ts, a.te, b.ts, b.te)
    formula = temporal_formula(relation.condition(*map(Attr, names)), endpoint_attributes((a, b), BIGINT))
    return tuple(replace(bound, source=source) for bound in bounds_of(normal_form(formula)))


def mask_cases(mask: int, a: Symbol, b: Symbol, source: Term | None = None) -> tuple[tuple[int, Normal], ...]:
    """The relations of a mask as few disjoint cases: parts of the mask, and each part as a conjunction.

    A prefix group is one case, and so are before and meets, and their converses.
    """
    cases: list[tuple[int, Normal]] = []
    for whole, bounds in (
        (GROUP_MASKS[0], [Bound(a.ts, b.ts, -1, source), Bound(b.ts, a.te, -1, source)]),
        (GROUP_MASKS[1], [Bound(a.ts, b.ts, 0, source), Bound(b.ts, a.ts, 0, source)]),
        (GROUP_MASKS[2], [Bound(b.ts, a.ts, -1, source), Bound(a.ts, b.te, -1, source)]),
        (Allen.BEFORE.bit | Allen.MEETS.bit, [Bound(a.te, b.ts, 0, source)]),
        (Allen.AFTER.bit | Allen.MET_BY.bit, [Bound(b.te, a.ts, 0, source)]),
    ):
        if mask & whole == whole:
            cases.append((whole, conjoin(bounds)))
            mask &= ~whole
    single = ((relation.bit, conjoin(relation_bounds(relation, a, b, source))) for relation in relations_in(mask))
    return (*cases, *single)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads conditions over the endpoints of symbols."""

    symbols: tuple[Symbol, ...]
    attributes: Mapping[str, Attribute]

    def normal_form(self, condition: Term) -> Normal:
        """The normal form, which is equivalent: without rounding, data and NULL."""
        formula = temporal_formula(condition, self.attributes)
        if inexact_part(formula) is not None or any(
            isinstance(term, Lit) and term.value is None for term in subterms(condition)
        ):
            raise QueryError(
                "TG153",
                f"a pattern can not ask for {term_text(condition)}",
                because=("patterns compare starts and ends, perhaps shifted by constant durations: t + c, min, max",),
                hint="conditions on data belong to the situations, or to where() on the matches, as do floor and ceil",
            )
        return normal_form(formula)

    def pair_of(self, part: Normal) -> tuple[int, int] | None:
        """The two symbols of which the part states exactly a set of Allen's relations; None for any other part.

        Only the order of their endpoints may count: on ticks, `<=` and `<` without shifts.
        """
        names = {name for bound in bounds_of(part) for name in (bound.v, bound.w)}
        involved = [k for k, symbol in enumerate(self.symbols) if symbol.ts in names or symbol.te in names]
        if len(involved) != 2 or any(self.symbols[k].points for k in involved):
            return None
        return (involved[0], involved[1]) if all(bound.c in (0, -1) for bound in bounds_of(part)) else None

    def mask(self, part: Normal, between: tuple[int, int]) -> int:
        """The relations between two symbols in which the part is true."""
        a, b = (self.symbols[k] for k in between)
        names = (a.ts, a.te, b.ts, b.te)
        examples = zip(RELATIONS, _EXAMPLES, strict=True)
        return mask_of(relation for relation, at in examples if holds(part, dict(zip(names, at, strict=True))))

    def negation(self, part: Normal, source: Term) -> Normal:
        """The negation; what is about two symbols inside it as the other relations, where these are fewer cases."""
        between = self.pair_of(part)
        if between is not None:
            a, b = (self.symbols[k] for k in between)
            literally = negated(part)
            others = disjoin(case for _, case in mask_cases(ANY & ~self.mask(part, between), a, b, source))
            return min(literally, others, key=estimate_zones)
        match part:
            case Bound():
                return negated(part)
            case All(parts):
                return disjoin(self.negation(conjoin(group), source) for group in self._by_pair(parts))
            case AnyOf(parts):
                return conjoin(self.negation(disjoin(group), source) for group in self._by_pair(parts))
            case _:
                assert_never(part)

    def _by_pair(self, parts: Sequence[Normal]) -> list[list[Normal]]:
        groups: dict[object, list[Normal]] = {}
        for position, part in enumerate(parts):
            groups.setdefault(self.pair_of(part) or position, []).append(part)
        return list(groups.values())
