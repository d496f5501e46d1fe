"""Which contexts of a model lie in others, overlap them, or never hold together: decided from their queries.

What is said is so whatever rows come (rule R61). Where nobody knows, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, product

from tidegate.algebra.errors import QueryError
from tidegate.algebra.formulas import formula_variables, temporal_formula
from tidegate.algebra.nodes import Group, Imbed, Node, Project, Rename, Select, Union
from tidegate.algebra.ordered.transitions.definition import Transition
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.row_wise import term_below
from tidegate.algebra.terms import MOST_OPERATIONS, Attr, Lit, Term, attributes_of, conjunction, conjuncts, size_of
from tidegate.algebra.types import DataType
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.report.predicate_sets import follows_from, left_by
from tidegate.analysis.report.value_sets import ValueSet
from tidegate.analysis.validity.validity import refuting
from tidegate.analysis.zones.federation import Federation

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Relations:
    """Pairs of contexts but the default one. Of `inside` the second holds wherever the first does, and each window of
    the first lies in one of the second; those of `apart`, in both orders, hold at no instant together. Of `overlapping`
    each window of the first begins while the second holds, and may go on after that.
    """

    inside: frozenset[Pair] = frozenset()
    apart: frozenset[Pair] = frozenset()
    overlapping: frozenset[Pair] = frozenset()

    def around(self, context: str) -> list[str]:
        """The contexts in which this one lies."""
        return _seconds(self.inside).get(context, [])

    def apart_from(self, context: str) -> list[str]:
        """The contexts that never hold together with this one."""
        return _seconds(self.apart).get(context, [])

    def overlapped_by(self, context: str) -> list[str]:
        """The contexts that hold whenever this one begins, where it does not lie in them."""
        return _seconds(self.overlapping).get(context, [])

    def same(self) -> list[Pair]:
        """The pairs of contexts that hold at the same instants, each once."""
        return sorted(pair for pair in self.inside if pair[0] < pair[1] and pair[::-1] in self.inside)

    def needed(self, contexts: Iterable[str]) -> tuple[str, ...]:
        """Those of the contexts that have to be looked up to find where one of them holds."""
        left = list(dict.fromkeys(contexts))
        for context in tuple(left):
            if any((context, other) in self.inside for other in left if other != context):
                left.remove(context)
        return tuple(left)


@lru_cache(maxsize=64)
def _seconds(pairs: frozenset[Pair]) -> Mapping[str, list[str]]:
    """The second ones of pairs, in order, by the first."""
    found: dict[str, list[str]] = {}
    for first, second in sorted(pairs):
        found.setdefault(first, []).append(second)
    return found


@lru_cache(maxsize=64)
def relations_of(model: Transitions) -> Relations:
    """What is known of the contexts of a model."""
    queries = _derivings(model)
    if queries is None:
        return Relations()
    found = _Finder(model.default, tuple(type_.name for type_ in model.contexts), queries)
    inside = {context: found.around(context) for context in found.held}
    apart = found.apart()
    overlapping = {
        (context, other)
        for context in found.held
        for other in found.held - {context} - inside[context] - apart[context]
        if found.begins_in(context, other, inside)
    }
    return Relations(
        frozenset((context, other) for context, others in inside.items() for other in others),
        frozenset((context, other) for context in found.held for other in apart[context] - {model.default}),
        frozenset(overlapping),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Deriving:
    """A deriving query: the rows that it looks at one by one, its conditions on them, and where its candidates get
    their keys, instant and beginning. `may_fail`: a term of it may have no value, and such rows are set aside.
    """

    transition: Transition
    rows: Node
    conditions: tuple[Term, ...]
    keys: tuple[Term, ...]
    at: Term
    since: Term | None
    may_fail: bool
    types: Mapping[str, DataType] = field(init=False)
    within: frozenset[str] = field(init=False)
    #: The values that its conditions leave, by attribute.
    left: Mapping[str, ValueSet] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", _types(self.rows))
        object.__setattr__(self, "within", frozenset(self.transition.within))
        object.__setattr__(self, "left", left_by(self.conditions, self.types))

    @property
    def beginning(self) -> str | None:
        """The context of which it may begin a window."""
        return None if self.transition.action == "terminate" else self.transition.context

    @property
    def may_end(self) -> frozenset[str]:
        """The contexts but the default one of which it may end a window."""
        if self.transition.action == "terminate":
            return frozenset((self.transition.context,))
        return self.within if self.transition.action == "switch" else frozenset()

    @property
    def surely_ends(self) -> frozenset[str]:
        """Those that each of its rows ends if they hold."""
        return self.may_end if self.since is None and not self.transition.one_cause else frozenset()

    @property
    def looks_at(self) -> tuple[Node, tuple[Term, ...], Term]:
        """The rows that it looks at, and the partition and the instant for which it asks at each."""
        return self.rows, self.keys, self.at

    def one_at_each_instant(self) -> bool:
        """Whether a partition has one of the rows at each instant, at most."""
        of = {term.name for term in (*self.keys, self.at) if isinstance(term, Attr)}
        return isinstance(self.rows, Group) and of.issuperset(self.rows.keys)


@dataclass(slots=True)
class _Finder:
    """What is found is as large as the pairs of contexts, and so is the work: what each query begins and ends is found
    once, and contexts are compared as sets.
    """

    default: str
    names: tuple[str, ...]
    queries: Sequence[_Deriving]
    #: Those that may have rows, by the context that they may begin, and by those that they may end.
    beginning: dict[str, list[_Deriving]] = field(init=False)
    ending: dict[str, list[_Deriving]] = field(init=False)
    #: The contexts but the default one that may begin.
    held: frozenset[str] = field(init=False)
    #: Queries that look at the same rows, by these, and what each of these begins or ends as well.
    beside: dict[object, list[_Deriving]] = field(init=False)
    begun: dict[_Deriving, frozenset[str]] = field(init=False, default_factory=dict)
    ended: dict[_Deriving, frozenset[str]] = field(init=False, default_factory=dict)
    federations: dict[_Deriving, Federation] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.beginning = {name: [] for name in self.names}
        self.ending = {name: [] for name in self.names}
        self.beside = {}
        for one in self.queries:
            self.beside.setdefault(one.looks_at, []).append(one)
            if _contradict(one.rows, one.conditions):
                continue
            if one.beginning is not None:
                self.beginning[one.beginning].append(one)
            for context in one.may_end:
                self.ending[context].append(one)
        self.held = frozenset(name for name, begun in self.beginning.items() if begun) - {self.default}

    def around(self, context: str) -> frozenset[str]:
        """The contexts in which one lies: what begins it begins them, or finds that they hold, and what ends them ends
        it.
        """
        begun = self.held - {context}
        for one in self.beginning[context]:
            begun &= self._begun_at(one)
        return frozenset(other for other in begun if all(context in self._ended_at(one) for one in self.ending[other]))

    def _begun_at(self, one: _Deriving) -> frozenset[str]:
        """The contexts that begin, unless they hold, at each row of a query that counts."""
        if one not in self.begun:
            self.begun[one] = frozenset(
                other.beginning
                for other in self.beside[one.looks_at]
                if other.beginning is not None
                and (other.since is None or other.since == one.since)
                and one.within <= other.within
                and self._follows(one, other)
            )
        return self.begun[one]

    def _ended_at(self, one: _Deriving) -> frozenset[str]:
        """The contexts that end, if they hold, at each row of a query."""
        if one not in self.ended:
            beside = self.beside[one.looks_at]
            ended = (other.surely_ends for other in beside if other.surely_ends and self._follows(one, other))
            self.ended[one] = frozenset().union(*ended)
        return self.ended[one]

    def begins_in(self, context: str, around: str, inside: Mapping[str, frozenset[str]]) -> bool:
        """Whether a context begins only while the one around it holds, and by no query that ends that one."""
        return all(
            all(name == around or around in inside.get(name, ()) for name in one.transition.within)
            and around not in one.may_end
            for one in self.beginning[context]
        )

    def apart(self) -> dict[str, set[str]]:
        """Of each context those that never hold together with it: of all pairs those of which no transaction makes both
        hold, if none of the pairs holds before it.
        """
        found = {name: {self.default, *(self.held - {name} if name in self.held else ())} for name in self.names}
        found[self.default] = {*self.names} - {self.default}
        left = [*combinations(sorted(self.held), 2)]
        while True:
            staying: list[Pair] = []
            for one, other in left:
                if self._stays_apart(one, other, found):
                    staying.append((one, other))
                else:
                    # At once: the pairs that follow from this one fail in the same round.
                    found[one].discard(other)
                    found[other].discard(one)
            if len(staying) == len(left):
                return found
            left = staying[::-1]

    def _stays_apart(self, first: str, second: str, known: Mapping[str, set[str]]) -> bool:
        for context, other in ((first, second), (second, first)):
            for one in self.beginning[context]:
                if not one.within <= known[other] and other not in self._ended_at(one):
                    return False
        return all(
            self._never_both(one, other, known) for one, other in product(self.beginning[first], self.beginning[second])
        )

    def _never_both(self, one: _Deriving, other: _Deriving, known: Mapping[str, set[str]]) -> bool:
        """Whether two queries never count at one instant: as they stand in contexts that are apart, or as a partition
        has one row then, of which their conditions say the opposite.
        """
        if one.within.isdisjoint(other.within) and all(one.within <= known[name] for name in other.within):
            return True
        if one not in self.beside[other.looks_at] or not one.one_at_each_instant():
            return False
        if any((values & one.left[name]).is_empty for name, values in other.left.items() if name in one.left):
            return True
        # Both may have rows, so only conditions of both on instants can say the opposite.
        of_instants = (any(_is_of_instants(condition, of.rows) for condition in of.conditions) for of in (one, other))
        return all(of_instants) and _contradict(one.rows, (*one.conditions, *other.conditions))

    def _follows(self, one: _Deriving, other: _Deriving) -> bool:
        """Whether the other query, which looks at the same rows, has a candidate of the same partition and instant
        wherever the first one has, which may have rows.
        """
        return one is other or (
            not other.may_fail and all(self._is_said(condition, one) for condition in other.conditions)
        )

    def _is_said(self, condition: Term, one: _Deriving) -> bool:
        """Whether a condition is true of all rows that a query asks for."""
        if follows_from(condition, one.left, one.types) or condition in one.conditions:
            return True
        if not _is_of_instants(condition, one.rows):
            return False
        try:
            if one not in self.federations:
                self.federations[one] = federation(_selected(one.rows, one.conditions))
            return refuting(self.federations[one], condition, one.rows.schema) is None
        except QueryError:
            return False


@lru_cache(maxsize=4096)
def _is_of_instants(condition: Term, rows: Node) -> bool:
    """Whether a condition says something of the instants of rows, or is a constant."""
    return not attributes_of(condition) or bool(formula_variables(temporal_formula(condition, rows.schema)))


def _types(rows: Node) -> dict[str, DataType]:
    return {attribute.name: attribute.type for attribute in rows.schema.attributes}


def _contradict(rows: Node, conditions: Sequence[Term]) -> bool:
    """Whether no row satisfies all the conditions, as it is known."""
    if any(values.is_empty for values in left_by(conditions, _types(rows)).values()):
        return True
    try:
        return not federation(_selected(rows, conditions)).zones
    except QueryError:
        return False


def _selected(rows: Node, conditions: Sequence[Term]) -> Node:
    return Select(rows, conjunction([*conditions])) if conditions else rows


def _derivings(model: Transitions) -> tuple[_Deriving, ...] | None:
    """The deriving queries of a model, read from its candidates; None where these are put together otherwise."""
    parts = model.input.inputs if isinstance(model.input, Union) else (model.input,)
    found = tuple(_read(model, parts))
    return found if len(found) == len(parts) == len(model.transitions) else None


def _read(model: Transitions, parts: Sequence[Node]) -> Iterator[_Deriving]:
    for number, (part, transition) in enumerate(zip(parts, model.transitions, strict=False)):
        beside = [] if model.since is None else [model.since]
        found = _below(part, (model.number, model.time, *model.keys, *beside))
        if found is None:
            return
        rows, terms, conditions, may_fail = found
        asked, at, *others = terms
        if not isinstance(asked, Lit) or asked.value != number:
            return
        keys, since = others[: len(model.keys)], [term for term in others[len(model.keys) :] if term != at]
        yield _Deriving(transition, rows, tuple(conditions), tuple(keys), at, since[0] if since else None, may_fail)


def _below(node: Node, names: Sequence[str]) -> tuple[Node, list[Term], list[Term], bool] | None:
    """What lies below operators that look at rows one by one; attributes of theirs, and their conditions, as terms over
    it; and whether such a term may have no value. None where these are too large.
    """
    terms: list[Term] = [Attr(name) for name in names]
    conditions: list[Term] = []
    may_fail = False
    while isinstance(node, Select | Project | Rename | Imbed):
        if isinstance(node, Select):
            may_fail |= can_fail(node.condition, node.input.schema)
            conditions += conjuncts(node.condition)
        elif isinstance(node, Imbed):
            may_fail |= can_fail(node.term, node.input.schema)
        terms, conditions = ([term_below(term, node) for term in some] for some in (terms, conditions))
        if any(size_of(term) > MOST_OPERATIONS for term in (*terms, *conditions)):
            return None
        node = node.input
    return node, terms, conditions, may_fail
