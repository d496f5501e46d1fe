"""Which contexts of a model lie in others, overlap them, or never hold together: decided from their queries.

What is said is so whatever rows come (rule R61). Where nobody knows, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, permutations, product

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Group, Imbed, Node, Project, Rename, Select, Union
from tidegate.algebra.ordered.transitions.definition import Transition
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.row_wise import term_below
from tidegate.algebra.terms import MOST_OPERATIONS, Attr, Lit, Term, conjunction, conjuncts, size_of
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.report.predicate_sets import follows_from, never_together
from tidegate.analysis.validity.validity import refuting

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
        return sorted(around for one, around in self.inside if one == context)

    def apart_from(self, context: str) -> list[str]:
        """The contexts that never hold together with this one."""
        return sorted(other for one, other in self.apart if one == context)

    def overlapped_by(self, context: str) -> list[str]:
        """The contexts that hold whenever this one begins, where it does not lie in them."""
        return sorted(other for one, other in self.overlapping if one == context)

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
def relations_of(model: Transitions) -> Relations:
    """What is known of the contexts of a model."""
    queries = _derivings(model)
    if queries is None:
        return Relations()
    names = [type_.name for type_ in model.contexts if type_.name != model.default]
    found = _Finder(model.default, queries)
    held = [name for name in names if found.beginning(name)]
    inside = frozenset(pair for pair in permutations(held, 2) if found.lies_in(*pair))
    apart = found.apart(held)
    apart |= {(other, one) for one, other in apart}
    others = {*permutations(held, 2)} - inside - apart
    return Relations(inside, frozenset(apart), frozenset(pair for pair in others if found.begins_in(*pair, inside)))


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

    @property
    def beginning(self) -> str | None:
        """The context of which it may begin a window."""
        return None if self.transition.action == "terminate" else self.transition.context

    def may_end(self, context: str) -> bool:
        """Whether it may end a window of a context that is not the default one."""
        if self.transition.action == "terminate":
            return self.transition.context == context
        return self.transition.action == "switch" and context in self.transition.within

    def surely_ends(self, context: str) -> bool:
        """Whether each of its rows ends the context if that holds."""
        return self.since is None and not self.transition.one_cause and self.may_end(context)

    def looks_at(self, other: _Deriving) -> bool:
        """Whether it looks at the same rows as another one, and asks of each for the same partition and instant."""
        return self.rows == other.rows and (self.keys, self.at) == (other.keys, other.at)

    def one_at_each_instant(self) -> bool:
        """Whether a partition has one of the rows at each instant, at most."""
        of = {term.name for term in (*self.keys, self.at) if isinstance(term, Attr)}
        return isinstance(self.rows, Group) and of.issuperset(self.rows.keys)


@dataclass(slots=True)
class _Finder:
    default: str
    queries: Sequence[_Deriving]
    #: Those that may have rows.
    alive: list[_Deriving] = field(init=False)

    def __post_init__(self) -> None:
        self.alive = [one for one in self.queries if not _contradict(one.rows, one.conditions)]

    def beginning(self, context: str) -> list[_Deriving]:
        return [one for one in self.alive if one.beginning == context]

    def lies_in(self, context: str, around: str) -> bool:
        """Whether what begins a context begins the one around it, or finds that it holds, and what ends the one around
        it ends the context.
        """
        begun = all(
            any(
                other.beginning == around
                and (other.since is None or other.since == one.since)
                and {*one.transition.within} <= {*other.transition.within}
                and _follows(one, other)
                for other in self.queries
            )
            for one in self.beginning(context)
        )
        return begun and all(self._ends_as(one, context) for one in self.alive if one.may_end(around))

    def _ends_as(self, one: _Deriving, context: str) -> bool:
        """Whether a context ends, if it holds, at each row of a query."""
        return any(other.surely_ends(context) and _follows(one, other) for other in self.queries)

    def begins_in(self, context: str, around: str, inside: Iterable[Pair]) -> bool:
        """Whether a context begins only while the one around it holds, and by no query that ends that one."""
        within = {around, *(one for one, other in inside if other == around)}
        return all({*one.transition.within} <= within and not one.may_end(around) for one in self.beginning(context))

    def apart(self, names: Sequence[str]) -> set[Pair]:
        """The pairs that never hold together: of all pairs those of which no transaction makes both hold, if none of
        the pairs holds before it.
        """
        found = {*combinations(names, 2)}
        while failing := {pair for pair in found if not self._stays_apart(pair, found)}:
            found -= failing
        return found

    def _stays_apart(self, pair: Pair, known: set[Pair]) -> bool:
        for context, other in (pair, pair[::-1]):
            for one in self.beginning(context):
                excluded = all(self._are_apart(name, other, known) for name in one.transition.within)
                if not excluded and not self._ends_as(one, other):
                    return False
        first, second = map(self.beginning, pair)
        return all(self._never_both(one, other, known) for one, other in product(first, second))

    def _are_apart(self, one: str, other: str, known: set[Pair]) -> bool:
        if self.default in (one, other):
            return one != other
        return (one, other) in known or (other, one) in known

    def _never_both(self, one: _Deriving, other: _Deriving, known: set[Pair]) -> bool:
        """Whether two queries never count at one instant: as they stand in contexts that are apart, or as a partition
        has one row then, of which their conditions say the opposite.
        """
        if all(self._are_apart(*pair, known) for pair in product(one.transition.within, other.transition.within)):
            return True
        alone = one.looks_at(other) and one.one_at_each_instant()
        return alone and _contradict(one.rows, (*one.conditions, *other.conditions))


def _follows(one: _Deriving, other: _Deriving) -> bool:
    """Whether the other query has a candidate of the same partition and instant wherever the first one has."""
    if one is other:
        return True
    if other.may_fail or not one.looks_at(other):
        return False
    return all(_is_said(condition, one) for condition in other.conditions)


def _is_said(condition: Term, one: _Deriving) -> bool:
    """Whether a condition is true of all rows that a query asks for."""
    if condition in one.conditions:
        return True
    types = {attribute.name: attribute.type for attribute in one.rows.schema.attributes}
    if follows_from(condition, one.conditions, types):
        return True
    try:
        node = _selected(one.rows, one.conditions)
        return refuting(federation(node), condition, node.schema) is None
    except QueryError:
        return False


def _contradict(rows: Node, conditions: Sequence[Term]) -> bool:
    """Whether no row satisfies all the conditions, as it is known."""
    types = {attribute.name: attribute.type for attribute in rows.schema.attributes}
    if never_together(conditions, types):
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
