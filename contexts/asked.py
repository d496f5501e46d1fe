"""What a deriving query asks for: one transition at each of its rows, and these rows as candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.algebra.dsl.expression import Expression, constant
from tidegate.algebra.dsl.functions import lit
from tidegate.algebra.dsl.relation import Column, Relation
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.ordered.transitions.definition import TIME, Transition
from tidegate.algebra.terms import Lit
from tidegate.algebra.types import DataType

#: Attributes of candidates beside the keys: the number of the transition, when a match began, its cause. Keys are
#: identifiers, and values of windows with these names are refused.
NUMBER, SINCE, CAUSE = "query number", "match began", "one cause"


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A deriving query: its rows, the names there of the keys and of the instant, and what it says of each row.

    `everywhere`: it names no contexts in which it stands. `site` is where it was written.
    """

    transition: Transition
    rows: Relation
    keys: tuple[str, ...]
    at: str
    since: Expression | None = None
    cause: Expression | None = None
    values: Mapping[str, Expression] = field(default_factory=dict)
    everywhere: bool = False
    site: Site | None = None

    def candidates(self, number: int, names: Sequence[str], types: Mapping[str, DataType]) -> Relation:
        """Its rows as candidates: with these names of keys, and NULL for what other queries alone say, of their
        types.
        """
        columns: dict[str, Column] = dict(zip(names, self.keys, strict=True))
        columns[TIME] = self.at
        columns[NUMBER] = lit(number)
        for name, type_ in types.items():
            missing = self.rows[self.at] if name == SINCE else constant(Lit(None, type_))
            columns[name] = self.given.get(name, missing)
        return self.rows.select(**columns)

    @property
    def given(self) -> dict[str, Expression]:
        """What it says of each row, by the attribute of candidates that holds it."""
        beside = {SINCE: self.since, CAUSE: self.cause}
        return {**{name: column for name, column in beside.items() if column is not None}, **self.values}


def types_of(asked: Sequence[Asked]) -> dict[str, DataType]:
    """The types of what any of the queries says of its rows; `QueryError` TG102 where two differ."""
    types: dict[str, DataType] = {}
    for one in asked:
        for name, given in one.given.items():
            known = types.setdefault(name, given.type)
            if known != given.type:
                what = {SINCE: "the beginning of a match", CAUSE: "a cause"}.get(name, repr(name))
                raise QueryError(
                    "TG102", f"{what} is {known} of one query and {given.type} of another", hint="cast one of them"
                )
    return types
