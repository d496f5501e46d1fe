"""What a checkpoint holds of situations: per operator those that are open, those that may still be matched, and until
when.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import Kind
from tidegate.runtime.batch.instants import instant_text, plain_instant
from tidegate.runtime.ordered.sizes import CLOSED, END, OPEN, SITUATIONS, START, VALUES
from tidegate.runtime.plan.layout import Layout
from tidegate.runtime.plan.situation_state import Situations, state_name
from tidegate.runtime.state.errors import MANIFEST, StateError
from tidegate.runtime.state.manifest import KeptRows, KernelState
from tidegate.runtime.state.segments import covering


@dataclass(frozen=True, slots=True)
class SituationState:
    """What the operator of a query keeps: situations that are open, others that may still be matched, values of
    aggregates.

    `progress` is how far it has read its events. Once it reaches `until`, none of those that are over now is kept; ∞:
    not before the end.
    """

    of: Situations
    open: KeptRows
    closed: KeptRows
    values: int
    tables: Mapping[str, int]
    bytes: int
    files: int
    progress: Extended

    @property
    def rows(self) -> int:
        """Situations, open or not, and rows of other tables."""
        return self.open.rows + self.closed.rows + sum(self.tables.values())

    @property
    def until(self) -> Extended:
        return min((self.closed.bounds[x][1] + d for x, d in self.of.ahead.items() if self.closed.rows), default=INF)


def situation_states(
    layout: Layout, kernel: Mapping[str, KernelState], progress: Mapping[tuple[str, str], Extended]
) -> tuple[SituationState, ...]:
    """What the operators keep, in the order of their queries; `progress` by query and attribute."""
    return tuple(
        _state(one, kernel.get(one.query, KernelState(0)), progress.get((one.query, one.time), -INF))
        for one in layout.situations
    )


def check_situations(layout: Layout, kernel: Mapping[str, KernelState]) -> None:
    """`StateError` TG504 where what is said of situations does not fit: instants that they have not, or bounds of
    others.
    """
    for one in layout.situations:
        if not {START, END} >= one.ahead.keys():
            raise StateError(MANIFEST, f"the layout in meta.json does not fit: {sorted(one.ahead)!r:.200}")
        needed = {OPEN: {START}, CLOSED: {END, *one.ahead}}
        for kept in kernel.get(one.query, KernelState(0)).kept:
            if kept.rows and not kept.bounds.keys() >= needed.get(kept.holds, set()):
                raise StateError(
                    MANIFEST, f"the manifest bounds situations of {one.query} by {sorted(kept.bounds)!r:.200}"
                )


def _state(of: Situations, state: KernelState, progress: Extended) -> SituationState:
    values = sum(one.rows for one in state.kept if one.holds.startswith(VALUES))
    tables: dict[str, int] = {}
    for one in state.kept:
        if one.holds not in SITUATIONS and not one.holds.startswith(VALUES):
            tables[one.holds] = tables.get(one.holds, 0) + one.rows
    size = sum(file.bytes for file in state.files)
    return SituationState(of, _all(OPEN, state), _all(CLOSED, state), values, tables, size, len(state.files), progress)


def _all(holds: str, state: KernelState) -> KeptRows:
    """What all files together hold of a kind."""
    parts = [one for one in state.kept if one.holds == holds and one.rows]
    return KeptRows(holds, sum(one.rows for one in parts), covering([one.bounds for one in parts]))


def situation_text(one: SituationState) -> str:
    """For people."""
    kind = Kind(one.of.kind)
    head = f"{state_name(one.of.query, one.of.what)}: {count_of(one.rows, 'row')}"
    if one.rows:
        head += f", {count_of(one.bytes, 'byte')} in {count_of(one.files, 'file')}"
    lines = [head]
    if state_name(one.of.query, one.of.what) != f"{one.of.query}: {one.of.what}":
        lines.append(f"  for         {one.of.query}, inside that query")
    if one.open.rows:
        low, high = one.open.bounds[START]
        lines.append(f"  open        {one.open.rows:,}, since {_between(low, high, kind)}; kept until they end")
    if one.closed.rows:
        low, high = one.closed.bounds[END]
        lines.append(
            f"  over        {one.closed.rows:,}, ended {_between(low, high, kind)}; kept while a match may need them"
        )
        lines.append(f"              p({one.of.time}) is {instant_text(one.progress, kind)}")
        until = f"p({one.of.time}) reaches {instant_text(one.until, kind)}" if one.until != INF else "its input ends"
        lines.append(f"              until {until}")
    if one.values:
        lines.append(f"  aggregates  {count_of(one.values, 'partial value')} of these")
    lines += [f"  {'kept':<12}{count_of(count, 'row')} of {name!r}" for name, count in one.tables.items()]
    lines += [f"  {'' if i else 'bound':<12}{text}" for i, text in enumerate(one.of.bounds)]
    return "\n".join(lines)


def _between(low: int, high: int, kind: Kind) -> str:
    return instant_text(low, kind) if low == high else f"{instant_text(low, kind)} to {instant_text(high, kind)}"


def situation_dict(one: SituationState) -> dict[str, object]:
    """The same as plain values for JSON."""
    kind = Kind(one.of.kind)

    def part(kept: KeptRows) -> dict[str, object]:
        ranges = {name: [plain_instant(t, kind) for t in bounds] for name, bounds in kept.bounds.items()}
        return {"rows": kept.rows, **ranges}

    return {
        "situations": state_name(one.of.query, one.of.what),
        "query": one.of.query,
        "rows": one.rows,
        "bytes": one.bytes,
        "open": part(one.open),
        "over": part(one.closed),
        "partial_values": one.values,
        **({"tables": dict(one.tables)} if one.tables else {}),
        "progress": {one.of.time: plain_instant(one.progress, kind)},
        "until": {one.of.time: plain_instant(one.until, kind)} if one.closed.rows else {},
        "bound": list(one.of.bounds),
    }
