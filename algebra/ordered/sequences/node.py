"""The matches of a row pattern in each partition of a relation: node, schema and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import (
    Aggregation,
    Node,
    OrderedNode,
    Reading,
    Row,
    check_condition,
    require_attribute,
)
from tidegate.algebra.ordered.sequences.certain import RULE
from tidegate.algebra.ordered.sequences.checks import check
from tidegate.algebra.ordered.sequences.definition import (
    DETECTED,
    FIRST,
    LAST,
    ONE_ROW,
    PREFERRED,
    Definition,
    Limit,
    Measure,
    Reported,
    Selection,
    limit_text,
    selection_text,
)
from tidegate.algebra.ordered.sequences.navigation import Navigation, attribute_of, navigation_text, terms_of
from tidegate.algebra.ordered.sequences.pattern import Pattern, pattern_text, variables_of
from tidegate.algebra.ordered.sequences.result import rows_of
from tidegate.algebra.printing.plans import ticks_text
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import ADVICE, Attribute, Schema
from tidegate.algebra.terms import Term, rename_attributes
from tidegate.algebra.typed.operations import term_type


class _CachedByName(OrderedNode):
    """Caches conditions by variable and navigations by name: each variable asks for its own, and there may be thousands
    of them.
    """

    __slots__ = ("_conditions", "_navigations")
    _conditions: Mapping[str, Term]
    _navigations: Mapping[str, Navigation]


@dataclass(frozen=True, slots=True, eq=False)
class Sequences(_CachedByName):
    """The matches of a row pattern in each partition.

    Rows are ordered by `time`, ties by `tie`. Conditions and measures read navigations by their names; conditions read
    attributes of their row by theirs, too, which measures do not. A variable without a definition is true of every row.
    `subsets` are names for several variables. A match is reported at the first instant from which no row to come can
    change it.
    """

    input: Node
    keys: tuple[str, ...]
    time: str
    tie: str | None
    pattern: Pattern
    definitions: tuple[Definition, ...]
    navigations: tuple[Navigation, ...] = ()
    measures: tuple[Measure, ...] = ()
    limits: tuple[Limit, ...] = ()
    selection: Selection = PREFERRED
    reported: Reported = ONE_ROW
    subsets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: How many matches may begin with one row; None: any number. No result is another for it: more are an error.
    per_start: int | None = field(default=None, metadata=ADVICE)

    @property
    def readings(self) -> tuple[Reading, ...]:
        read = frozenset(self.input.schema.names)
        navigated = [term for navigation in self.navigations for term in terms_of(navigation)]
        return (Reading(self.input, self.keys, read, self.time, self.tie, tuple(dict.fromkeys(navigated))),)

    def over(self, inputs: tuple[Node, ...]) -> Sequences:
        return replace(self, input=inputs[0])

    @property
    def completed_by(self) -> str:
        return DETECTED

    @property
    def produces(self) -> str:
        return "matches"

    @property
    def rule(self) -> str:
        return f"certainty, version {RULE}"

    @property
    def leaves_open(self) -> bool:
        """Whatever nothing can change any more is certain when the input ends."""
        return False

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of rows of a match, in the order in which the pattern has them."""
        return variables_of(self.pattern)

    def condition_of(self, variable: str) -> Term | None:
        """The condition of a variable; None: every row satisfies it."""
        try:
            return self._conditions.get(variable)
        except AttributeError:
            conditions = {definition.variable: definition.condition for definition in reversed(self.definitions)}
            object.__setattr__(self, "_conditions", conditions)
            return conditions.get(variable)

    @property
    def navigation_by_name(self) -> Mapping[str, Navigation]:
        """What conditions and measures read of the rows of a match, by the names under which they do."""
        try:
            return self._navigations
        except AttributeError:
            navigations = {navigation.name: navigation for navigation in self.navigations}
            object.__setattr__(self, "_navigations", navigations)
            return navigations

    def resolved(self, variable: str) -> tuple[str, ...]:
        """The variables that a name stands for: its own, or those of a subset."""
        return dict(self.subsets).get(variable, (variable,))

    @property
    def kept_attributes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The attributes of the input that the result has: those before the measures, and those behind them.

        Of matches the keys; of all their rows first what partitions and orders them, as ISO/IEC 9075-2 has it.
        """
        if self.reported.rows == "one":
            return self.keys, ()
        first = dict.fromkeys((*self.keys, self.time, *(() if self.tie is None else (self.tie,))))
        return tuple(first), tuple(name for name in self.input.schema.names if name not in first)

    def condition_schema(self) -> Schema:
        """What conditions read: the attributes of their row, and navigations."""
        return Schema((*self.input.schema.attributes, *self.measure_schema().attributes))

    def measure_schema(self) -> Schema:
        """What measures read: navigations."""
        return Schema(tuple(attribute_of(navigation, self.input.schema) for navigation in self.navigations))

    def infer_schema(self) -> Schema:
        schema = self.input.schema
        for name in (*self.keys, self.time, *(() if self.tie is None else (self.tie,))):
            require_attribute(name, schema)
        if not schema[self.time].temporal:
            raise QueryError("TG117", f"{self.time!r} orders no rows: it holds no instants", hint="name an instant")
        check(self)
        read = self.condition_schema()
        for definition in self.definitions:
            check_condition(definition.condition, read)
        before, behind = (tuple(schema[name] for name in names) for names in self.kept_attributes)
        taken = {attribute.name for attribute in (*before, *behind)}
        for name in (FIRST, LAST, DETECTED, *(measure.name for measure in self.measures)):
            if name in taken:
                raise QueryError("TG103", f"attribute {name!r} exists already", hint="choose a new name")
            taken.add(name)
        instants = tuple(
            Attribute(name, schema[self.time].type, nullable=False, temporal=True) for name in (FIRST, LAST, DETECTED)
        )
        navigated = self.measure_schema()
        computed = tuple(Attribute(measure.name, term_type(measure.term, navigated)) for measure in self.measures)
        return Schema((*before, *computed, *behind, *instants))

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        return rows_of(self, inputs[0], aggregation)

    def text(self, inputs: Sequence[str]) -> str:
        instants = self.input.schema[self.time].type
        order = self.time if self.tie is None else f"{self.time}, {self.tie}"
        parts = [
            f"sequences of {inputs[0]} by {', '.join(self.keys) or '()'} in order of {order}",
            f"pattern {pattern_text(self.pattern, lambda ticks: ticks_text(ticks, instants))}",
        ]
        names = {navigation.name: navigation_text(navigation) for navigation in self.navigations}
        parts += [f"{d.variable} as {_read_text(d.condition, names)}" for d in self.definitions]
        parts += [f"{m.name} = {_read_text(m.term, names)}" for m in self.measures]
        parts += [limit_text(limit, lambda ticks: ticks_text(ticks, instants)) for limit in self.limits]
        return "; ".join([*parts, selection_text(self.selection)])


def _read_text(term: Term, names: Mapping[str, str]) -> str:
    """A term with the text of navigations in the place of their names."""
    return term_text(rename_attributes(term, names))
