"""MEASURES and DEFINE, item by item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import check_condition
from tidegate.algebra.ordered.sequences.definition import Definition, Measure
from tidegate.algebra.schema import Schema
from tidegate.algebra.text.parsing import Part, Text, name_of
from tidegate.algebra.text.row_patterns.arguments import Names
from tidegate.algebra.text.row_patterns.found import Navigations
from tidegate.algebra.text.row_patterns.navigations import RowConditions
from tidegate.algebra.text.row_patterns.sugar import plain
from tidegate.algebra.text.units import Unit


@dataclass(slots=True)
class Values:
    """Reads measures and definitions; `parts` are the expressions that were read."""

    text: Text
    relation: Relation
    prefixes: tuple[str, ...]
    units: Mapping[str, Unit]
    met: dict[str, Unit]
    names: Names
    navigations: Navigations
    time: str
    defined: set[str] = field(default_factory=set)
    parts: list[Expression] = field(default_factory=list)

    def measure(self, part: Part) -> Measure:
        """A measure, with the name that it gets."""
        value, name = part.parts
        return Measure(name_of(name), self._read(value)._term)

    def definition(self, part: Part) -> Definition:
        """The condition of a variable."""
        name, condition = name_of(part.parts[0]), part.parts[1]
        with written_at(self.text.at(part)):
            self._check_defined(name)
        read = self._read(condition, name)
        with written_at(self.text.at(condition)):
            check_condition(read._term, Schema(tuple(use.attribute for use in read._reads.values())))
        return Definition(name, read._term)

    def _read(self, tree: Part, here: str | None = None) -> Expression:
        reader = RowConditions(
            self.text, self.relation, self.prefixes, (), self.units, self.met,
            names=self.names, navigations=self.navigations, time=self.time,
            clause="MEASURES" if here is None else "DEFINE", here=here,
        )  # fmt: skip
        read = reader.read(plain(self.text, tree))
        self.parts.append(read)
        return read

    def _check_defined(self, name: str) -> None:
        if name in self.names.subsets:
            raise QueryError("TG178", f"{name} is a subset", hint="define the variables that it stands for")
        if name in self.defined:
            raise QueryError("TG103", f"{name} is defined twice", hint="join both conditions with AND")
        self.names.resolved(name, here=name if name in self.names.absent else None)
        self.defined.add(name)
