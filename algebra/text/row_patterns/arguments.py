"""What stands in the brackets of FIRST, PREV, SUM and the like: values of one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidegate.algebra.diagnostics.shown import nearest
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.aggregates import Function
from tidegate.algebra.ordered.sequences.navigation import Variables
from tidegate.algebra.text.conditions import Conditions, Value
from tidegate.algebra.text.parsing import Part, name_of

LOGICAL: Final = frozenset(("first", "last"))
PHYSICAL: Final = frozenset(("prev", "next"))
#: Aggregates of rows of a match: of these `first` and `last` are rows.
AGGREGATES: Final = frozenset(function.value for function in Function) - LOGICAL
#: What reads more than the row at hand.
READING: Final = LOGICAL | PHYSICAL | AGGREGATES | {"classifier", "match_number"}


@dataclass(frozen=True, slots=True)
class Names:
    """The variables of a pattern: those that rows of a match have, those of rows that must not come, and subsets. Those
    of each group of rows that must not come are in `groups`.
    """

    matched: tuple[str, ...]
    absent: tuple[str, ...] = ()
    subsets: Mapping[str, Variables] = field(default_factory=dict)
    groups: tuple[Variables, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every name that conditions know."""
        return tuple(dict.fromkeys((*self.matched, *self.absent, *self.subsets)))

    def resolved(self, name: str, *, here: str | None = None) -> Variables:
        """The variables that a name stands for; `QueryError` TG172 where it is none. `here` is the variable whose
        condition names it.
        """
        if name in self.subsets:
            return self.subsets[name]
        if name in self.matched or name == here or any(name in group and here in group for group in self.groups):
            return (name,)
        if name in self.absent:
            raise QueryError(
                "TG172", f"{name} has no row in a match: no row may satisfy it", hint="take the row of another variable"
            )
        near = nearest(name, self.all, 1)
        hint = f"did you mean {near[0]}?" if near else f"the pattern has {', '.join(self.all) or 'no variables'}"
        raise QueryError("TG172", f"no variable is called {name}", hint=hint)


@dataclass(slots=True, kw_only=True)
class Argument(Conditions):
    """Reads a value of one row of a match: all its attributes are of the same variable. `of` is what reads the row."""

    of: str
    names: Names
    here: str | None = None
    seen: dict[Variables, str] = field(default_factory=dict)

    @property
    def variables(self) -> Variables:
        """Those of the row, after the value was read."""
        return next(iter(self.seen), ())

    def value_of(self, tree: Part) -> Value:
        """The value; `QueryError` TG178 where it is the same in all rows."""
        value = self._value(tree)
        if not self.seen:
            hint = "write COUNT(*)" if self.of == "COUNT" else f"name one: {self.of}({self._example()}.x)"
            raise QueryError("TG178", f"{self.of} reads no attribute", hint=hint, site=self.text.at(tree))
        return value

    def attribute(self, tree: Part) -> Expression:
        """An attribute of the row, with or without a variable before it."""
        *variable, name = tree.parts
        with written_at(self.text.at(tree)):
            of = self.names.resolved(name_of(variable[0]), here=self.here) if variable else ()
            written = ".".join(name_of(part) for part in tree.parts)
            self._check_name(name)
            self.seen.setdefault(of, written)
            if len(self.seen) > 1:
                first, second = self.seen.values()
                raise QueryError(
                    "TG178",
                    f"{self.of} reads rows of one variable, and {first} and {second} are of two",
                    hint=f"take each by itself, such as {self.of}({first}) and {self.of}({second})",
                )
            return self.relation[name_of(name)]

    def _value(self, tree: Part) -> Value:
        inner = tree.parts[-1] if tree.kind == "of_match" else tree
        if inner.kind in ("call", "distinct") and inner.parts[0].text.lower() in READING:
            raise self._nested(inner)
        if tree.kind in ("of_match", "rows_of", "distinct"):
            hint = "RUNNING and FINAL stand before FIRST, LAST and aggregates, * in COUNT(*)"
            raise QueryError("TG178", f"{self.of} of no value", hint=hint, site=self.text.at(tree))
        return Conditions._value(self, tree)

    def _nested(self, inner: Part) -> QueryError:
        name = inner.parts[0].text.upper()
        hint = "PREV and NEXT take FIRST or LAST, and nothing else takes another one: PREV(LAST(A.x, 1), 2)"
        if name == "MATCH_NUMBER":
            hint = "it is the same in all rows of a match: write it outside"
        elif self.of.lower() in AGGREGATES or name.lower() in AGGREGATES:
            hint = "aggregates are of attributes of rows: SUM(A.x)"
        elif name == "CLASSIFIER":
            hint = f"it stands alone there, {self.of}(CLASSIFIER()): compute with the result"
        return QueryError("TG178", f"{self.of} of {name}", hint=hint, site=self.text.at(inner))

    def _example(self) -> str:
        return self.names.matched[0] if self.names.matched else "A"
