"""What a clause reads of the rows of matches, each once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tidegate.algebra.dsl.expression import AttributeUse, Expression, Origin
from tidegate.algebra.ordered.sequences.navigation import (
    Navigation,
    RowsAggregate,
    RowValue,
    attribute_of,
    navigation_text,
)
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr


def named(navigation: Navigation, name: str) -> Navigation:
    """The navigation under another name."""
    if isinstance(navigation, RowsAggregate):
        return replace(navigation, aggregate=replace(navigation.aggregate, name=name))
    return replace(navigation, name=name)


@dataclass(slots=True)
class Navigations:
    """What a clause reads of rows, each once, under its own text. `schema` is that of the rows."""

    schema: Schema
    found: list[Navigation] = field(default_factory=list)
    origin: Origin = field(default_factory=lambda: Origin("this clause"))

    def expression(self, navigation: Navigation) -> Expression:
        """What a condition reads of it."""
        known = next((one for one in self.found if named(one, "") == navigation), None)
        if known is None:
            known = named(navigation, self._free(navigation_text(navigation)))
            self.found.append(known)
        attribute = attribute_of(known, self.schema)
        use = AttributeUse(attribute, self.origin)
        return Expression(Attr(attribute.name), attribute.type, {attribute.name: use}, {})

    def attribute(self, name: str) -> str:
        """The attribute of which a condition reads a value by this name."""
        known = next((one for one in self.found if one.name == name), None)
        return known.argument.name if isinstance(known, RowValue) and isinstance(known.argument, Attr) else name

    def _free(self, name: str) -> str:
        while name in self.schema or any(one.name == name for one in self.found):
            name += "'"
        return name
