"""Windows that rows open and others close, as nodes: contexts with two states, rows in them, and these as they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidegate.algebra.dsl.checks.relation import free_name, renamed
from tidegate.algebra.dsl.contexts.look_up import LookUp
from tidegate.algebra.dsl.expression import Origin
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import Site
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Imbed, Node, Project, Select, Union
from tidegate.algebra.ordered.transitions.definition import BEGAN, CHANGE, CONTEXT, TIME, ContextType, Transition
from tidegate.algebra.ordered.transitions.definition import END as ENDS
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.ordered.windows.kinds import OpenedWindow
from tidegate.algebra.ordered.windows.node import END, START, Windows
from tidegate.algebra.schema import unused_mark
from tidegate.algebra.terms import FALSE, TRUE, Attr, Lit, Term, call, conjunction
from tidegate.algebra.types import BIGINT, STRING

#: A key is in one of two contexts.
_CLOSED: Final = "closed"
_OPEN: Final = "open"
#: What is asked for by a row that opens, one that closes, and by the first one when its window has lasted long enough.
_ASKED: Final = (
    Transition("initiate", _OPEN, (_CLOSED, _OPEN)),
    Transition("terminate", _OPEN, (_OPEN,)),
    Transition("terminate", _OPEN, (_OPEN,)),
)


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """Rows that ask for changes of windows, those that open them or those that close them: with the names of their keys
    and of their instant.
    """

    rows: Relation
    keys: tuple[str, ...]
    at: str

    def candidates(self, number: int, names: Sequence[str], longest: int | None, asked: _AskedNames) -> Node:
        """The rows as they ask for a change with this number, by these names of keys. A key that is NULL asks for
        nothing.

        The third change is asked for `longest` ticks later, of the window that the row has opened: of one that was
        opened no later than the row. An earlier one has ended by then.
        """
        distance = self.rows.schema[self.at].type.distance
        there: list[Term] = [call("is_not_null", Attr(key)) for key in self.keys if self.rows.schema[key].nullable]
        node: Node = Select(self.rows._node, conjunction(there)) if there else self.rows._node
        node, at, beside = Imbed(node, asked.number, Lit(number, BIGINT)), Attr(self.at), [asked.number]
        if longest is not None:
            since: Term = at
            if number == 2:
                since = call("add", at, Lit(1, distance))
                node, at = Imbed(node, asked.until, call("add", at, Lit(longest, distance))), Attr(asked.until)
            node = Imbed(node, asked.since, since)
            beside.append(asked.since)
        return renamed(
            Project(node, (*self.keys, at.name, *beside)), [*zip(self.keys, names, strict=True), (at.name, TIME)]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """Windows by keys with these names: what changes them, and how many ticks one lasts that nothing closes."""

    changes: Relation
    names: tuple[str, ...]
    longest: int | None

    @classmethod
    def of(
        cls, opens: Asking, closes: Asking, names: tuple[str, ...], longest: int | None, site: Site | None
    ) -> Opened:
        """Those that rows open and others close."""
        taken = (CONTEXT, CHANGE, TIME, BEGAN)
        keys = tuple(free_name(name, (*taken, *names)) if name in taken else name for name in names)
        asking = [opens, closes] if longest is None else [opens, closes, opens]
        asked = _AskedNames.beside((*opens.rows.schema, *closes.rows.schema, *keys))
        node = Transitions(
            Union(tuple(rows.candidates(number, keys, longest, asked) for number, rows in enumerate(asking))),
            keys,
            TIME,
            (ContextType(_CLOSED), ContextType(_OPEN)),
            _CLOSED,
            _ASKED[: len(asking)],
            asked.number,
            None if longest is None else asked.since,
            dated=False,
        )
        origins = dict.fromkeys(node.schema, Origin("these windows"))
        return cls(opens.rows._with(node, origins, site, (), (closes.rows,)), names, longest)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys, as the changes have them."""
        return self.changes.schema.names[: len(self.names)]

    def inside(
        self,
        rows: Relation,
        keys: tuple[str, ...],
        at: str,
        start: str,
        site: Site | None,
        since: str | None = None,
    ) -> Relation:
        """The rows in a window, with the instant at which it was opened by this name; without it if that is empty.

        `since`: an earlier instant of a row, before which the window has to have been opened.
        """
        look_up = replace(self._look_up(rows, keys, at), since=since)
        return look_up.inside((_OPEN,), {start: BEGAN} if start else {}, site)

    def outside(self, rows: Relation, keys: tuple[str, ...], at: str, site: Site | None) -> Relation:
        """The rows in no window."""
        return self._look_up(rows, keys, at).outside((_OPEN,), site)

    def whole(self) -> Node:
        """The windows themselves: keys, start and end."""
        at, marks = free_name(TIME, self.names), _Marks.beside(self.names)
        return self._limited(Windows(self._ends(self.names, at, marks), self.names, at, marks.window, ()))

    def aggregated(
        self,
        of: Relation,
        keys: tuple[str, ...],
        time: str,
        aggregates: Sequence[Aggregate],
        site: Site | None,
        *,
        empty: bool,
    ) -> Node:
        """The windows with aggregates of the rows in them; `empty`: also those without rows."""
        marks = _Marks.beside((*of.schema, *(aggregate.name for aggregate in aggregates)))
        rows, aggregates = _read(of._node, (*keys, time), aggregates, marks.row)
        relation = Relation(rows, dict.fromkeys(rows.schema, Origin("these windows")), of._sites, of._results)
        inside = self.inside(relation, keys, time, marks.opened, site)._node
        ends = self._ends(keys, time, marks)
        for name in rows.schema.names:
            if name not in (*keys, time):
                ends = Imbed(ends, name, Lit(None, rows.schema[name].type))
        counted = () if empty else (Aggregate(marks.rows, Function.COUNT, Attr(marks.row)),)
        both = Union((Imbed(inside, marks.closes, FALSE), ends))
        node = self._limited(Windows(both, keys, time, marks.window, (*aggregates, *counted)))
        if not empty:
            node = Select(node, call("gt", Attr(marks.rows), Lit(0, BIGINT)))
        return Project(node, (*keys, START, END, *(aggregate.name for aggregate in aggregates)))

    def _look_up(self, rows: Relation, keys: tuple[str, ...], at: str) -> LookUp:
        return LookUp(self.changes, _CLOSED, self.keys, rows, keys, at)

    def _ends(self, keys: Sequence[str], time: str, marks: _Marks) -> Node:
        """Each window as it ends, by these names of keys and of that instant."""
        ended = [(CONTEXT, _OPEN), (CHANGE, ENDS)]
        condition = conjunction([call("eq", Attr(name), Lit(value, STRING)) for name, value in ended])
        node = Project(Select(self.changes._node, condition), (*self.keys, TIME, BEGAN))
        names = [*zip(self.keys, keys, strict=True), (TIME, time), (BEGAN, marks.opened)]
        return Imbed(renamed(node, names), marks.closes, TRUE)

    def _limited(self, windows: Windows) -> Node:
        """Windows with what is known of how long they last."""
        if self.longest is None:
            return windows
        longest = Lit(self.longest, windows.schema[START].type.distance)
        return Select(windows, call("le", Attr(END), call("add", Attr(START), longest)))


@dataclass(frozen=True, slots=True)
class _AskedNames:
    """The attributes of rows that ask for a change, by names that no attribute has beside which they stand."""

    number: str
    since: str
    until: str

    @classmethod
    def beside(cls, names: Iterable[str]) -> _AskedNames:
        mark = unused_mark(names)
        return cls(f"{mark}number", f"{mark}since", f"{mark}until")


@dataclass(frozen=True, slots=True)
class _Marks:
    """The attributes of rows in windows, by names that no attribute has beside which they stand: when the window was
    opened, whether the row closes it, that it is a row, and how many rows the window has.
    """

    opened: str
    closes: str
    row: str
    rows: str

    @classmethod
    def beside(cls, names: Iterable[str]) -> _Marks:
        mark = unused_mark(names)
        return cls(f"{mark}opened", f"{mark}closes", f"{mark}row", f"{mark}rows")

    @property
    def window(self) -> OpenedWindow:
        return OpenedWindow(self.opened, self.closes)


def _read(node: Node, kept: tuple[str, ...], aggregates: Sequence[Aggregate], row: str) -> tuple[Node, list[Aggregate]]:
    """The rows with nothing but `kept` and what aggregates read of them, and the aggregates of these attributes. Of
    what is no row all of these are NULL, `row` too, so that it does not count.
    """
    node = Imbed(node, row, TRUE)
    names: dict[Term, str] = {}
    for aggregate in aggregates:
        for term in aggregate.terms:
            if term in names:
                continue
            if isinstance(term, Attr) and term.name not in kept:
                names[term] = term.name
            else:
                names[term] = free_name(aggregate.name, node.schema)
                node = Imbed(node, names[term], term)
    read = [
        replace(
            aggregate,
            argument=Attr(row if aggregate.argument is None else names[aggregate.argument]),
            by=None if aggregate.by is None else Attr(names[aggregate.by]),
        )
        for aggregate in aggregates
    ]
    return Project(node, (*kept, *dict.fromkeys(names.values()), row)), read
