"""Operators that users write: what they declare holds of their rows."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.algebra.errors import Problem
from tidegate.algebra.formulas import temporal_formula
from tidegate.algebra.ordered.process import Process
from tidegate.algebra.program import Query
from tidegate.analysis.ordered.family import Family, StateBound, ZoneBuilder, completing
from tidegate.analysis.zones.zone import Zone


class ProcessFamily(Family[Process]):
    node = Process

    def zones(self, node: Process, build: ZoneBuilder) -> list[Zone]:
        (reading,) = node.readings
        zones = build.named(completing(build.build(reading.input), reading, node.completed_by), node.schema)
        return build.constrain(zones, temporal_formula(node.result.relations, node.schema), node.result.name)

    def problems(self, node: Process, query: Query) -> list[Problem]:
        return []

    def with_progress(self, node: Process) -> Sequence[tuple[Process, str]]:
        return ()

    def state(self, node: Process) -> StateBound:
        return StateBound((node.operator.bound,) if node.operator.tables else (), {})

    def freed(self, node: Process, *, always: bool) -> Sequence[str]:
        return ()

    def one_by_one(self, node: Process, *, shared: bool) -> Sequence[str]:
        return (f"{type(node.operator).__name__} asks for them",)
