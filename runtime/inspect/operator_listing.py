"""What a checkpoint holds of ordered operators: for each the kinds of rows that it keeps, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import Kind
from tidegate.analysis.ordered.family import StoredRows
from tidegate.runtime.batch.instants import instant_text, plain_instant
from tidegate.runtime.plan.layout import Layout
from tidegate.runtime.plan.operator_state import OperatorState, state_name
from tidegate.runtime.state.errors import MANIFEST, StateError
from tidegate.runtime.state.manifest import KeptRows, OperatorFiles
from tidegate.runtime.state.segments import covering

_NOTHING = OperatorFiles(0)


@dataclass(frozen=True, slots=True)
class KeptKind:
    """The rows of a kind that an operator keeps. Once its progress reaches `until`, none of those is kept that are kept
    now; ∞: not before the end.
    """

    of: StoredRows
    kept: KeptRows

    @property
    def until(self) -> Extended:
        return min((self.kept.bounds[x][1] + d for x, d in self.of.ahead.items() if self.kept.rows), default=INF)


@dataclass(frozen=True, slots=True)
class OperatorRows:
    """What the operator of a query keeps, kind by kind. `progress` is how far it has read its events."""

    of: OperatorState
    kinds: tuple[KeptKind, ...]
    bytes: int
    files: int
    progress: Extended

    @property
    def rows(self) -> int:
        """Rows, without those that belong to others."""
        return sum(kind.kept.rows for kind in self.kinds if kind.of.counted)


def operators_listed(
    layout: Layout, stored: Mapping[str, OperatorFiles], progress: Mapping[tuple[str, str], Extended]
) -> tuple[OperatorRows, ...]:
    """What the operators keep, in the order of their queries; `progress` by query and attribute."""
    return tuple(
        _rows(operator, stored.get(operator.query, _NOTHING), progress.get((operator.query, operator.time), -INF))
        for operator in layout.operators
    )


def check_operators(layout: Layout, stored: Mapping[str, OperatorFiles]) -> None:
    """`StateError` TG504 where rows are of no kind that their operator has, or have other bounds than are said."""
    for operator in layout.operators:
        kinds = {kind.name: {*kind.ahead, *([kind.instant] if kind.instant else [])} for kind in operator.keeps.rows}
        for kept in stored.get(operator.query, _NOTHING).kept:
            if kept.holds not in kinds:
                raise StateError(MANIFEST, f"the manifest has rows {kept.holds!r:.200} of {operator.query}")
            if kept.rows and not kept.bounds.keys() >= kinds[kept.holds]:
                raise StateError(
                    MANIFEST,
                    f"the manifest bounds rows {kept.holds!r:.200} of {operator.query} by {sorted(kept.bounds)!r:.200}",
                )


def _rows(of: OperatorState, state: OperatorFiles, progress: Extended) -> OperatorRows:
    kinds = tuple(KeptKind(row, _all(row.name, state)) for row in of.keeps.rows)
    return OperatorRows(of, kinds, sum(file.bytes for file in state.files), len(state.files), progress)


def _all(holds: str, state: OperatorFiles) -> KeptRows:
    """What all files together hold of a kind."""
    parts = [kept for kept in state.kept if kept.holds == holds and kept.rows]
    return KeptRows(holds, sum(part.rows for part in parts), covering([part.bounds for part in parts]))


def operator_text(operator: OperatorRows) -> str:
    """For people."""
    name = state_name(operator.of.query, operator.of.what)
    head = f"{name}: {count_of(operator.rows, 'row')}"
    if operator.rows:
        head += f", {count_of(operator.bytes, 'byte')} in {count_of(operator.files, 'file')}"
    lines = [head]
    if name != f"{operator.of.query}: {operator.of.what}":
        lines.append(f"  for         {operator.of.query}, inside that query")
    for kind in operator.kinds:
        lines += _kind_lines(operator, kind) if kind.kept.rows else []
    lines += [f"  {'' if i else 'bound':<12}{text}" for i, text in enumerate(operator.of.keeps.bounds)]
    return "\n".join(lines)


def _kind_lines(operator: OperatorRows, kind: KeptKind) -> list[str]:
    of, rows, ticks = kind.of, kind.kept.rows, Kind(operator.of.kind)
    if not of.instant:
        return [f"  {of.label:<12}{count_of(rows, of.noun)} {of.of}".rstrip()]
    low, high = kind.kept.bounds[of.instant]
    lines = [f"  {of.label:<12}{rows:,}, {of.verb} {_between(low, high, ticks)}; kept {of.kept}"]
    if of.ahead:
        reached = f"p({operator.of.time}) reaches {instant_text(kind.until, ticks)}"
        lines.append(f"  {'':<12}p({operator.of.time}) is {instant_text(operator.progress, ticks)}")
        lines.append(f"  {'':<12}until {reached}")
    return lines


def _between(low: int, high: int, kind: Kind) -> str:
    return instant_text(low, kind) if low == high else f"{instant_text(low, kind)} to {instant_text(high, kind)}"


def operator_dict(operator: OperatorRows) -> dict[str, object]:
    """The same as plain values for JSON."""
    ticks = Kind(operator.of.kind)

    def part(kind: KeptKind) -> dict[str, object]:
        ranges = {name: [plain_instant(t, ticks) for t in bounds] for name, bounds in kind.kept.bounds.items()}
        until = (
            {"until": {operator.of.time: plain_instant(kind.until, ticks)}} if kind.of.ahead and kind.kept.rows else {}
        )
        return {"rows": kind.kept.rows, **ranges, **until}

    return {
        "operator": state_name(operator.of.query, operator.of.what),
        "query": operator.of.query,
        "rows": operator.rows,
        "bytes": operator.bytes,
        "kept": {kind.of.name: part(kind) for kind in operator.kinds},
        "progress": {operator.of.time: plain_instant(operator.progress, ticks)},
        "bound": list(operator.of.keeps.bounds),
    }
