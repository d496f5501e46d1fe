"""FROM, PARTITION BY and ORDER BY: the events that a text reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.algebra.diagnostics.shown import nearest
from tidegate.algebra.dsl.checks.relation import what_else
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.situations import Partitioned
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Scan
from tidegate.algebra.terms import Attr
from tidegate.algebra.text.conditions import Conditions
from tidegate.algebra.text.parsing import Part
from tidegate.algebra.text.units import Unit, unit_of


def stream_of(streams: Relation | Mapping[str, Relation], name: str) -> Relation:
    """The stream of that name; `QueryError` TG173 where none was given."""
    if isinstance(streams, Relation):
        stream = streams._node.stream.name if isinstance(streams._node, Scan) else name
        streams = {stream: streams}
    if name not in streams:
        near = nearest(name, streams, 1)
        hint = f"did you mean {near[0]}?" if near else f"streams here: {', '.join(streams) or 'none'}"
        raise QueryError("TG173", f"there is no stream {name}", hint=hint)
    relation = streams[name]
    if not isinstance(relation, Relation):
        raise QueryError("TG114", f"{name} is {what_else(relation)}", hint='give read_query(text, {"Name": stream})')
    return relation


def units_of(relation: Relation, asked: Mapping[str, str]) -> dict[str, Unit]:
    """The units of attributes, as they were declared."""
    units = {}
    for name, written in asked.items():
        attribute = relation[name]
        assert isinstance(attribute._term, Attr)
        if not attribute.type.is_numeric:
            raise QueryError(
                "TG174", f"{name} is a {attribute.type}, which has no unit", hint="units belong to numbers"
            )
        units[attribute._term.name] = unit_of(written)
    return units


def attributes_of(clauses: Mapping[str, Part], clause: str) -> tuple[Part, ...]:
    """The attributes that a clause lists, each as it is named there; none where there is no such clause."""
    parts = clauses[clause].parts if clause in clauses else ()
    return tuple(part.parts[0] if part.kind == "ordering" else part for part in parts)


def events_of(conditions: Conditions, by: Sequence[Part], ordered: Sequence[Part], place: Part) -> Partitioned:
    """The events in partitions and in order; `QueryError` TG117, at the place, where no attribute orders them."""
    keys, order = ([conditions.attribute(part) for part in parts] for parts in (by, ordered))
    time, tie = [*order, None, None][:2]
    if time is not None and not all(read.attribute.temporal for read in time._reads.values()):
        raise QueryError(
            "TG117",
            f"{time!r} orders no events: it holds no instants",
            hint=f"instants are {', '.join(conditions.relation.schema.temporal) or 'not among the attributes'}",
            site=conditions.text.at(ordered[0]),
        )
    with written_at(conditions.text.at(place)):
        try:
            return conditions.relation.partition_by(*keys, time=time, tie=tie)
        except QueryError as error:
            if error.code != "TG117" or order:
                raise
            raise QueryError("TG117", error.message, hint="name it: FROM ... ORDER BY time") from None
