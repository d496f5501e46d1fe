"""Queries in the text language of TPStream (EDBT 2018, Listing 1; thesis, Section 5.3) as relations of the DSL."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tidegate.algebra.allen import INTERSECTS, RELATIONS, Allen
from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.dsl.checks.calls import called
from tidegate.algebra.dsl.checks.durations import Duration
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.here import Here, written_at
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.situations import Intervals, Partitioned, match, situation
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.ordered.match.node import Emission
from tidegate.algebra.text.conditions import Conditions
from tidegate.algebra.text.durations import duration_of
from tidegate.algebra.text.interval_sequences.language import INTERVAL_SEQUENCES
from tidegate.algebra.text.interval_sequences.reader import read_interval_sequence
from tidegate.algebra.text.parsing import Language, Part, Text, name_of
from tidegate.algebra.text.returned import ReturnReader, unknown_symbol
from tidegate.algebra.text.row_patterns.language import ROW_PATTERNS
from tidegate.algebra.text.row_patterns.reader import read_row_patterns
from tidegate.algebra.text.situations import SITUATIONS
from tidegate.algebra.text.sources import attributes_of, events_of, stream_of, units_of
from tidegate.algebra.text.units import Unit
from tidegate.algebra.text.wording import in_words_of_text
from tidegate.algebra.types import BOOLEAN

Dialect = Literal["allen", "tpstream"]
DIALECTS: tuple[Dialect, ...] = ("allen", "tpstream")
#: TPStream's Table 1 has `A finishes B` as A.ts < B.ts < A.te = B.te, which Allen calls `A finished by B`.
MIRRORED = {Allen.FINISHES: Allen.FINISHED_BY, Allen.FINISHED_BY: Allen.FINISHES}
_EMISSIONS: tuple[Emission, ...] = ("earliest", "final")
#: Comments, texts and names in quotes.
_QUOTED = re.compile(r"""--[^\n]*|'[^']*'|"[^"]*\"""")
_ROW_PATTERN = re.compile(r"\bMATCH_RECOGNIZE\b", re.IGNORECASE)
_INTERVAL_SEQUENCE = re.compile(r"\s*EVENT\b", re.IGNORECASE)


class AmbiguousRelationWarning(UserWarning):
    """`finishes` and `finished by` mean one thing to Allen and its mirror image to TPStream, and no dialect is named.

    Examples:
        >>> import warnings
        >>> text = "FROM Cars DEFINE A AS speed > 80, B AS accel < -2 PATTERN A finishes B WITHIN 9"
        >>> with warnings.catch_warnings(record=True, action="always") as caught:
        ...     hits = tg.read_query(text, cars)
        >>> caught[0].category.__name__
        'AmbiguousRelationWarning'
    """


@called()
def read_query(
    text: str,
    streams: Relation | Mapping[str, Relation],
    *,
    dialect: Dialect | None = None,
    units: Mapping[str, str] | None = None,
    file: str = "query",
) -> Relation:
    """The matches that a query in the text language asks for: `FROM ... DEFINE ... PATTERN ... WITHIN ... RETURN ...`
    of situations, `FROM ... MATCH_RECOGNIZE (...)` of rows, or `EVENT ISEQ [...] (A, B; W)` of intervals.

    `streams` is the stream of FROM, or streams by name; for `EVENT ISEQ` intervals by name. `dialect` says whose
    `finishes` is meant: "allen", or "tpstream", where it is the mirror image; without it Allen's is taken, with a
    warning. `units` says in which unit the values of an attribute are; quantities beside it are converted to that.
    `file` is what errors call the text.

    `QueryError` TG170 where the text does not fit the grammar, TG171 to TG174 for relations, situations, streams and
    units that there are not.

    Examples:
        >>> text = "FROM Cars PARTITION BY car DEFINE A AS speed > 80, B AS accel < -2 PATTERN A overlaps B WITHIN 10"
        >>> hits = tg.read_query(text, cars)
        >>> hits.schema.names
        ('car', 'A.ts', 'A.te', 'B.ts', 'B.te', 'detected')
        >>> show(hits)
        red, 2, 5, 4, None, 5
    """
    with Here() as site:
        if not isinstance(text, str):
            raise QueryError("TG114", f"a query is text, not a {type(text).__name__}", hint="give what the file holds")
        if dialect is not None and dialect not in DIALECTS:
            raise QueryError("TG114", f"no dialect is called {shown(dialect)}", hint="dialect is allen or tpstream")
        with in_words_of_text():
            language = language_of(text)
            read = Text(text, file, language)
            if language is INTERVAL_SEQUENCES:
                return read_interval_sequence(read, streams, units or {})
            if language is ROW_PATTERNS:
                return read_row_patterns(read, streams, units or {}, site)
            return _Reader(read, streams, dialect, units or {}, site).read()


@dataclass(frozen=True, slots=True)
class StreamClause:
    """What a query says of its stream: its name, what orders its events and tells partitions apart, and where it is
    named.
    """

    stream: str
    time: str | None
    keys: tuple[str, ...]
    place: Site


def source_of(text: str, file: str = "query") -> StreamClause:
    """The stream of FROM, before there is one; `QueryError` as `read_query`."""
    read = Text(text, file, language_of(text))
    if read.language is INTERVAL_SEQUENCES:
        raise QueryError(
            "TG175",
            "an interval sequence reads intervals, and no text says what they are",
            hint='read it in Python: tg.read_query(text, {"A": rows.as_intervals(...)})',
            site=read.site(1, 1),
        )
    clauses = {part.kind: part for part in read.parse().parts}
    keys, order = attributes_of(clauses, "partition"), attributes_of(clauses, "order")
    return StreamClause(
        name_of(clauses["name"]),
        name_of(order[0].parts[-1]) if order else None,
        tuple(name_of(key.parts[-1]) for key in keys),
        read.at(clauses["name"]),
    )


def language_of(text: str) -> Language:
    """The language that a text is in: that of interval sequences begins with EVENT, that of row patterns has the word
    MATCH_RECOGNIZE, the other one has neither.
    """
    plain = _QUOTED.sub(" ", text)
    if _INTERVAL_SEQUENCE.match(plain):
        return INTERVAL_SEQUENCES
    return ROW_PATTERNS if _ROW_PATTERN.search(plain) else SITUATIONS


@dataclass(slots=True)
class _Reader:
    """Reads one query; clauses are filled in as they are read."""

    text: Text
    streams: Relation | Mapping[str, Relation]
    dialect: Dialect | None
    asked_units: Mapping[str, str]
    site: Site | None
    clauses: dict[str, Part] = field(default_factory=dict)

    def read(self) -> Relation:
        self.clauses = {part.kind: part for part in self.text.parse().parts}
        definitions = {part.parts[0].text: part for part in self.clauses["define"].parts}
        self._check_symbols(definitions)
        relation, prefixes = self._source(tuple(definitions))
        units = units_of(relation, self.asked_units)
        conditions = Conditions(self.text, relation, prefixes, tuple(definitions), units)
        clause = self.clauses.get("order", self.clauses["name"])
        events = events_of(conditions, self._children("partition"), self._children("order"), clause)
        returned = ReturnReader(conditions, events, {symbol: {} for symbol in definitions})
        items = [returned.item(part) for part in self._children("returns")]
        derived = self._derived(definitions, returned, units)
        matches = self._match(derived, events, units)
        return returned.selected(matches, items, self.clauses["returns"]) if items else matches

    def _children(self, clause: str) -> tuple[Part, ...]:
        part = self.clauses.get(clause)
        return () if part is None else part.parts

    def _check_symbols(self, definitions: Mapping[str, Part]) -> None:
        seen = set[str]()
        for part in self.clauses["define"].parts:
            if part.parts[0].text in seen:
                raise QueryError(
                    "TG103",
                    f"{part.parts[0].text} is defined twice",
                    hint="give each situation a name of its own",
                    site=self.text.at(part),
                )
            seen.add(part.parts[0].text)

    def _source(self, symbols: tuple[str, ...]) -> tuple[Relation, tuple[str, ...]]:
        """The relation of FROM, and the names that may stand before its attributes."""
        part = self.clauses["name"]
        name, alias = name_of(part), self.clauses.get("alias")
        with written_at(self.text.at(part)):
            relation = stream_of(self.streams, name)
        if alias is None:
            return relation, (name,)
        alias_name = name_of(alias.parts[0])
        if alias_name in symbols:
            raise QueryError(
                "TG103",
                f"{alias_name} names the stream and a situation",
                hint="give one of them another name",
                site=self.text.at(alias),
            )
        return relation, (alias_name, name)

    # DEFINE ----------------------------------------------------------------------------------------------------------
    def _derived(
        self, definitions: Mapping[str, Part], returned: ReturnReader, units: Mapping[str, Unit]
    ) -> dict[str, Intervals]:
        derived: dict[str, Intervals] = {}
        for symbol, part in definitions.items():
            condition = returned.conditions.read(part.parts[1])
            self._check_between(condition, part.parts[2:])
            with written_at(self.text.at(part)):
                least, most = self._limits(part.parts[2:], returned.events, units)
                aggregates = returned.aggregates[symbol]
                built = situation(condition, at_least=least, at_most=most, between=None, **aggregates)
                derived[symbol] = returned.events.derive(**{symbol: built})[symbol]
        return derived

    def _check_between(self, condition: Expression, limits: tuple[Part, ...]) -> None:
        """`QueryError` TG102 for a value that is between two others, as SQL writes it."""
        for limit in limits:
            if limit.kind == "between" and condition._type != BOOLEAN:
                low, high = ("".join(part.text for part in duration.parts) for duration in limit.parts)
                raise QueryError(
                    "TG102",
                    f"BETWEEN limits how long a condition holds, and {condition!r} is none",
                    hint=f"write {condition!r} >= {low} AND {condition!r} <= {high}",
                    site=self.text.at(limit),
                )

    def _limits(
        self, given: tuple[Part, ...], events: Partitioned, units: Mapping[str, Unit]
    ) -> tuple[Duration, Duration]:
        time = events._relation.schema[events._time]
        for part in given:
            durations = [duration_of(self.text, limit, time, units) for limit in part.parts]
            return (durations[0] if part.kind != "at_most" else None), (
                durations[-1] if part.kind != "at_least" else None
            )
        return None, None

    # PATTERN, WITHIN, EMIT -------------------------------------------------------------------------------------------
    def _match(self, derived: Mapping[str, Intervals], events: Partitioned, units: Mapping[str, Unit]) -> Relation:
        conditions = [self._constraint(part, derived) for part in self._children("pattern")]
        time = events._relation.schema[events._time]
        within = [duration_of(self.text, part, time, units) for part in self._children("within")]
        clause = self.clauses.get("pattern", self.clauses["define"])
        emission = self._emission()
        with written_at(self.text.at(clause)):
            return match(*derived.values(), *conditions, within=within[0] if within else None, emission=emission)

    def _emission(self) -> Emission:
        part = self.clauses.get("emit")
        if part is None:
            return "earliest"
        asked = part.parts[0].text
        for known in _EMISSIONS:
            if asked.lower() == known:
                return known
        raise QueryError(
            "TG114",
            f"no emission is called {shown(asked)}",
            hint="emission is earliest or final",
            site=self.text.at(part.parts[0]),
        )

    def _constraint(self, part: Part, derived: Mapping[str, Intervals]) -> Expression:
        constraint: Expression | None = None
        for alternative in part.parts:
            left, relations, right = alternative.parts
            first, second = self._symbol(left, derived), self._symbol(right, derived)
            for name in relations.parts:
                with written_at(self.text.at(name)):
                    related = self._related(first, self._relation(name), second)
                    constraint = related if constraint is None else constraint | related
        assert constraint is not None, "the grammar asks for one alternative at least"
        return constraint

    def _related(self, left: Intervals, relation: str, right: Intervals) -> Expression:
        related = getattr(left, relation)(right)
        assert isinstance(related, Expression)
        return related

    def _symbol(self, part: Part, derived: Mapping[str, Intervals]) -> Intervals:
        if part.text not in derived:
            raise unknown_symbol(part.text, derived, self.text.at(part))
        return derived[part.text]

    def _relation(self, part: Part) -> str:
        """The method of that name: parts are joined by spaces, hyphens or underscores."""
        name = re.sub(r"[\s_-]+", "_", part.text.lower())
        known = [*(relation.value for relation in RELATIONS), INTERSECTS]
        if name not in known:
            near = nearest(name, known)
            hint = (
                f"did you mean {' or '.join(_spaced(relation) for relation in near)}?"
                if near
                else f"relations are {', '.join(map(_spaced, known))}"
            )
            raise QueryError("TG171", f"no relation is called {' '.join(part.text.split())!r}", hint=hint)
        mirrored = None if name == INTERSECTS else MIRRORED.get(Allen(name))
        if mirrored is None or self.dialect == "allen":
            return name
        if self.dialect == "tpstream":
            return mirrored.value
        place = self.text.at(part)
        # Explicitly, at the caller's line: what is warned of explicitly is shown each time. The command line has none.
        at = self.site or place
        warnings.warn_explicit(_two_readings(Allen(name), place), AmbiguousRelationWarning, at.file, at.line)
        return name


def _spaced(relation: str) -> str:
    return relation.replace("_", " ")


def _two_readings(relation: Allen, place: Site) -> str:
    allen = {
        Allen.FINISHES: "A finishes B: B begins first, and both end together",
        Allen.FINISHED_BY: "A finished by B: A begins first, and both end together",
    }
    return (
        f"TG176 {allen[relation]}. So Allen has it, and it is read so; in TPStream's papers it is the mirror image. "
        f'Say which is meant: dialect="allen" or dialect="tpstream", or --dialect\n  {place}'
    )
