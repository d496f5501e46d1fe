"""Operators that users write: what they declare holds of their rows, and bounds what they keep."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.algebra.formulas import temporal_formula
from tidegate.algebra.nodes import occurrences
from tidegate.algebra.ordered.process import Process
from tidegate.algebra.row_wise import multiplying_tables
from tidegate.analysis.ordered.family import Family, StateBound, StoredRows, ZoneBuilder, keyed_event_zones
from tidegate.analysis.zones.wording import amount, factor
from tidegate.analysis.zones.zone import Zone


class ProcessFamily(Family[Process]):
    node = Process

    def zones(self, node: Process, build: ZoneBuilder) -> list[Zone]:
        (reading,) = node.readings
        events = keyed_event_zones(build.build(reading.input), reading, node.completed_by, build)
        zones = build.named(events, node.schema)
        return build.constrain(zones, temporal_formula(node.result.relations, node.schema), node.result.name)

    def state(self, node: Process) -> StateBound:
        tables = node.operator.tables
        rows = tuple(StoredRows(name, "kept", of=f"of {name!r}") for name in tables)
        return StateBound(tuple(f"{name}: {_bound(node, name)}" for name in tables), rows)

    def one_by_one(self, node: Process, *, shared: bool) -> Sequence[str]:
        return (f"{type(node.operator).__name__} asks for them",)


def _bound(node: Process, table: str) -> str:
    """How many rows of a table are kept at most: so many of each partition that is kept."""
    most = node.operator.most.get(table)
    if most is None:
        return f"unbounded: missing most[{table!r}]"
    return f"{_partitions(node)} × {most:,}" if node.keys else f"{most:,}"


def _partitions(node: Process) -> str:
    """How many partitions are kept at most: each had an event within `kept_for`, or has ever had one."""
    streams = occurrences(node.input)
    tables = multiplying_tables(node.input)
    (at,) = (place for place, stream in enumerate(streams) if not stream.static)
    if node.kept_for is None:
        return f"keys({streams[at].name} by {', '.join(node.keys)})"
    matches = [f"matches({table})" for table in tables.get(at, ())]
    span = amount(node.kept_for, node.input.schema[node.time].type)
    return " × ".join([f"rate({streams[at].name})", *matches, factor(span)])
