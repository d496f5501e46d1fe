"""The clause MATCH_RECOGNIZE as a relation of the DSL: the matches of a row pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidegate.algebra.dsl.checks.durations import duration_in_ticks
from tidegate.algebra.dsl.expression import Origin
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.situations import Partitioned
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.ordered.sequences.definition import (
    DETECTED,
    FIRST,
    LAST,
    Limit,
    Point,
    Preferred,
    Reported,
    Skip,
    within,
)
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import (
    Absence,
    Exclusion,
    Pattern,
    absent_in,
    pattern_text,
    patterns_of,
    variables_of,
)
from tidegate.algebra.printing.plans import ticks_text
from tidegate.algebra.schema import checked_name
from tidegate.algebra.text.conditions import Conditions
from tidegate.algebra.text.durations import duration_of
from tidegate.algebra.text.parsing import Part, Text, name_of
from tidegate.algebra.text.row_patterns.arguments import Names
from tidegate.algebra.text.row_patterns.found import Navigations
from tidegate.algebra.text.row_patterns.language import ROW_PATTERNS
from tidegate.algebra.text.row_patterns.patterns import PatternReader
from tidegate.algebra.text.row_patterns.values import Values
from tidegate.algebra.text.sources import attributes_of, events_of, stream_of, units_of
from tidegate.algebra.text.units import Unit
from tidegate.algebra.text.wording import in_words_of_text

_REPORTED: Final = {
    "all_rows": Reported("all"),
    "omit_empty": Reported("all", empty=False),
    "with_unmatched": Reported("all", unmatched=True),
}
_ORIGIN: Final = "these matches"


def clause_over(relation: Relation, clause: str, units: Mapping[str, str], file: str, site: Site | None) -> Relation:
    """The matches that a clause without FROM asks for, of a relation."""
    with in_words_of_text():
        return read_row_patterns(Text(clause, file, ROW_PATTERNS), relation, units, site)


def read_row_patterns(
    text: Text, streams: Relation | Mapping[str, Relation], units: Mapping[str, str], site: Site | None
) -> Relation:
    """The matches that the clause asks for, of the stream that FROM names; without FROM, of the relation."""
    clauses = {part.kind: part for part in text.parse().parts}
    if "name" in clauses:
        with written_at(text.at(clauses["name"])):
            relation = stream_of(streams, name_of(clauses["name"]))
        given = [clauses["alias"].parts[0]] if "alias" in clauses else []
        prefixes = tuple(name_of(part) for part in (*given, clauses["name"]))
    elif isinstance(streams, Relation):
        relation, prefixes = streams, ()
    else:
        raise QueryError("TG173", "the clause names no stream", hint="write FROM stream MATCH_RECOGNIZE (...)")
    return _Reader(text, clauses, relation, prefixes, units_of(relation, units), site).read()


@dataclass(slots=True)
class _Reader:
    """Reads one clause over a relation."""

    text: Text
    clauses: Mapping[str, Part]
    relation: Relation
    prefixes: tuple[str, ...]
    units: Mapping[str, Unit]
    site: Site | None
    met: dict[str, Unit] = field(default_factory=dict)

    def read(self) -> Relation:
        events = self._events()
        patterns = PatternReader(self.text, lambda part: self._ticks(part, events))
        pattern = patterns.read(self.clauses["pattern"].parts[0])
        names = self._names(pattern)
        navigations = Navigations(self.relation.schema)
        reader = Values(self.text, self.relation, self.prefixes, self.units, self.met, names, navigations, events._time)
        measures = [reader.measure(part) for part in self._children("measures")]
        definitions = [reader.definition(part) for part in self._children("define")]
        reported = next((_REPORTED[kind] for kind in _REPORTED if kind in self.clauses), Reported())
        node = Sequences(
            self.relation._node,
            events._keys,
            events._time,
            events._tie,
            pattern,
            tuple(definitions),
            navigations.found,
            tuple(measures),
            tuple(self._limit(part, names, events) for part in self._children("within")),
            Preferred(self._skip(names)),
            reported,
            tuple(names.subsets.items()),
        )
        self._check(node)
        self._check_pattern(node, patterns.absences)
        with written_at(self.text.at(self.clauses["pattern"])):
            origin = Origin(_ORIGIN)
            kept = self.relation._origins if reported.rows == "all" else {}
            kept = {**{key: self.relation._origins[key] for key in events._keys}, **kept}
            origins = {name: kept.get(name, origin) for name in node.schema}
            return self.relation._with(node, origins, self.site, reader.parts)

    def _children(self, clause: str) -> tuple[Part, ...]:
        part = self.clauses.get(clause)
        return () if part is None else part.parts

    # PARTITION BY, ORDER BY ------------------------------------------------------------------------------------------
    def _events(self) -> Partitioned:
        ordered = self._children("order")
        for number, part in enumerate(ordered):
            if len(part.parts) > 1:
                raise QueryError(
                    "TG178",
                    "rows in descending order",
                    hint="rows come in the order of time: leave out DESC"
                    if number == 0
                    else "leave out DESC, and order by what is computed in Python: with_(order=-x)",
                    site=self.text.at(part.parts[1]),
                )
        if len(ordered) > 2:
            raise QueryError(
                "TG178",
                "rows in order of more than two attributes",
                hint="the first is time, the second orders rows of one time: make one attribute of several in Python",
                site=self.text.at(ordered[2]),
            )
        conditions = Conditions(self.text, self.relation, self.prefixes, (), self.units, self.met)
        place = self.clauses.get("order", self.clauses["pattern"])
        keys, order = (attributes_of(self.clauses, clause) for clause in ("partition", "order"))
        return events_of(conditions, keys, order, place)

    # PATTERN, SUBSET, SKIP, WITHIN -----------------------------------------------------------------------------------
    def _names(self, pattern: Pattern) -> Names:
        matched, subsets = variables_of(pattern), dict[str, tuple[str, ...]]()
        groups = [variables_of(part.part) for part in patterns_of(pattern) if isinstance(part, Absence)]
        own = Names(matched, absent_in(pattern), groups=tuple(groups))
        for part in self._children("subset"):
            name, *members = part.parts
            with written_at(self.text.at(part)):
                if name_of(name) in (*own.all, *subsets):
                    raise QueryError("TG103", f"{name_of(name)} is there already", hint="give the subset another name")
            resolved: list[str] = []
            for member in members:
                with written_at(self.text.at(member)):
                    resolved += own.resolved(name_of(member))
            subsets[name_of(name)] = tuple(dict.fromkeys(resolved))
        return Names(own.matched, own.absent, subsets, own.groups)

    def _skip(self, names: Names) -> Skip:
        if "to_next_row" in self.clauses:
            return Skip("next row")
        for kind in ("to_first", "to_last"):
            if kind in self.clauses:
                (part,) = self.clauses[kind].parts
                with written_at(self.text.at(part)):
                    names.resolved(name_of(part))
                return Skip("first" if kind == "to_first" else "last", name_of(part))
        return Skip()

    def _limit(self, part: Part, names: Names, events: Partitioned) -> Limit:
        if part.kind == "duration":
            return within(self._ticks(part, events))
        later, earlier = (self._point(point, names) for point in part.parts[:2])
        ticks = self._ticks(part.parts[2], events)
        return Limit(later, earlier, -ticks if part.kind == "distance_of_at_least" else ticks)

    def _point(self, part: Part, names: Names) -> Point:
        variable = name_of(part.parts[0]) if part.parts else None
        with written_at(self.text.at(part)):
            if variable is not None:
                names.resolved(variable)
        return Point(variable, "first" if part.kind == "first_row" else "last")

    def _ticks(self, part: Part, events: Partitioned) -> int:
        with written_at(self.text.at(part)):
            time = events._relation.schema[events._time]
            return duration_in_ticks(duration_of(self.text, part, time, self.units), time.type, "a duration")

    def _check(self, node: Sequences) -> None:
        """What holds of the whole clause."""
        if node.reported.unmatched and any(isinstance(part, Exclusion) for part in patterns_of(node.pattern)):
            raise QueryError(
                "TG178",
                "rows are excluded, and those of no match are reported",
                hint="leave out {- -}, or WITH UNMATCHED ROWS",
                site=self.text.at(self.clauses["with_unmatched"]),
            )
        taken = {FIRST, LAST, DETECTED, *(node.input.schema if node.reported.rows == "all" else node.keys)}
        for part in self._children("measures"):
            name = name_of(part.parts[1])
            with written_at(self.text.at(part.parts[1])):
                if name in taken:
                    raise QueryError("TG103", f"a match has an attribute {name} already", hint="give it another name")
                checked_name(name, "an attribute")
            taken.add(name)

    def _check_pattern(self, node: Sequences, absences: Mapping[Absence, Part]) -> None:
        """What no row pattern must ask for; `QueryError` at the part of the text that asks for it."""
        type_ = node.input.schema[node.time].type
        try:
            assert node.schema
        except QueryError as error:
            place = self.clauses["pattern"]
            if error.code == "TG185":
                (place,) = next(self.clauses[kind] for kind in ("to_first", "to_last") if kind in self.clauses).parts
            for absence, part in absences.items():
                if error.problems[0].message.startswith(f"{pattern_text(absence, lambda n: ticks_text(n, type_))} "):
                    place = part
            raise error.at(self.text.at(place)) from None
