"""The size of the situations that operators keep, in rows and bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tidegate.runtime.plan.situation_state import deriving, state_name
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.state.manifest import KernelState

#: Situations that are open, and those that are over and may still be matched.
OPEN: Final = "open"
CLOSED: Final = "closed"
SITUATIONS: Final = frozenset((OPEN, CLOSED))
#: What the names of rows begin with that go with others, such as aggregates of situations: they are not counted by
#: themselves.
VALUES: Final = "values "
#: Their instants.
START: Final = "start"
END: Final = "end"


def situation_rows(plan: Plan, kernel: Mapping[str, KernelState]) -> dict[str, int]:
    """The rows of kept situations, open ones and those that may still be matched, by the name under which they
    count.
    """
    return _summed(plan, kernel, lambda state: sum(one.rows for one in state.kept if not one.holds.startswith(VALUES)))


def situation_bytes(plan: Plan, kernel: Mapping[str, KernelState]) -> dict[str, int]:
    """The bytes of kept situations, aggregates included, by the same names."""
    return _summed(plan, kernel, lambda state: sum(file.bytes for file in state.files))


def _summed(plan: Plan, kernel: Mapping[str, KernelState], size: Callable[[KernelState], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for query in deriving(plan):
        assert query.ordered is not None
        name = state_name(query.name, query.ordered.node.keeps)
        found[name] = found.get(name, 0) + (size(kernel[query.name]) if query.name in kernel else 0)
    return found
