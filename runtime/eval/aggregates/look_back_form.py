"""Which groupings have, of each row of one side of a join, what that row looks up on the other side.

Between grouping and join there may be names, new attributes and projections: what these make is put into the keys and
the aggregates, so that they read attributes of the join. The looking side is then the left one, whichever it is in the
tree, and has the keys as columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import Final

from tidegate.algebra.evaluation import is_null_of_nulls
from tidegate.algebra.functions.aggregates import Aggregate, Form, Function
from tidegate.algebra.nodes import Group, Imbed, Join, Project, Rename, Scan
from tidegate.algebra.schema import Attribute, Schema, StreamDef, unused_mark
from tidegate.algebra.terms import Attr, Lit, Param, Term, attributes_of, rename_attributes, substitute, subterms
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import BIGINT
from tidegate.runtime.eval.joins.bands import is_one_slice
from tidegate.runtime.plan.join_parts import Equality, JoinParts, join_parts

#: Parts of a term that is made of others, up to which it is looked at: attributes that are made of each other double.
_LARGEST: Final = 200


class Side(Enum):
    """What an aggregate reads of a pair. Of `BOTH` one gives the argument, the other the order."""

    LEFT = "left"
    RIGHT = "right"
    BOTH = "both"


@dataclass(frozen=True)
class LookBack:
    """A grouping of a join that can be computed looking row by looking row.

    `asked` is the grouping as it stands in the tree, `source` the join below it; `mirrored`: its right side looks.
    `group` is the same over `join`, whose left side looks; `keys` has by key the column there. Columns `added` are made
    of the looking row, `found` of right rows: where there are such, a looking row stands beside each combination of
    their values. `checked` are terms over one side that pairs are asked for and that may have no value. `sides` says
    what each aggregate reads: those that count rows read the left side.
    """

    asked: Group
    source: Join
    mirrored: bool
    group: Group
    join: Join
    plain: JoinParts
    keys: Mapping[str, str]
    added: Mapping[str, Term]
    found: Mapping[str, Term]
    checked: tuple[Term, ...]
    sides: tuple[Side, ...]

    @property
    def both(self) -> Schema:
        return Schema((*self.join.left.schema.attributes, *self.join.right.schema.attributes))

    @cached_property
    def parts(self) -> JoinParts:
        """The parts of the condition, with the values that are found in right rows: groups take NULL as equal."""
        found = (Equality(Attr(name), term, null_safe=True) for name, term in self.found.items())
        return replace(self.plain, equalities=(*self.plain.equalities, *found))

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
        """What is needed of left rows, aggregate by aggregate."""
        return Group(self.join.left, self.group.keys, self._reading(Side.LEFT))

    @cached_property
    def of_right(self) -> Group:
        """What is needed of right rows, aggregate by aggregate."""
        return Group(self.join.right, (), self._reading(Side.RIGHT))

    def _reading(self, side: Side) -> tuple[Aggregate, ...]:
        right = set(self.join.right.schema)
        chosen: list[Aggregate] = []
        for aggregate, reads in zip(self.group.aggregates, self.sides, strict=True):
            if reads is side:
                chosen.append(aggregate)
            elif reads is Side.BOTH:
                (term,) = (term for term in _terms(aggregate) if reads_alone(term, right) == (side is Side.RIGHT))
                latest = term == aggregate.by and aggregate.entry.form is Form.LATEST
                chosen.append(Aggregate(aggregate.name, Function.MAX if latest else Function.MIN, term))
        return tuple(chosen)


@lru_cache(maxsize=1024)
def look_back(group: Group) -> LookBack | None:
    """The grouping as one of what each row of a side looks up; None where it is none."""
    over = _over_join(group)
    if over is None:
        return None
    ways = (_looked_up(over, mirrored=mirrored) for mirrored in (False, True))
    return min((way for way in ways if way is not None), key=_found_instants, default=None)


def _found_instants(way: LookBack) -> tuple[int, int]:
    """How many keys are found in right rows, and how many of these are instants, of which there are the most."""
    right = way.join.right.schema
    instants = (any(right[name].temporal for name in attributes_of(term)) for term in way.found.values())
    return len(way.found), sum(instants)


def looks_up(group: Group) -> bool:
    """Whether a grouping is one of what each row of a side looks up."""
    return look_back(group) is not None


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
        keys = {key: _below(term, node) for key, term in keys.items()}
        checked = [_below(term, node) for term in checked]
        if isinstance(node, Imbed) and resolve(node.term, node.input.schema).fallible:
            checked.append(node.term)
        aggregates = tuple(
            replace(
                one,
                argument=None if one.argument is None else _below(one.argument, node),
                by=None if one.by is None else _below(one.by, node),
            )
            for one in aggregates
        )
        read = (*keys.values(), *checked, *(term for one in aggregates for term in _terms(one)))
        if any(map(_is_large, read)):
            return None
        node = node.input
    if not isinstance(node, Join) or node.kind not in ("inner", "left"):
        return None
    return _OverJoin(group, node, keys, aggregates, tuple(checked))


def _below(term: Term, node: Project | Rename | Imbed) -> Term:
    """A term over what a node makes as one over what it is made of."""
    match node:
        case Project():
            return term
        case Rename(_, pairs):
            return rename_attributes(term, {new: old for old, new in pairs})
        case Imbed(_, name, made_of):
            return _replaced(term, {Attr(name): made_of})


def _replaced(term: Term, by: Mapping[Term, Term]) -> Term:
    def replacement(leaf: Attr | Param) -> Term:
        return by.get(leaf, leaf)

    return substitute(term, replacement)


def _is_large(term: Term) -> bool:
    return any(number >= _LARGEST for number, _ in enumerate(subterms(term)))


def _looked_up(over: _OverJoin, *, mirrored: bool) -> LookBack | None:
    """The grouping as one of what the rows of the left side look up, or those of the right one."""
    source = over.join
    if mirrored and source.kind != "inner":
        return None
    left, right = (source.right, source.left) if mirrored else (source.left, source.right)
    parts = join_parts(source.condition, left.schema, right.schema)
    both = Schema((*left.schema.attributes, *right.schema.attributes))
    # A condition on the pair, or a range of another term, leaves partners that are not adjacent in any order.
    if parts.rest or not is_one_slice(parts.ranges, both):
        return None
    # What attributes of the right side are in a pair, as terms over the left one.
    equal = {} if source.kind == "left" else {one.right: one.left for one in parts.equalities}
    terms = {key: _replaced(term, equal) for key, term in over.keys.items()}
    results = {one.name for one in over.aggregates}
    keys, made = _columns(terms, set(left.schema) - results, unused_mark({*both, *results}))
    added = {name: term for name, term in made.items() if attributes_of(term) <= set(left.schema)}
    found = {name: term for name, term in made.items() if name not in added}
    if found and (source.kind == "left" or parts.equalities):
        return None
    if not all(reads_alone(term, set(right.schema)) for term in found.values()):
        return None
    checked = tuple(term for term in over.checked if term not in added.values())
    others = [term for term in checked if not attributes_of(term) <= set(left.schema)]
    if not all(_has_no_more_values(term, source, right.schema) for term in others):
        return None
    columns = [Attribute(name, term_type(term, both)) for name, term in made.items()]
    looking = Scan(StreamDef("looking", Schema((*left.schema.attributes, *columns)), static=True))
    join = Join(looking, right, source.condition, source.kind)
    sides = [side for aggregate in over.aggregates if (side := _side(aggregate, join)) is not None]
    if len(sides) < len(over.aggregates):
        return None
    group = Group(join, tuple(dict.fromkeys(keys.values())), over.aggregates)
    return LookBack(over.group, source, mirrored, group, join, parts, keys, added, found, checked, tuple(sides))


def _has_no_more_values(term: Term, join: Join, right: Schema) -> bool:
    """Whether a term has a value for each row of the join if it has one for each right row: padded rows have, too."""
    return reads_alone(term, set(right)) and (join.kind == "inner" or is_null_of_nulls(term, join.schema))


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


def _terms(aggregate: Aggregate) -> tuple[Term, ...]:
    return tuple(term for term in (aggregate.argument, aggregate.by) if term is not None)


def reads_alone(term: Term, names: set[str]) -> bool:
    """Whether a term reads these attributes, and no others."""
    return bool(attributes_of(term)) and attributes_of(term) <= names


def _side(aggregate: Aggregate, join: Join) -> Side | None:
    """What an aggregate reads; None where it cannot be computed left row by left row.

    Of padded rows an attribute is NULL and adds nothing, and so does a term that is NULL of NULLs.
    """
    terms, form, right = _terms(aggregate), aggregate.entry.form, set(join.right.schema)
    if form in (Form.SKETCH, Form.WHOLE):
        return None
    of_right = [term for term in terms if reads_alone(term, right)]
    if not all(attributes_of(term) <= set(join.left.schema) for term in terms if term not in of_right):
        return None
    if join.kind == "left" and not all(is_null_of_nulls(term, join.schema) for term in of_right):
        return None
    if not of_right:
        return None if form is Form.DISTINCT else Side.LEFT
    return Side.RIGHT if len(of_right) == len(terms) else Side.BOTH
