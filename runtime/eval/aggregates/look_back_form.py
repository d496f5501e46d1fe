"""Which groupings have, of each row of one side of a join, what that row looks up on the other side.

Between grouping and join there may be names, new attributes and projections: what these make is put into the keys and
the aggregates, so that they read attributes of the join. The looking side is then the left one, whichever it is in the
tree, and has the keys as columns. Of joins one on another the left side of the first may look up all others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, lru_cache, partial
from typing import Final

from tidegate.algebra.evaluation import is_null_of_nulls
from tidegate.algebra.functions.aggregates import Aggregate, Form, Function
from tidegate.algebra.nodes import Group, Imbed, Join, JoinKind, Node, Project, Rename, Scan
from tidegate.algebra.rewrites.conditions import can_fail, reads_only
from tidegate.algebra.row_wise import term_below
from tidegate.algebra.schema import Attribute, Schema, StreamDef, unused_mark
from tidegate.algebra.terms import Attr, Lit, Term, attributes_of, substitute, subterms
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BIGINT
from tidegate.runtime.eval.joins.bands import is_one_slice
from tidegate.runtime.plan.join_parts import Equality, JoinParts, join_parts

#: Parts of a term that is made of others, up to which it is looked at: attributes that are made of each other double.
_LARGEST: Final = 200
#: Sides that are looked up at most: each is a term of the product that an aggregate is multiplied by.
MOST_LOOKS: Final = 8
_KINDS: Final[tuple[JoinKind, ...]] = ("inner", "left")


class Side(Enum):
    """What an aggregate reads of a row of the join. Of `BOTH` one gives the argument, the other the order."""

    LEFT = "left"
    RIGHT = "right"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Reads:
    """The sides that an aggregate reads: the looking one, a side that is looked up by its number, or both."""

    side: Side
    look: int = 0


@dataclass(frozen=True)
class Look:
    """A side that is looked up. `found` are values of its rows beside each of which a looking row stands; `padded`: a
    looking row without partners stays.
    """

    right: Node
    plain: JoinParts
    padded: bool
    found: Mapping[str, Term]

    def gives(self, term: Term) -> bool:
        """Whether a term reads rows of this side, and nothing else."""
        return reads_only(self.right.schema)(term)

    @cached_property
    def parts(self) -> JoinParts:
        """The parts of the condition, with the values that are found: groups take NULL as equal."""
        found = (Equality(Attr(name), term, null_safe=True) for name, term in self.found.items())
        return replace(self.plain, equalities=(*self.plain.equalities, *found))


@dataclass(frozen=True)
class LookBack:
    """A grouping of joins that can be computed looking row by looking row.

    `asked` is the grouping as it stands in the tree, `joins` the joins below it from the innermost on, whose rows
    nobody needs. Of their inputs the `looking` one looks up the others, `looks`. `keys` has by key the column of the
    looking side; columns `added` are made of its row. `aggregates` are over the joins. `checked` are terms over one
    side that may have no value, for which rows of the joins are asked. `reads` says what each aggregate reads: those
    that count rows read the looking side.
    """

    asked: Group
    joins: tuple[Join, ...]
    looking: int
    looks: tuple[Look, ...]
    keys: Mapping[str, str]
    added: Mapping[str, Term]
    aggregates: tuple[Aggregate, ...]
    checked: tuple[Term, ...]
    reads: tuple[Reads, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """What the joins are made of."""
        return _inputs(self.joins)

    @cached_property
    def left(self) -> Node:
        """The looking rows with the columns of keys."""
        own = self.inputs[self.looking].schema.attributes
        every = Schema((*own, *(one for look in self.looks for one in look.right.schema.attributes)))
        made = {**self.added, **{name: term for look in self.looks for name, term in look.found.items()}}
        columns = (Attribute(name, term_type(term, every)) for name, term in made.items())
        return Scan(StreamDef("looking", Schema((*own, *columns)), static=True))

    @cached_property
    def group(self) -> Group:
        """The grouping over the joins of the looking rows with the sides that are looked up."""
        rows = self.left
        for join, look in zip(self.joins, self.looks, strict=True):
            rows = Join(rows, look.right, join.condition, join.kind)
        return Group(rows, tuple(dict.fromkeys(self.keys.values())), self.aggregates)

    @cached_property
    def schema(self) -> Schema:
        """All attributes that terms read."""
        sides = (self.left, *(look.right for look in self.looks))
        return Schema(tuple(attribute for side in sides for attribute in side.schema.attributes))

    @property
    def key_terms(self) -> frozenset[Term]:
        """The keys as terms over the looking side."""
        return frozenset(self.added.get(column, Attr(column)) for column in self.keys.values())

    @cached_property
    def merged(self) -> Group:
        """The grouping of what left rows yield: of how many different values partners have, the most counts."""
        most = (
            replace(one, function=Function.MAX, argument=Lit(0, BIGINT)) if one.entry.form is Form.DISTINCT else one
            for one in self.group.aggregates
        )
        return Group(self.group.input, self.group.keys, tuple(most))

    @cached_property
    def of_left(self) -> Group:
        """What is needed of looking rows, aggregate by aggregate."""
        return Group(self.left, self.group.keys, self._of(Side.LEFT, range(len(self.looks))))

    @cached_property
    def of_right(self) -> tuple[Group, ...]:
        """What is needed of the rows of each side that is looked up, aggregate by aggregate."""
        return tuple(Group(look.right, (), self._of(Side.RIGHT, (number,))) for number, look in enumerate(self.looks))

    def _of(self, side: Side, looks: Collection[int]) -> tuple[Aggregate, ...]:
        chosen: list[Aggregate] = []
        for aggregate, reads in zip(self.group.aggregates, self.reads, strict=True):
            if reads.side is side and reads.look in looks:
                chosen.append(aggregate)
            elif reads.side is Side.BOTH and reads.look in looks:
                look = self.looks[reads.look]
                (term,) = (one for one in aggregate.terms if look.gives(one) == (side is Side.RIGHT))
                latest = term == aggregate.by and aggregate.entry.form is Form.LATEST
                chosen.append(Aggregate(aggregate.name, Function.MAX if latest else Function.MIN, term))
        return tuple(chosen)


@lru_cache(maxsize=1024)
def look_back(group: Group, *, at_most: int = MOST_LOOKS) -> LookBack | None:
    """The grouping as one of what each row of a side looks up, on so many other sides at most; None where it is none.

    The more sides are looked up, the fewer rows of joins there have to be.
    """
    over = _over_join(group)
    if over is None:
        return None
    chain = _chain(over.join)
    for count in range(min(len(chain), at_most), 1, -1):
        if (found := _looked_up(over, chain[-count:], looking=0)) is not None:
            return found
    ways = (_looked_up(over, chain[-1:], looking=looking) for looking in (0, 1))
    return min((way for way in ways if way is not None), key=_found_instants, default=None)


def _found_instants(way: LookBack) -> tuple[int, int]:
    """How many keys are found in right rows, and how many of these are instants, of which there are the most."""
    (look,) = way.looks
    instants = (any(look.right.schema[name].temporal for name in attributes_of(term)) for term in look.found.values())
    return len(look.found), sum(instants)


def _chain(join: Join) -> tuple[Join, ...]:
    """The join behind those that its left side is made of, the innermost first: inner and left ones with nothing but
    projections between them.
    """
    chain = [join]
    while True:
        below = chain[-1].left
        while isinstance(below, Project):
            below = below.input
        if not isinstance(below, Join) or below.kind not in _KINDS:
            return tuple(reversed(chain))
        chain.append(below)


@dataclass(frozen=True, slots=True)
class _OverJoin:
    """A grouping whose keys and aggregates are terms over the join below it. So are those that are `checked`: new
    attributes that may have no value, whether they are read or not.
    """

    group: Group
    join: Join
    keys: Mapping[str, Term]
    aggregates: tuple[Aggregate, ...]
    checked: tuple[Term, ...]


def _over_join(group: Group) -> _OverJoin | None:
    """The grouping of a join; None where there is none, or where terms would be large."""
    keys: dict[str, Term] = {key: Attr(key) for key in group.keys}
    checked: list[Term] = []
    aggregates, node = group.aggregates, group.input
    while isinstance(node, Project | Rename | Imbed):
        below = partial(term_below, node=node)
        keys = {key: below(term) for key, term in keys.items()}
        checked = [below(term) for term in checked]
        if isinstance(node, Imbed) and can_fail(node.term, node.input.schema):
            checked.append(node.term)
        aggregates = tuple(one.with_terms(below) for one in aggregates)
        read = (*keys.values(), *checked, *(term for one in aggregates for term in one.terms))
        if any(map(_is_large, read)):
            return None
        node = node.input
    if not isinstance(node, Join) or node.kind not in _KINDS:
        return None
    return _OverJoin(group, node, keys, aggregates, tuple(checked))


def _is_large(term: Term) -> bool:
    return any(number >= _LARGEST for number, _ in enumerate(subterms(term)))


def _inputs(joins: Sequence[Join]) -> tuple[Node, ...]:
    return joins[0].left, *(join.right for join in joins)


def _looked_up(over: _OverJoin, joins: tuple[Join, ...], *, looking: int) -> LookBack | None:
    """The grouping as one of what the rows of an input of the joins look up: the first, or the second one of a single
    inner join.
    """
    if looking and joins[0].kind != "inner":
        return None
    inputs = _inputs(joins)
    left, rights = inputs[looking], [*inputs[:looking], *inputs[looking + 1 :]]
    looks = _looks(left, rights, joins)
    if looks is None:
        return None
    # What attributes of other sides are in a row, as terms over the looking one.
    equal = {one.right: one.left for look in looks if not look.padded for one in look.plain.equalities}
    terms = {key: substitute(term, lambda leaf: equal.get(leaf, leaf)) for key, term in over.keys.items()}
    attributes = [name for side in inputs for name in side.schema]
    if len({*attributes}) < len(attributes):  # one was projected away
        return None
    results = {one.name for one in over.aggregates}
    keys, made = _columns(terms, set(left.schema) - results, unused_mark({*attributes, *results}))
    added = {name: term for name, term in made.items() if attributes_of(term) <= set(left.schema)}
    found = {name: term for name, term in made.items() if name not in added}
    if found:
        if len(looks) > 1 or looks[0].padded or looks[0].plain.equalities:
            return None
        if not all(looks[0].gives(term) for term in found.values()):
            return None
        looks = (replace(looks[0], found=found),)
    checked = tuple(term for term in over.checked if term not in added.values())
    others = [term for term in checked if not attributes_of(term) <= set(left.schema)]
    if not all(any(_has_no_more_values(term, look) for look in looks) for term in others):
        return None
    reads = [read for aggregate in over.aggregates if (read := _reads(aggregate, left.schema, looks)) is not None]
    if len(reads) < len(over.aggregates):
        return None
    return LookBack(
        asked=over.group,
        joins=joins,
        looking=looking,
        looks=looks,
        keys=keys,
        added=added,
        aggregates=over.aggregates,
        checked=checked,
        reads=tuple(reads),
    )


def _looks(left: Node, rights: Sequence[Node], joins: Sequence[Join]) -> tuple[Look, ...] | None:
    """The sides that rows of the left one look up by the conditions of these joins; None where partners depend on each
    other, or are not adjacent in any order.
    """
    looks = []
    for right, join in zip(rights, joins, strict=True):
        both = Schema((*left.schema.attributes, *right.schema.attributes))
        if not attributes_of(join.condition) <= set(both):
            return None
        parts = join_parts(join.condition, left.schema, right.schema)
        # A condition on the pair, or a range of another term, leaves partners that are not adjacent in any order.
        if parts.rest or not is_one_slice(parts.ranges, both):
            return None
        looks.append(Look(right, parts, join.kind == "left", {}))
    return tuple(looks)


def _has_no_more_values(term: Term, look: Look) -> bool:
    """Whether a term has a value for each row of the join if it has one for each right row: padded rows have, too."""
    return look.gives(term) and (not look.padded or is_null_of_nulls(term, look.right.schema))


def _columns(terms: Mapping[str, Term], own: set[str], mark: str) -> tuple[dict[str, str], dict[str, Term]]:
    """By key the column of the looking side that has it, one of its `own` or one that begins with the mark, and the
    terms of the latter.
    """
    keys: dict[str, str] = {}
    made: dict[str, Term] = {}
    for number, (key, term) in enumerate(terms.items()):
        if isinstance(term, Attr) and term.name in own:
            keys[key] = term.name
        else:
            keys[key] = f"{mark}{number}"
            made[keys[key]] = term
    return keys, made


def _reads(aggregate: Aggregate, left: Schema, looks: Sequence[Look]) -> Reads | None:
    """What an aggregate reads; None where it cannot be computed looking row by looking row.

    Of padded rows an attribute is NULL and adds nothing, and so does a term that is NULL of NULLs.
    """
    terms, form = aggregate.terms, aggregate.entry.form
    if form in (Form.SKETCH, Form.WHOLE):
        return None
    of = {term: number for term in terms for number, look in enumerate(looks) if look.gives(term)}
    if not all(attributes_of(term) <= set(left) for term in terms if term not in of) or len({*of.values()}) > 1:
        return None
    if not of:
        return None if form is Form.DISTINCT else Reads(Side.LEFT)
    look = looks[number := next(iter(of.values()))]
    if look.padded and not all(is_null_of_nulls(term, look.right.schema) for term in of):
        return None
    return Reads(Side.RIGHT if all(term in of for term in terms) else Side.BOTH, number)
