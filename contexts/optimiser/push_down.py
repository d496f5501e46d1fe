"""Filters by contexts move towards the streams (rule R53): below what makes rows of those that pass alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    children,
    nodes_of,
    unless_equal,
    with_children,
)
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.program import Query
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.row_wise import is_static
from tidegate.algebra.terms import TRUE, Attr, Call, Term, call, conjunction, conjuncts
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.validity.validity import refuting
from tidegate.analysis.zones.federation import Federation
from tidegate.contexts.optimiser.filters import (
    ContextFilter,
    Models,
    changes_of,
    filter_of,
    is_look_up,
    with_attributes,
)
from tidegate.contexts.optimiser.whole_matches import below_intervals, below_row_pattern

#: What becomes of a filter that has come down to a stream; None: it is not worth while.
AtScan = Callable[[ContextFilter, Scan], Node | None]
#: What becomes of a filter that has come down to rows, with which it goes no further; None: it does.
At = Callable[[ContextFilter, Node], Node | None]


def pushed_down(query: Query, models: Models) -> Query:
    """The query with its filters by contexts as far down as they go; itself where none goes down.

    Rows, and what can fail, stay the same: a term that may have no value is evaluated on the same rows as before.
    """
    return with_filters_lowered(query, models, lambda made, rows: lowered(made, rows, models, lambda *_: None))


def with_filters_lowered(query: Query, models: Models, lower: Callable[[ContextFilter, Node], Node | None]) -> Query:
    """The query in which `lower` says what stands for a filter over its rows; None: the same as before."""

    def lowered_at(node: Node) -> Node | None:
        found = filter_of(node, models)
        put = None if found is None else lower(*found)
        return None if put is None else with_attributes(put, node.schema.names)

    return rewritten_by(query, lowered_at)


def rewritten_by(query: Query, rule: Callable[[Node], Node | None]) -> Query:
    """The query in which `rule` says what stands for a node, whose inputs it has had before; None: the same as before.
    What would have other attributes is left as it was.
    """
    sites: dict[Term | Node, Site] = {}
    done: dict[Node, Node] = {}

    def rewritten(node: Node) -> Node:
        if node in done:
            return done[node]
        below = with_children(node, tuple(unless_equal(child, rewritten(child)) for child in children(node)))
        made = rule(below)
        result = below if made is None or made.schema != below.schema else made
        if result is not node and node in query.sites:
            sites[result] = query.sites[node]
        done[node] = result
        return result

    node = rewritten(query.node)
    return query if node is query.node else replace(query, node=node, sites={**query.sites, **sites})


def lowered(made: ContextFilter, rows: Node, models: Models, at_scan: AtScan) -> Node | None:
    """The rows that pass, with what they carry, where the filter goes below an operator that gathers rows, or to a
    stream that `at_scan` takes; else None. Rows that were gathered for several contexts are looked up as they are.
    """
    return None if _are_gathered(made, rows, models) else _Lowering(models, at_scan, lambda *_: None).of(made, rows)


def lowered_to(made: ContextFilter, rows: Node, models: Models, at: At) -> Node | None:
    """The same, where the filter goes no further than to rows that `at` takes."""
    return None if _are_gathered(made, rows, models) else _Lowering(models, lambda *_: None, at).of(made, rows)


def _are_gathered(made: ContextFilter, rows: Node, models: Models) -> bool:
    """Whether the rows were found in one of several contexts, of which a filter asks for some."""
    asked = changes_of(made.joins[0], models) if len(made.joins) == 1 else None
    if asked is None:
        return False
    known = (changes_of(node, models) for node in nodes_of(rows) if isinstance(node, AsOf))
    return any(of is not None and of[0] == asked[0] and {*asked[1]} < {*of[1]} for of in known)


@dataclass(frozen=True, slots=True)
class _Lowering:
    """`of` gives rows with the attributes that they had before, in their order, and then what they carry."""

    models: Models
    at_scan: AtScan
    at: At

    def of(self, made: ContextFilter, rows: Node) -> Node | None:
        if not made.fits(rows.schema):
            return None
        if (there := self.at(made, rows)) is not None:
            return there
        match rows:
            case Scan():
                return self.at_scan(made, rows)
            case Select(input_, condition):
                if can_fail(condition, input_.schema) or (below := self.of(made, input_)) is None:
                    return None
                return Select(below, condition)
            case Project(input_, names):
                below = self.of(made, input_)
                return None if below is None else Project(below, (*names, *made.carried))
            case Rename(input_, pairs):
                below = self.of(made.named({new: old for old, new in pairs}), input_)
                return None if below is None else Rename(below, pairs)
            case Imbed(input_, name, term):
                if name in made.read or can_fail(term, input_.schema) or (below := self.of(made, input_)) is None:
                    return None
                return self._in_order(made, rows, Imbed(below, name, term))
            case Distinct(input_):
                return Distinct(self.put(made, input_))
            case Group():
                return self._below_group(made, rows)
            case Union(inputs):
                parts = [self.of(made, input_) for input_ in inputs]
                if all(part is None for part in parts):
                    return None
                return Union(
                    tuple(
                        made.over(input_) if part is None else part for input_, part in zip(inputs, parts, strict=True)
                    )
                )
            case Difference(left, right):
                return None if made.carried else Difference(self.put(made, left), right)
            case Join():
                return self._below_join(made, rows)
            case Product(left, right):
                return self._below_product(made, rows, left, right)
            case AsOf(left=left):
                return self._below_as_of(made, rows, left)
            case Sequences():
                return below_row_pattern(made, rows, self.put)
            case Match():
                return below_intervals(made, rows, self.models, self.put, _is_ordered)
            case _:
                # Any other operator reads rows before the window, too, or rows of several keys.
                return None

    def put(self, made: ContextFilter, rows: Node) -> Node:
        """The rows that pass: looked up below, or right here."""
        below = self.of(made, rows)
        return made.over(rows) if below is None else below

    def _beside(self, made: ContextFilter, rows: Node, other: Node) -> Node | None:
        """The same for one side of two; that it stands beside a static table alone is no reason to look up below."""
        return self.of(made, rows) if is_static(other) else self.put(made, rows)

    def _in_order(self, made: ContextFilter, rows: Node, node: Node) -> Node:
        return with_attributes(node, (*rows.schema.names, *made.carried))

    def _below_group(self, made: ContextFilter, rows: Group) -> Node | None:
        """A group passes as a whole, where its keys say whether. Row-wise parts are grouped as they come, which costs
        less than to look up each row: so only where there is more below.
        """
        read = [term for one in rows.aggregates for term in one.terms]
        if not made.read <= {*rows.keys} or any(can_fail(term, rows.input.schema) for term in read):
            return None
        below = self.of(made, rows.input)
        if below is None:
            return None
        return self._in_order(made, rows, Group(below, (*rows.keys, *made.carried), rows.aggregates))

    def _below_product(self, made: ContextFilter, rows: Node, left: Node, right: Node) -> Node | None:
        if made.fits(left.schema):
            below = self._beside(made, left, right)
            return None if below is None else self._in_order(made, rows, Product(below, right))
        if made.fits(right.schema):
            below = self._beside(made, right, left)
            return None if below is None else Product(left, below)
        return None

    def _below_as_of(self, made: ContextFilter, rows: AsOf, left: Node) -> Node | None:
        """Each left row finds its partner by itself. Of two filters by contexts it does not matter which is below."""
        if not made.fits(left.schema):
            return None
        below = self.of(made, left) if is_look_up(rows, self.models) else self.put(made, left)
        return None if below is None else self._in_order(made, rows, replace(rows, left=below))

    def _below_join(self, made: ContextFilter, rows: Join) -> Node | None:
        """To the side that has all that is read; to the right one of an inner join only. Where the beginning of a match
        is of one side and its end of the other, both are in the window.
        """
        left, right, condition, kind = rows.left, rows.right, rows.condition, rows.kind
        if can_fail(condition, {**left.schema, **right.schema}):
            return None
        if made.fits(left.schema):
            below = self._beside(made, left, right)
            return None if below is None else self._in_order(made, rows, Join(below, right, condition, kind))
        if kind != "inner":
            return None
        if made.fits(right.schema):
            below = self._beside(made, right, left)
            return None if below is None else Join(left, below, condition, kind)
        return self._whole_match(made, rows)

    def _whole_match(self, made: ContextFilter, rows: Join) -> Node | None:
        own, rest = made.split()
        if rest == TRUE or not own.removes_rows:
            return None
        sides = [rows.left, rows.right]
        of = next((place for place, side in enumerate(sides) if own.fits(side.schema)), None)
        if of is None:
            return None
        other = _earlier_part(made, rows, sides[1 - of])
        sides[of] = self.put(own, sides[of])
        if other is not None:
            sides[1 - of] = self.put(other, sides[1 - of])
        return self._in_order(made, rows, Select(Join(sides[0], sides[1], rows.condition, "inner"), rest))


def _earlier_part(made: ContextFilter, join: Join, rows: Node) -> ContextFilter | None:
    """The filter that the rows of one side of a join pass wherever the join's rows pass: their instants lie between
    that since which a context has to have held and that at which it holds, and their keys are equal.
    """
    first = made.since
    equal = {
        frozenset((one.name, other.name))
        for part in conjuncts(join.condition)
        if isinstance(part, Call) and part.op == "eq"
        for one, other in [part.args]
        if isinstance(one, Attr) and isinstance(other, Attr)
    }
    keys = {
        key: name
        for key in made.keys
        for name in rows.schema
        if frozenset((key, name)) in equal and rows.schema[name].type == join.schema[key].type
    }
    if first is None or first not in rows.schema or keys.keys() != {*made.keys}:
        return None
    zones = _zones(join)
    if zones is None or not _ordered(zones, join, first, made.at):
        return None
    type_ = join.schema[made.at].type
    between = [
        name
        for name in rows.schema.temporal
        if name != first and rows.schema[name].type == type_
        if _ordered(zones, join, first, name) and _ordered(zones, join, name, made.at)
    ]
    own, rest = made.split()
    # Keys that are equal are there: to ask for that would make more known of these rows than before.
    there = [call("is_not_null", Attr(key)) for key in made.keys]
    asked = [part for part in conjuncts(own.condition) if part not in there]
    at = between[-1] if between else first
    whole = ContextFilter(own.joins, conjunction(asked), ()).named({**keys, made.at: at})
    return replace(whole, condition=conjunction([whole.condition, rest])) if at != first else whole


def _is_ordered(rows: Node, first: str, last: str) -> bool:
    zones = _zones(rows)
    return zones is not None and _ordered(zones, rows, first, last)


def _zones(join: Node) -> Federation | None:
    """The zones of rows; None where nobody can tell them."""
    try:
        return federation(join)
    except QueryError:
        return None


def _ordered(zones: Federation, join: Node, first: str, last: str) -> bool:
    """Whether an instant of each row is never after another."""
    if not {first, last} <= {*join.schema.temporal}:
        return False
    return first == last or refuting(zones, call("le", Attr(first), Attr(last)), join.schema) is None
