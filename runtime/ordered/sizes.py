"""The size of what ordered operators keep, in rows and bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidegate.runtime.plan.operator_state import queries_that_keep, state_name
from tidegate.runtime.plan.steps import OrderedStep, Plan
from tidegate.runtime.state.manifest import OperatorFiles


def operator_rows(plan: Plan, stored: Mapping[str, OperatorFiles]) -> dict[str, int]:
    """The rows that operators keep, by the name under which they count."""

    def rows(ordered: OrderedStep, state: OperatorFiles) -> int:
        apart = {row.name for row in ordered.keeps.rows if not row.counted}
        return sum(kept.rows for kept in state.kept if kept.holds not in apart)

    return _summed(plan, stored, rows)


def operator_bytes(plan: Plan, stored: Mapping[str, OperatorFiles]) -> dict[str, int]:
    """The bytes of what operators keep, by the same names."""
    return _summed(plan, stored, lambda _, state: sum(file.bytes for file in state.files))


def _summed(
    plan: Plan, stored: Mapping[str, OperatorFiles], size: Callable[[OrderedStep, OperatorFiles], int]
) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for query in queries_that_keep(plan):
        assert query.ordered is not None
        name = state_name(query.name, query.ordered.node.keeps)
        sizes[name] = sizes.get(name, 0) + (size(query.ordered, stored[query.name]) if query.name in stored else 0)
    return sizes
