"""Terms: what an expression over the attributes of one row is. Conditions are terms of type boolean.

The whole grammar is four nodes; the operations of `Call` stand in one table, `operations.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar, assert_never

from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.errors import QueryError
from tidegate.algebra.types import BOOLEAN, DataType

if TYPE_CHECKING:
    from tidegate.algebra.schema import Attribute

T = TypeVar("T")

#: A value as every engine holds it: timestamps, dates, durations and decimals are integers (see `types`).
Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Attr:
    """The value of an attribute of the row at hand."""

    name: str


@dataclass(frozen=True, slots=True)
class Lit:
    """A constant, held as every engine holds it, with its type."""

    value: Value
    type: DataType

    def __eq__(self, other: object) -> bool:
        # 1 == True == 1.0 in Python, and NaN differs from itself: neither holds for constants.
        if not isinstance(other, Lit):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, str, DataType]:
        return (type(self.value).__name__, repr(self.value), self.type)


@dataclass(frozen=True, slots=True)
class Param:
    """A number known only when an increment runs (a progress value), an int64; conditions of the analysis use it."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """An operation of the table in `operations.py` applied to terms."""

    op: str
    args: tuple[Term, ...]
    _hash: int = field(init=False, repr=False, compare=False, default=0)
    _size: int = field(init=False, repr=False, compare=False, default=1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.op, self.args)))
        size = 1
        for arg in self.args:
            if isinstance(arg, Call):
                size += arg._size
        object.__setattr__(self, "_size", size)

    def __hash__(self) -> int:
        return self._hash


Term = Attr | Lit | Param | Call


#: Operations of a term that is made of others, up to which it is looked at: attributes that are made of each other
#: double.
MOST_OPERATIONS: Final = 1_000


def size_of(term: Term) -> int:
    """The operations of a term, written out: those of a part that stands in several places count in each."""
    return term._size if isinstance(term, Call) else 0


TRUE = Lit(True, BOOLEAN)
FALSE = Lit(False, BOOLEAN)


def call(op: str, *args: Term) -> Call:
    return Call(op, args)


def conjunction(conditions: list[Term] | tuple[Term, ...]) -> Term:
    """The conjunction of any number of conditions; of none, true."""
    flat = [part for condition in conditions for part in conjuncts(condition)]
    if not flat:
        return TRUE
    return flat[0] if len(flat) == 1 else Call("and", tuple(flat))


def disjunction(conditions: list[Term] | tuple[Term, ...]) -> Term:
    """The disjunction of any number of conditions; of none, false."""
    flat = [c for c in conditions if c != FALSE]
    if not flat:
        return FALSE
    if TRUE in flat:
        return TRUE
    return flat[0] if len(flat) == 1 else Call("or", tuple(flat))


def conjuncts(condition: Term) -> tuple[Term, ...]:
    """The parts of a conjunction, nested ones flattened, in order; true has none."""
    match condition:
        case Call("and", args):
            return tuple(part for arg in args for part in conjuncts(arg))
        case Lit(True, _):
            return ()
        case _:
            return (condition,)


def balanced(combine: Callable[[T, T], T], parts: Sequence[T]) -> T:
    """Parts put together in order, two by two, so that a thousand of them nest ten deep; `combine` is associative."""
    while len(parts) > 1:
        pairs = [combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, parts[-1]] if len(parts) % 2 else pairs
    return parts[0]


def subterms(term: Term) -> Iterator[Term]:
    """The term and all terms inside it, outermost first."""
    stack = [term]
    while stack:
        current = stack.pop()
        yield current
        if isinstance(current, Call):
            stack.extend(reversed(current.args))


@lru_cache(1 << 12)
def attributes_of(term: Term) -> frozenset[str]:
    """Names of the attributes that a term reads."""
    return frozenset(sub.name for sub in subterms(term) if isinstance(sub, Attr))


def substitute(term: Term, replace: Callable[[Attr | Param], Term]) -> Term:
    """The term with every attribute and parameter replaced by what `replace` gives for it."""
    match term:
        case Attr() | Param():
            return replace(term)
        case Lit():
            return term
        case Call(op, args):
            changed = tuple(substitute(arg, replace) for arg in args)
            return term if all(a is b for a, b in zip(args, changed, strict=True)) else Call(op, changed)
        case _:
            assert_never(term)


def rename_attributes(term: Term, names: Mapping[str, str]) -> Term:
    """The term with attributes renamed; names not in the mapping stay."""
    return substitute(term, lambda leaf: Attr(names.get(leaf.name, leaf.name)) if isinstance(leaf, Attr) else leaf)


def _last_part(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def unknown_attribute(name: object, attributes: Mapping[str, Attribute]) -> QueryError:
    """The error for a name that is no attribute, with the nearest names that are."""
    if not isinstance(name, str):
        return QueryError("TG101", f"{shown(name)} names no attribute", hint="names are text")
    asked, last = _last_part(name), {known: _last_part(known) for known in attributes}
    short = [known for known in attributes if last[known] == asked]
    near = short or nearest(name, attributes, 3)
    if not near:  # the same misspelt behind the name of a relation, or without it
        meant = nearest(asked, last.values(), 3)
        near = [known for known in attributes if last[known] in meant][:3]
    hint = f"did you mean {' or '.join(near)}?" if near else f"attributes here: {', '.join(attributes) or 'none'}"
    return QueryError("TG101", f"unknown attribute {name!r}", hint=hint)
