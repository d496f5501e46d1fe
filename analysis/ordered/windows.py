"""The analysis of windows that depend on rows or overlap: when they are complete, and how many are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate.algebra.errors import Problem
from tidegate.algebra.formulas import And, Compare, Formula, Shift, Var
from tidegate.algebra.ordered.windows import END, START, HoppingWindow, SessionWindow, Windows
from tidegate.algebra.program import Query
from tidegate.algebra.schema import Schema
from tidegate.analysis.ordered.family import (
    Family,
    StateBound,
    StoredRows,
    ZoneBuilder,
    completing,
    equal_instants,
    held,
    stream_of,
)
from tidegate.analysis.zones.zone import Layout, Zone

#: The names of what is kept: open sessions, what windows that grow have come to, and the panes of which those consist
#: that hop.
SESSIONS: Final = "sessions"
TOTALS: Final = "totals"
PANES: Final = "panes"
#: Attributes of a row of the window while zones are built; no attribute of a user has such a name.
_ROW: Final = "\0row"
_KEY: Final = "\0{}"


class WindowsFamily(Family[Windows]):
    node = Windows

    def zones(self, node: Windows, build: ZoneBuilder) -> list[Zone]:
        """A window at its end, with an instant for its start and one for a row: of a session the last, whose keys are
        those of the first, too.
        """
        (reading,) = node.readings
        schema = node.input.schema
        zones = build.build(reading.input)
        time = schema[node.time]
        keys = tuple(schema[key] for key in node.keys if schema[key].temporal)
        start, end, row = (time.renamed(name) for name in (START, END, _ROW))
        completed = build.named(completing(zones, reading, END), Schema((end,)))
        first = Schema((*keys, start)) if isinstance(node.window, SessionWindow) else Schema((start,))
        last = Schema((*(key.renamed(_KEY.format(key.name)) for key in keys), row))
        firsts = [held(zone, first, build) for zone in build.named(completing(zones, reading, START), first)]
        its = [_with_keys_renamed(zone) for zone in completing(zones, reading, _ROW)]
        lasts = [held(zone, last, build) for zone in build.named(its, last)]
        both = Schema((end, *last.attributes))
        pairs = build.joined(completed, lasts, both, And(()))
        if not isinstance(node.window, SessionWindow):
            keyed = Schema((end, *keys, row))
            pairs = build.named([_with_keys_restored(zone) for zone in pairs], keyed)
            both = keyed
        whole = Schema((*both.attributes, *first.attributes))
        results = build.joined(pairs, firsts, whole, _relations(node, [key.name for key in keys]))
        return build.pruned(build.named(results, node.schema), node.schema)

    def problems(self, node: Windows, query: Query) -> list[Problem]:
        return []

    def with_progress(self, node: Windows) -> Sequence[tuple[Windows, str]]:
        return ()

    def state(self, node: Windows) -> StateBound:
        many = f"keys({stream_of(node.input)[1]} by {', '.join(node.keys)})" if node.keys else ""
        window = node.window
        if isinstance(window, SessionWindow):
            return StateBound((f"{SESSIONS}: {many or 1}",), (StoredRows(SESSIONS, "open", of="of sessions"),))
        if window.grows:
            return StateBound((f"{TOTALS}: {many or 1}",), (StoredRows(TOTALS, "open", of="of windows so far"),))
        panes = f"{many} × {window.size // window.every:,}" if many else f"{window.size // window.every:,}"
        return StateBound((f"{PANES}: {panes}",), (StoredRows(PANES, "open", of="of panes that windows share"),))

    def freed(self, node: Windows, *, always: bool) -> Sequence[str]:
        return ()

    def one_by_one(self, node: Windows, *, shared: bool) -> Sequence[str]:
        return ("its instant decides which windows it is in",)


def _with_keys_renamed(zone: Zone) -> Zone:
    names = {name: name if name == _ROW else _KEY.format(name) for name in zone.layout.attributes}
    return _renamed(zone, names)


def _with_keys_restored(zone: Zone) -> Zone:
    names = {name: name if name in (END, _ROW) else name[1:] for name in zone.layout.attributes}
    return _renamed(zone, names)


def _renamed(zone: Zone, names: dict[str, str]) -> Zone:
    return zone.arranged(Layout(zone.layout.rows, {names[name]: row for name, row in zone.layout.attributes.items()}))


def _relations(node: Windows, keys: Sequence[str]) -> Formula:
    """The relations of a window's bounds and a row of it: of a session its last."""
    start, end, row = Var(START), Var(END), Var(_ROW)
    window = node.window
    if isinstance(window, SessionWindow):
        equal = equal_instants([(key, _KEY.format(key)) for key in keys])
        return And((Compare(start, "<=", row), Compare(end, "=", Shift(row, window.gap)), equal))
    inside = (Compare(start, "<", row), Compare(row, "<=", end))
    if isinstance(window, HoppingWindow):
        return And((*inside, Compare(end, "=", Shift(start, window.size))))
    return And((*inside, Compare(Shift(start, window.every), "<=", end), Compare(end, "<=", Shift(start, window.size))))
