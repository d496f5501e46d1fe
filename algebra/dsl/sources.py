"""Where rows come from and where results go: streams, static tables, result streams and the queries that feed them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.relation import applied, listed, require_temporal, what_else
from tidegate.algebra.dsl.ddl import to_schema
from tidegate.algebra.dsl.expression import Expression, Origin
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.relation import Condition, Relation
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.nodes import Node, Project, Scan
from tidegate.algebra.program import Query
from tidegate.algebra.schema import Attribute, Begins, Schema, StreamDef, checked_name
from tidegate.algebra.terms import Term, conjunction, unknown_attribute

#: Characters of a text that a hint writes anew.
_LONGEST = 80
_A_RELATION = "lambda s: s.start <= s.end"
Names = str | Iterable[str]
_R = TypeVar("_R", bound=Relation)


@called(progress=("TG106", 'name the attribute on which it progresses: progress="time"'))
def stream(
    name: str,
    schema: object,
    *,
    progress: Names,
    relations: Condition | Iterable[Condition] | Callable[[Relation], Expression | Iterable[Expression]] = (),
    temporal: Names = (),
    begins: Begins | None = None,
) -> Relation:
    """A stream of events: its schema, the attributes on which it progresses, relations of its instants.

    `schema` is DDL text, a `StructType`, a `pyarrow.Schema`, or that of a Polars frame. Attributes named in `progress`,
    `relations` or `temporal` hold instants and are never NULL; so do timestamps that are `not null`. `begins`: rows are
    intervals, and other rows tell when one begins. `QueryError` TG111 for a schema that cannot be read, TG105 for an
    attribute that can hold no instants, TG106 where `progress` is left out, TG107 where it is not on the end of
    intervals that `begins` names.

    From the papers: TSA Def. 11.

    Examples:
        >>> trips = tg.stream(
        ...     "Trips",
        ...     "car string, left timestamp, arrived timestamp",
        ...     progress="arrived",
        ...     relations=lambda trip: trip.left < trip.arrived,
        ... )
        >>> print(trips.schema)
        car string, left timestamp not null, arrived timestamp not null
    """
    with Here() as site:
        definition, sites = _definition(name, schema, progress, relations, temporal, begins)
        return _scan(Relation, definition, sites, site)


@called()
def table(name: str, schema: object) -> Relation:
    """A static table: complete before the program starts, and unchanged while it runs.

    `schema` is what `stream` takes; `QueryError` TG111 where it cannot be read.

    Examples:
        >>> owners = tg.table("Owners", "car string, owner string")
        >>> c = cars.as_("c")
        >>> slow = c.where(c.speed < 60).join(owners, owners.car == c.car).select(owners.owner, c.time)
        >>> show(slow, Owners=[("red", "Eve")])
        Eve, 6
    """
    with Here() as site:
        return _scan(Relation, StreamDef(_stream_name(name), to_schema(schema), static=True), {}, site)


@checked_calls
class Result(Relation):
    """A result stream that queries of the same program feed; it can be read before they are written.

    Examples:
        >>> late = tg.result("Late", "order_id bigint, ordered timestamp", progress="ordered")
        >>> daily_late = late.group_by(day=tg.floor(late.ordered, "1d")).agg(n=tg.count())
        >>> unpaid = o.anti_join(p, *in_time).select(o.order_id, o.ordered)
        >>> tg.program(tg.query(late, unpaid), PerDay=daily_late).run(inputs)["PerDay"]["n"]
        [1, 1]
    """

    __slots__ = ("_definition", "_fed_by", "_fed_reads")
    _definition: StreamDef
    _fed_by: Query | None
    _fed_reads: Mapping[str, Result]

    @property
    def definition(self) -> StreamDef:
        """What is promised of the stream.

        Examples:
            >>> tg.result("Late", "order_id bigint, ordered timestamp", progress="ordered").definition.progress
            ('ordered',)
        """
        return self._definition


@called(progress=("TG106", 'name the attribute on which it progresses: progress="time"'))
def result(
    name: str,
    schema: object,
    *,
    progress: Names,
    relations: Condition | Iterable[Condition] | Callable[[Relation], Expression | Iterable[Expression]] = (),
    temporal: Names = (),
) -> Result:
    """A result with a schema of its own: what `stream` says, as a promise of the queries given with `query`.

    The analysis proves the promise, or refuses the program (TG201, TG203, TG205). The errors are those of `stream`.

    From the papers: TSA Def. 19.

    Examples:
        >>> late = tg.result("Late", "order_id bigint, ordered timestamp", progress="ordered")
        >>> unpaid = o.anti_join(p, *in_time).select(o.order_id, o.ordered)
        >>> tg.program(tg.query(late, unpaid)).run(inputs)["Late"]["order_id"]
        [2, 3]
    """
    with Here() as site:
        definition, sites = _definition(name, schema, progress, relations, temporal)
        return result_stream(definition, sites, site)


def result_stream(
    definition: StreamDef,
    sites: Mapping[Term | Node, Site],
    site: Site | None,
    fed_by: Query | None = None,
    fed_reads: Mapping[str, Result] | None = None,
) -> Result:
    """The handle of a result stream; `fed_by` is its query where it is known, `fed_reads` the results that one
    reads.
    """
    handle = _scan(Result, definition, sites, site)
    handle._definition, handle._fed_by, handle._fed_reads = definition, fed_by, fed_reads or {}
    handle._results = {definition.name: handle}
    return handle


@checked_calls
@dataclass(frozen=True, slots=True)
class QueryHandle:
    """An expression that feeds a result stream: what `tg.query` makes, for `tg.program`.

    Examples:
        >>> seen = tg.result("Seen", "order_id bigint, at timestamp", progress="at")
        >>> handle = tg.query(seen, payments.select("order_id", at="paid"), name="Paid")
        >>> handle.name, handle.result.definition.name
        ('Paid', 'Seen')
    """

    result: Result
    relation: Relation
    name: str | None = None
    site: Site | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"query feeding {self.result.definition.name}:\n{self.relation!r}"


@called()
def query(result: Result, relation: Relation, *, name: str | None = None) -> QueryHandle:
    """A query that feeds a declared result stream; several may feed the same one.

    Attributes are matched by name; their types must equal the declared ones, else `QueryError` TG108.

    Examples:
        >>> seen = tg.result("Seen", "order_id bigint, at timestamp", progress="at")
        >>> bought = tg.query(seen, orders.select("order_id", at="ordered"))
        >>> settled = tg.query(seen, payments.select("order_id", at="paid"))
        >>> sorted(tg.program(bought, settled).run(inputs)["Seen"]["order_id"])
        [1, 1, 2, 3, 3]
    """
    with Here() as site:
        if not isinstance(result, Result):
            raise QueryError(
                "TG114", f"a query feeds a result stream, not {shown(result)}", hint="declare it with tg.result(...)"
            )
        if not isinstance(relation, Relation):
            raise QueryError("TG114", f"query got {what_else(relation)}", hint="finish groups with agg(...)")
        if relation._declaration is not None:
            raise QueryError(
                "TG114",
                f"{result.definition.name} is declared already",
                hint="leave declare(...) out, or give the query as tg.program(Name=...)",
            )
        if name is not None:
            checked_name(name, "a query")
        return QueryHandle(result, _conforming(relation, result.definition, site), name, site)


def _conforming(relation: Relation, definition: StreamDef, site: Site | None) -> Relation:
    """The relation with the attributes that the definition lists, in its order."""
    plain = relation if set(relation.schema) == set(definition.schema) else relation._unqualified(site)
    given, asked = plain.schema, definition.schema
    if set(given) != set(asked):
        missing, extra = [n for n in asked if n not in given], [n for n in given if n not in asked]
        raise QueryError(
            "TG108",
            f"the query does not fit {definition.name}: missing {', '.join(missing) or 'nothing'}; "
            f"not declared: {', '.join(extra) or 'nothing'}",
            hint="name the attributes with select(...)",
        )
    for attribute in asked.attributes:
        _require_fits(given[attribute.name], attribute, definition.name)
    if given.names == asked.names:
        return plain
    return plain._with(Project(plain._node, asked.names), plain._origins, site)


def _require_fits(given: Attribute, asked: Attribute, stream_name: str) -> None:
    name = asked.name
    if given.type != asked.type:
        raise QueryError(
            "TG108",
            f"{stream_name}.{name} is declared {asked.type}, the query gives {given.type}",
            hint=f'cast it: .cast("{asked.type}"), or change the declaration',
        )
    if asked.temporal and not given.temporal:
        raise QueryError(
            "TG117",
            f"{stream_name}.{name} is declared to hold instants, but the query computes it from something else",
            hint="instants are temporal attributes of streams, shifted, rounded, or the least or greatest of several",
        )
    if given.nullable and not asked.nullable:
        raise QueryError(
            "TG117",
            f"{stream_name}.{name} is declared not null, but the query may give NULL",
            hint=f"declare it without not null, or keep only rows where {name} is_not_null()",
        )


def _scan(kind: type[_R], definition: StreamDef, sites: Mapping[Term | Node, Site], site: Site | None) -> _R:
    node = Scan(definition)
    origins = dict.fromkeys(definition.schema, Origin(definition.name))
    placed = {**sites, node: site} if site is not None else sites
    return kind(node, origins, placed, {})


def _stream_name(name: Any) -> str:
    if not isinstance(name, str) or not name.replace("_", "a").isalnum():
        raise QueryError("TG114", f"{shown(name)} is no name for a stream", hint="use letters, digits and _")
    return name


def _definition(
    name: str, schema: object, progress: Names, relations: Any, temporal: Names, begins: Begins | None = None
) -> tuple[StreamDef, dict[Term | Node, Site]]:
    given = to_schema(schema)
    progressing = _names_in(given, progress)
    instants = {*progressing, *_names_in(given, temporal)}
    if begins is not None:
        given = _identified(name, begins, given, progressing)
        instants.add(begins.start)
    probe = _probe(name, given)
    parts: list[Expression] = []
    for relation in listed(relations):
        if callable(relation):
            relation = applied(relation, probe, hint=f"write relations={_A_RELATION}")
        for stated in listed(relation):
            if isinstance(stated, str):
                raise QueryError(
                    "TG114",
                    f"{shown(stated)} is text, and a relation of instants is a comparison of attributes",
                    hint=f"write relations={_as_formula(stated, given)}",
                )
            part = probe._condition(stated)
            instants |= {read.attribute.name for read in part._reads.values() if read.attribute.type.can_be_time}
            parts.append(part)
    # What relations read holds instants, so they read the attributes once more, as those of the full schema.
    full = Schema(tuple(_as_instant(a) if a.name in instants else a for a in given.attributes))
    definite = _probe(name, full)
    parts = [
        Expression(p._term, p.type, {n: definite._attribute(n)._reads[n] for n in p._reads}, p._sites) for p in parts
    ]
    require_temporal(parts)
    together = conjunction([part._term for part in parts])
    sites: dict[Term | Node, Site] = {term: at for part in parts for term, at in part._sites.items()}
    return StreamDef(_stream_name(name), full, together, progressing, begins=begins), sites


def _identified(name: str, begins: Begins, schema: Schema, progress: tuple[str, ...]) -> Schema:
    """The schema of a stream that tells beginnings of intervals: what they are told by is never NULL."""
    if not isinstance(begins, Begins):
        raise QueryError(
            "TG114",
            f"begins={shown(begins)} does not say how beginnings are told",
            hint='write begins=tg.Begins(id="id", start="start", end="end")',
        )
    _names_in(schema, (begins.id, begins.start, begins.end, *begins.later))
    if begins.end not in progress:
        raise QueryError(
            "TG107",
            f"{name}: beginnings are told to a stream that progresses on the ends of intervals, and it does not on "
            f"{begins.end!r}",
            hint=f'progress="{begins.end}"',
        )
    if len({begins.id, begins.start, begins.end}) < 3 or schema[begins.start].type != schema[begins.end].type:
        raise QueryError(
            "TG102",
            f"{name}: an interval has an identity, and two instants of one type: {begins.id}, {begins.start} and "
            f"{begins.end} are none",
            hint="name three attributes",
        )
    if fixed := [a for a in begins.later if a in (begins.id, begins.start, begins.end) or not schema[a].nullable]:
        raise QueryError(
            "TG117",
            f"{name}.{fixed[0]} is known later, and may not be NULL before",
            hint="leave not null out, or send it with the beginning",
        )
    return Schema(
        tuple(
            Attribute(a.name, a.type, nullable=False, temporal=a.temporal) if a.name == begins.id else a
            for a in schema.attributes
        )
    )


def _as_formula(text: str, schema: Schema) -> str:
    """The function that says what a text seems to say of the attributes, or one such as is wanted."""
    words = {word for word in re.findall(r"\w+", text) if word.isidentifier()}
    if not words or not words <= set(schema) or len(text) > _LONGEST:
        return _A_RELATION
    return "lambda s: " + re.sub("|".join(rf"\b{word}\b" for word in words), lambda word: f"s.{word[0]}", text)


def _probe(name: str, schema: Schema) -> Relation:
    return Relation(Scan(StreamDef(name, schema, static=True)), dict.fromkeys(schema, Origin(name)), {}, {})


def _names_in(schema: Schema, names: Names) -> tuple[str, ...]:
    given = (names,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    for name in given:
        if name not in schema:
            raise unknown_attribute(name, schema)
    return given


def _as_instant(attribute: Attribute) -> Attribute:
    if not attribute.type.can_be_time:
        raise QueryError(
            "TG105",
            f"attribute {attribute.name!r} of type {attribute.type} cannot hold instants",
            hint="instants are timestamps, dates or integers",
        )
    return Attribute(attribute.name, attribute.type, nullable=False, temporal=True)
