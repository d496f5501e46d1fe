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
    origin: Origin = field(default_factory=lambda: Origin("this clause"))
    _by_meaning: dict[Navigation, Navigation] = field(default_factory=dict)
    _by_name: dict[str, Navigation] = field(default_factory=dict)

    @property
    def found(self) -> tuple[Navigation, ...]:
        return tuple(self._by_name.values())

    def expression(self, navigation: Navigation) -> Expression:
        """What a condition reads of it."""
        known = self._by_meaning.get(navigation)
        if known is None:
            known = named(navigation, self._free(navigation_text(navigation)))
            self._by_meaning[navigation] = self._by_name[known.name] = known
        attribute = attribute_of(known, self.schema)
        use = AttributeUse(attribute, self.origin)
        return Expression(Attr(attribute.name), attribute.type, {attribute.name: use}, {})

    def attribute(self, name: str) -> str:
        """The attribute of which a condition reads a value by this name."""
        known = self._by_name.get(name)
        return known.argument.name if isinstance(known, RowValue) and isinstance(known.argument, Attr) else name

    def _free(self, name: str) -> str:
        while name in self.schema or name in self._by_name:
            name += "'"
        return name
