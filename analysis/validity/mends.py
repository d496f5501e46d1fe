"""Mends of a refused query, in its own names. Each is tried by analysing the mended query.

Which mends are tried goes by the shape of the query; what is said of one is that the query with it keeps its promise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    OrderedNode,
    Product,
    Project,
    Rename,
    Select,
    Union,
    children,
    occurrences,
    with_children,
)
from tidegate.algebra.program import Query
from tidegate.algebra.row_wise import is_static
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.terms import Attr, Call, Lit, Term, call, conjunction
from tidegate.algebra.time import INF, duration_ticks, format_duration
from tidegate.algebra.types import DURATION, DataType, Kind
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.ordered.table import family_of
from tidegate.analysis.progress.progress_sets import minimal_progressing_sets
from tidegate.analysis.progress.propagation import Clause, propagation
from tidegate.analysis.validity.calendar_parts import DATES, Part, calendar_windows, part_of_calendar
from tidegate.analysis.validity.forms import (
    Form,
    asking,
    first_of_each,
    largest,
    latest_of_each,
    looked_up,
    of_rows,
    once,
    up_to_each,
    versions,
)
from tidegate.analysis.validity.last_before import last_before
from tidegate.analysis.validity.places import (
    Step,
    Unary,
    above_ordered,
    as_selected,
    below_unary,
    carrying,
    changed_at,
    first_with_instants,
    free_name,
    operators_above,
    put,
    replaced,
    unary_operators,
)
from tidegate.analysis.validity.written import written_name
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.wording import usual_spans
from tidegate.analysis.zones.zone import Extreme, Hidden, Rounding, RowTerm, Zone, is_copy

#: How much is analysed again at most for the mends of a query: zones times occurrences, of one try after the other.
EFFORT: Final = 2_000
#: Of more instants one does not look for those that say together when a row is known.
INSTANTS: Final = 12

_SIGNS: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@dataclass(frozen=True, slots=True)
class _Tried:
    """What is proposed for an attribute that does not progress: dates as instants, and nothing else where there are
    any; bounds by the stream that each is of; another attribute; forms of what is meant, and of what may be.
    """

    days: str = ""
    bounds: Mapping[str, str] = field(default_factory=dict)
    instead: str = ""
    meant: str = ""
    possible: str = ""


@dataclass(slots=True)
class Mends:
    """Tries mends of a query over the definitions of the streams that it reads."""

    node: Node
    streams: Mapping[str, StreamDef]
    effort: int = EFFORT
    _tried: dict[tuple[str, str | None, bool, bool], _Tried] = field(default_factory=dict)

    # Results that do not progress -------------------------------------------------------------------------------------
    def progress(
        self, attribute: str, clause: Clause, instead: str | None = None, *, declared: bool = False, alone: bool = True
    ) -> str:
        """How an attribute progresses on a stream: by a bound; or the result on `instead`, or on what says when a row
        is known; or in another form.

        Where periods are waited for that last as long as they will, the bound comes after those. A `declared` result
        gets another attribute only where no other query feeds it. Empty where nothing was found.
        """
        asked = attribute, instead, declared, alone
        if asked not in self._tried:
            days = self._days(attribute)
            self._tried[asked] = _Tried(days) if days else self._all(*asked)
        tried = self._tried[asked]
        bound, replacement = tried.bounds.get(clause.stream, ""), tried.instead
        first, second = (replacement, bound) if _ends_later(attribute, clause) else (bound, replacement)
        return tried.days or "; or ".join(text for text in (tried.meant, first, second, tried.possible) if text)

    def _all(self, attribute: str, instead: str | None, declared: bool, alone: bool) -> _Tried:
        """All that is proposed where no dates are compared."""
        bounds, replacement = self._all_bounds(attribute), self._instead(attribute, instead, declared, alone)
        meant = "" if declared else self._written(versions(self.node))
        possible = self._written(looked_up(self.node), attribute if declared else None)
        return _Tried("", bounds, replacement, meant, possible)

    def _instead(self, attribute: str, instead: str | None, declared: bool, alone: bool) -> str:
        """What else than a bound lets the result progress; empty where nothing is known."""
        if instead is not None:
            return f'let the result progress on {instead}: progress="{instead}"'
        if (alone or not declared) and (known := self._known()) is not None:
            name, written = known
            return f"say when a row is known: {written}" + (f', and progress="{name}"' if declared else "")
        return self._regrouped(attribute)

    def completion(self, operator: OrderedNode, completed: str) -> str:
        """How rows of the query's operator pass that wait for others without bound; empty where none is known."""
        hints = [text for text in (self._variant(operator, completed),) if text]
        for streams, text in family_of(operator).declarations(operator, self._analysed):
            if self._progresses(self.node, completed, {**self.streams, **streams}):
                hints.append(text)
        return "; or ".join(hints)

    def _variant(self, operator: OrderedNode, attribute: str) -> str:
        """How a variant of the operator is written of which the results progress; empty where none is known."""
        for mended, text in family_of(operator).with_progress(operator):
            node = replaced(self.node, operator, mended)
            if not family_of(mended).problems(mended, Query("", "", node)) and self._progresses(node, attribute):
                return text
        return ""

    def _all_bounds(self, attribute: str) -> Mapping[str, str]:
        """Bounds that make an attribute progress, all together, by the stream that each is of; none where none were
        found.
        """
        mended = self._bounded(self.node, attribute)
        return {} if mended is None else {stream: " and ".join(texts) for stream, texts in mended[1].items()}

    def _bounded(self, node: Node, attribute: str) -> tuple[Node, dict[str, list[str]]] | None:
        """The query with bounds by which an attribute progresses, and these as they are written, by stream."""
        written: dict[str, list[str]] = {}
        while (federation_ := self._analysed(node)) is not None:
            clause = next(
                (clause for clause in propagation(federation_, attribute).clauses if not clause.is_finite), None
            )
            if clause is None:
                return node, written
            step = self._one_bound(node, federation_, attribute, clause) or self._one_instant(
                node, federation_, attribute, clause
            )
            if step is None:
                return None
            node, text = step
            written.setdefault(clause.stream, []).append(text)
        return None

    def _one_bound(self, node: Node, federation: Federation, attribute: str, clause: Clause) -> tuple[Node, str] | None:
        """The query with a condition that bounds the occurrence of a clause, and the condition as it is written."""
        i = clause.occurrence
        for scope in _scopes(node, i, own_first=_ends_later(attribute, clause)):
            for y, t, least in self._pairs(scope, i):
                type_ = scope.rows.schema[y].type
                span = _span(type_, least)
                if span is None:
                    continue
                mended = scope.mended(node, _at_most(y, t, type_, span[0]))
                if self._is_bounded(mended, federation, attribute, i):
                    return (
                        mended,
                        f"bound it: {written_name(y, scope.rows)} <= {written_name(t, scope.rows)} + {span[1]}",
                    )
        return None

    def _one_instant(
        self, node: Node, federation: Federation, attribute: str, clause: Clause
    ) -> tuple[Node, str] | None:
        """The query with an instant, or a window of it, that a side of a join drops, and a condition on it in the
        join.
        """
        for step in above_ordered(node, clause.occurrence):
            join = step.node
            if not isinstance(join, Join):
                continue
            on_right = clause.occurrence - step.before >= len(occurrences(join.left))
            side, opposite = (join.right, join.left) if on_right else (join.left, join.right)
            core = first_with_instants(side)
            if core is None or core is side:
                continue
            for t in opposite.schema.temporal:
                carried, condition, text = self._instant_of(side, core, t, opposite)
                left, right = (join.left, carried) if on_right else (carried, join.right)
                mended = put(node, step.place, Join(left, right, conjunction([join.condition, condition]), join.kind))
                if self._is_bounded(mended, federation, attribute, clause.occurrence):
                    return mended, text
        return None

    def _instant_of(self, side: Node, core: Node, t: str, node: Node) -> tuple[Node, Term, str]:
        """A side with an instant that it drops, what that has to do with another one, and how it is written."""
        type_, instant = node.schema[t].type, written_name(t, node)
        above = operators_above(side, core)
        if any(isinstance(operator, Group | Distinct) for operator in above):
            carried, name, window = self._windowed(side, core)
            verb = "group by" if any(isinstance(operator, Group) for operator in above) else "keep"
            text = f"{verb} {name}={window}, and join where {name} == {_window_text(instant, type_)}"
            return carried, call("eq", Attr(name), _window(Attr(t), type_)), text
        instants, name = self._together(core) or core.schema.temporal[:1], free_name("known", side)
        (ticks, span), kept = usual_spans(type_)[0], _latest_text(instants, core)
        text = f"keep {kept} on its side of the join, and bound it: {kept} <= {instant} + {span}"
        return carrying(side, core, name, _latest(instants)), _at_most(name, t, type_, ticks), text

    def _is_bounded(self, mended: Node, before: Federation, attribute: str, i: int) -> bool:
        """Whether an attribute bounds an occurrence of a mended query, which speaks of all that it has spoken of."""
        after = self._analysed(mended)
        if after is None or attribute not in after.attributes or _spoken_of(after) != _spoken_of(before):
            return False
        speaking = [zone for zone in after.zones if i not in zone.ignored]
        return all(_reaches(zone, attribute, i, after.occurrences[i].progress) for zone in speaking)

    def _pairs(self, scope: _Scope, i: int) -> Iterator[tuple[str, str, int]]:
        """Attributes y and t of a scope such that a bound on y bounds the occurrence, and the least y - t that there
        is.

        What is compared with y already comes first, and of y the occurrence's own instant.
        """
        federation_ = self._analysed(scope.rows)
        k = i - scope.before
        zones = [] if federation_ is None else [zone for zone in federation_.zones if k not in zone.ignored]
        if federation_ is None or not zones:
            return
        progress = federation_.occurrences[k].progress
        resting = {name: _resting_on(zones, name) for name in federation_.attributes}
        ys = [name for name, on in resting.items() if on == {k} and all(_reaches(z, name, k, progress) for z in zones)]
        ys.sort(key=lambda name: not any(_names(zone, name, k, progress) for zone in zones))
        ts = [name for name, on in resting.items() if name not in ys and on and (k in on) == scope.is_own]
        for y in ys:
            least = {t: max(-zone.distance(("a", y), ("a", t)) for zone in zones) for t in ts}
            for t in sorted(ts, key=lambda name: least[name] == -INF):
                if federation_.schema[y].type == federation_.schema[t].type:
                    yield y, t, 0 if least[t] == -INF else int(least[t])

    def _known(self) -> tuple[str, str] | None:
        """The name of an attribute that says when a row is known, and how it is written."""
        core, method = self.node, "with_("
        while isinstance(core, Select | Project | Rename | Imbed):
            if isinstance(core, Project):
                method = "select(..., "
            core = core.input
        instants = self._together(core)
        if not instants:
            return None
        name = free_name("known", self.node)
        if not self._progresses(carrying(self.node, core, name, _latest(instants)), name):
            return None
        known, at = as_selected(self.node, core, instants)
        return name, f"{method}{name}={_latest_text(known, at)})"

    def _regrouped(self, attribute: str | None = None) -> str:
        """A window of when a row is known, as the key of groups that is one of another instant; empty where that is no
        mend.
        """
        above: list[Node] = []
        for step in unary_operators(self.node):
            if isinstance(step, Imbed) and any(
                isinstance(operator, Group) and step.name in operator.keys for operator in above
            ):
                instants, size = self._together(step.input), _size_of_window(step.term)
                if instants and size is not None:
                    term = call("floor", _latest(instants), size)
                    mended = put(self.node, (0,) * len(above), Imbed(step.input, step.name, term))
                    if self._progresses(mended, attribute):
                        text = _latest_text(instants, step.input)
                        key = f"{step.name.partition('#')[0]}=tg.floor({text}, {_size_text(size)})"
                        return f"group by when a row is known: {key}"
            above.append(step)
        return ""

    # Rows that are kept for ever --------------------------------------------------------------------------------------
    def last_before(self) -> str:
        """How the last row before each row is looked up; empty where the query does not ask for it in another form."""
        return self._written(last_before(self.node))

    def let_go(self, i: int, attribute: str) -> str:
        """A bound by which no row of an occurrence is kept for ever that the attribute keeps; empty where none is
        known.
        """
        for scope in _scopes(self.node, i, own_first=False):
            if scope.is_own:
                continue
            for later, earlier, least in self._later(scope, i):
                type_ = scope.rows.schema[earlier].type
                span = _span(type_, least)
                if span is not None and self._lets_go(
                    scope.mended(self.node, _at_most(later, earlier, type_, span[0])), i, attribute
                ):
                    return f"{written_name(later, scope.rows)} <= {written_name(earlier, scope.rows)} + {span[1]}"
        return ""

    def _later(self, scope: _Scope, i: int) -> Iterator[tuple[str, str, int]]:
        """Instants of others and of an occurrence in a scope, and the least difference that there is."""
        federation_ = self._analysed(scope.rows)
        k = i - scope.before
        zones = [] if federation_ is None else [zone for zone in federation_.zones if k not in zone.ignored]
        if federation_ is None or not zones:
            return
        resting = {name: _resting_on(zones, name) for name in federation_.attributes}
        for later in (name for name, on in resting.items() if on and k not in on):
            for earlier in (name for name, on in resting.items() if on == {k}):
                if federation_.schema[later].type == federation_.schema[earlier].type:
                    least = max(-zone.distance(("a", later), ("a", earlier)) for zone in zones)
                    yield later, earlier, 0 if least == -INF else int(least)

    def _lets_go(self, mended: Node, i: int, attribute: str) -> bool:
        """Whether a bound says how much later than the rows of an occurrence the attribute of a mended query is."""
        after = self._analysed(mended)
        if after is None or attribute not in after.attributes:
            return False
        speaking = [zone for zone in after.zones if i not in zone.ignored]
        progress = after.occurrences[i].progress
        return bool(speaking) and all(
            any(zone.distance(("x", i, y), ("a", attribute)) != INF for y in progress) for zone in speaking
        )

    # Results without instants -----------------------------------------------------------------------------------------
    def instant(self) -> str:
        """What gives a result an instant that has none; empty where nothing is known that does."""
        return self._days() or self._regrouped() or self._kept(self.node) or self._joined() or self._asked()

    def _kept(self, node: Node) -> str:
        """An instant that the query has and drops: a window of it where rows are put together, else itself."""
        core = first_with_instants(node)
        if core is None or core is node:
            return ""
        above = operators_above(node, core)
        groups = [operator for operator in above if isinstance(operator, Group)]
        if groups or any(isinstance(operator, Distinct) for operator in above):
            if (part := part_of_calendar(above)) is not None and (text := self._part(node, core, above, part)):
                return text
            if text := self._written(of_rows(above)) or self._written(largest(above, _window_of)):
                return text
            mended, name, window = self._windowed(node, core)
            keys = f"group by a window as well: {_keys(groups[0])}" if groups else "keep a window: select(..., "
            instants = self._together(core)
            texts = (
                self._written(first_of_each(core, above, instants)),
                self._written(latest_of_each(core, above, instants)),
                self._written(once(core, above, instants)),
                self._bounds_beside(mended, name, f"{keys}{name}={window})"),
                self._written(up_to_each(core, above, instants)),
            )
            return "; or ".join(text for text in texts if text)
        instants = self._together(core)
        if not instants:
            return ""
        name, text = free_name("known", node), _latest_text(instants, core)
        if not self._progresses(carrying(node, core, name, _latest(instants)), name):
            return ""
        if len(instants) == 1:
            return f"keep an instant: select(..., {text})"
        return f"say when a row is known: select(..., {name}={text})"

    def _part(self, node: Node, core: Node, above: list[Unary], part: Part) -> str:
        """Windows of the calendar, or hours or days beside a part of it that is no window; empty where neither is a
        mend.
        """
        groups = [operator for operator in above if isinstance(operator, Group)]
        instants = self._together(core)
        if not instants:
            return ""
        name, latest, text = free_name(part.unit, node), _latest(instants), _latest_text(instants, core)
        if core.schema[instants[0]].type.kind is not Kind.DATE:
            latest = call("floor", latest, Lit(duration_ticks(part.size), DURATION))
            text = f'tg.floor({text}, "{part.size}")'
        keys = _keys(groups[0]) if groups else "select(..., "
        verb = "group by" if groups else "keep"
        added = f", and combine the {part.unit}s where results are read" if part.reason else ""
        mend = self._bounds_beside(carrying(node, core, name, latest), name, f"{keys}{name}={text})")
        windows = self._written(calendar_windows(core, above, instants)) if part.reason else ""
        if not mend:
            return windows
        mend = f"{verb} the {part.unit} as well{added}: {mend}"
        if windows:
            return f"{windows}; or {mend}"
        return f"{part.reason}; {mend}; or join a stream of their starts and ends" if part.reason else mend

    def _bounds_beside(self, mended: Node, name: str, text: str) -> str:
        """The text of a mend and what has to be bounded beside it, if anything has; empty where it is no mend."""
        bounded = self._bounded(mended, name)
        if bounded is None:
            return ""
        bounds = [bound for of_stream in bounded[1].values() for bound in of_stream]
        return " and ".join([text, *bounds])

    def _windowed(self, node: Node, core: Node) -> tuple[Node, str, str]:
        """The query with a window of the instants of a node that it drops, the window's name, and how it is written."""
        instants = self._together(core) or core.schema.temporal[:1]
        type_ = core.schema[instants[0]].type
        name = free_name("window", node)
        mended = carrying(node, core, name, _window(_latest(instants), type_))
        return mended, name, _window_text(_latest_text(instants, core), type_)

    def _joined(self) -> str:
        """An inner join in the place of a semi-join of a table with a stream: its rows have the stream's instants."""
        join = below_unary(self.node)
        if not isinstance(join, Join) or join.kind != "semi" or not is_static(join.left):
            return ""
        mended = replaced(self.node, join, replace(join, kind="inner"))
        if mended.schema.temporal:
            kept = next((name for name in mended.schema.temporal if self._progresses(mended, name)), None)
            return (
                "" if kept is None else f"use join instead of semi_join: its rows have {written_name(kept, join.right)}"
            )
        kept_text = self._kept(mended)
        return kept_text and f"use join instead of semi_join, and {kept_text}"

    def _asked(self) -> str:
        """Instants as of which one asks what a stream has not, of the rows of a table."""
        join = below_unary(self.node)
        if not isinstance(join, Join) or join.kind not in ("anti", "left") or not is_static(join.left):
            return ""
        seen = self._together(join.right)
        if not seen:
            return ""
        instants, tick, made = asking(join.right, seen)
        asked = Product(Rename(instants, ((tick, f"ticks.{tick}"),)), join.left)
        condition = conjunction([join.condition, *(call("le", Attr(y), Attr(f"ticks.{tick}")) for y in seen)])
        changed = Join(asked, join.right, condition, join.kind)
        known = free_name("known", self.node)
        if not self._progresses(carrying(replaced(self.node, join, changed), changed, known, Attr(f"ticks.{tick}"))):
            return ""
        bounds = " and ".join(f"{written_name(y, join.right)} <= ticks.{tick}" for y in seen)
        return f"ask at instants: take tg.product(ticks, ...) with {made}, and add {bounds}"

    def _days(self, attribute: str | None = None) -> str:
        """Starts of days in the place of dates, which are no instants: in attributes, and where dates are compared."""
        written: list[str] = []
        try:
            mended = _with_days(self.node, written)
        except QueryError:
            return ""
        if not written or not self._progresses(mended, attribute):
            return ""
        return f"take the start of the day, which is an instant: {' and '.join(dict.fromkeys(written))}"

    # Tries ------------------------------------------------------------------------------------------------------------
    def _written(self, form: Form | None, attribute: str | None = None) -> str:
        """How the query is written in another form in which it progresses, on an attribute or at all; else empty."""
        return form.text if form is not None and self._progresses(form.node, attribute) else ""

    def _analysed(self, node: Node, streams: Mapping[str, StreamDef] | None = None) -> Federation | None:
        """The federation; None where the query is contradictory, has too many cases or wrong types, or enough was
        tried.
        """
        if self.effort <= 0:
            return None
        try:
            federation_ = federation(node, self.streams if streams is None else streams)
        except QueryError:
            return None
        self.effort -= max(1, len(federation_.zones)) * len(federation_.occurrences)
        return federation_ if federation_.zones else None

    def _progresses(
        self, node: Node, attribute: str | None = None, streams: Mapping[str, StreamDef] | None = None
    ) -> bool:
        """Whether an attribute of the query progresses, or any."""
        federation_ = self._analysed(node, streams)
        if federation_ is None:
            return False
        asked = federation_.attributes if attribute is None else (attribute,)
        return any(name in federation_.attributes and propagation(federation_, name).is_finite for name in asked)

    def _together(self, node: Node) -> tuple[str, ...]:
        """The fewest instants of a node that say together when its rows are known; none where there are none."""
        types = {node.schema[name].type for name in node.schema.temporal}
        if len(types) != 1 or len(node.schema.temporal) > INSTANTS:
            return ()
        federation_ = self._analysed(node)
        sets = () if federation_ is None else minimal_progressing_sets(federation_)
        first = next((instants for instants in sets if instants), frozenset[str]())
        return tuple(name for name in node.schema.temporal if name in first)


# Places in a query ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scope:
    """A place where a condition can be added that may speak of the attributes of `rows`.

    `is_own`: of rows of one occurrence; else an occurrence is compared with others.
    """

    place: tuple[int, ...]
    rows: Node
    before: int
    is_own: bool

    def mended(self, node: Node, condition: Term) -> Node:
        """The query with the condition there."""

        def changed(at: Node) -> Node:
            if isinstance(at, Join) and at.kind != "inner":
                return Join(at.left, at.right, conjunction([at.condition, condition]), at.kind)
            return Select(at, condition)

        return changed_at(node, self.place, changed)


def _scopes(node: Node, i: int, *, own_first: bool) -> list[_Scope]:
    """Where an occurrence can be bounded: by what it is joined with, nearest first, and by its own instants."""
    path = above_ordered(node, i)
    joined = [_joined_scope(path, k) for k, step in enumerate(path) if isinstance(step.node, Join | Product)]
    joined.reverse()
    several = [k for k, step in enumerate(path) if isinstance(step.node, Join | Product | Union | Difference)]
    alone = path[several[-1] + 1 if several else 0 :]
    scopes = [_Scope(step.place, step.node, step.before, is_own=True) for step in alone]
    return [*scopes, *joined] if own_first else [*joined, *scopes]


def _joined_scope(path: list[Step], k: int) -> _Scope:
    """The condition of a join, or a filter above it."""
    join = path[k].node
    if isinstance(join, Join) and join.kind != "inner":
        return _Scope(path[k].place, Join(join.left, join.right, join.condition, "inner"), path[k].before, is_own=False)
    while k > 0 and isinstance(path[k - 1].node, Select):
        k -= 1
    return _Scope(path[k].place, path[k].node, path[k].before, is_own=False)


# Instants of zones ----------------------------------------------------------------------------------------------------


def _ends_later(attribute: str, clause: Clause) -> bool:
    """Whether only the length of periods is not bounded: the attribute bounds an instant of the rows before their
    progress.
    """
    zone, i = clause.zone, clause.occurrence
    ends: list[Hidden] = [("x", i, y) for y, _ in clause.distances]
    starts = [row for row in zone.layout.rows if is_copy(row) and row[1] == i and row not in ends]
    bounded = [row for row in starts if zone.distance(("a", attribute), row) != INF]
    return any(zone.distance(end, start) <= 0 for start in bounded for end in ends)


def _reaches(zone: Zone, attribute: str, i: int, progress: Iterable[str]) -> bool:
    return any(zone.distance(("a", attribute), ("x", i, y)) != INF for y in progress)


def _names(zone: Zone, attribute: str, i: int, progress: Iterable[str]) -> bool:
    row = zone.layout.rows[zone.layout.attributes[attribute]]
    return any(row == ("x", i, y) for y in progress)


def _spoken_of(federation: Federation) -> frozenset[int]:
    return frozenset(i for zone in federation.zones for i in federation.sources(zone))


def _resting_on(zones: Iterable[Zone], attribute: str) -> frozenset[int]:
    """The occurrences whose instants an attribute is made of."""
    rows = {zone.layout.rows[zone.layout.attributes[attribute]] for zone in zones}
    return frozenset(i for row in rows for i in _occurrences_of(row))


def _occurrences_of(row: Hidden | RowTerm) -> frozenset[int]:
    match row:
        case Rounding(base):
            return _occurrences_of(base)
        case Extreme(_, parts):
            return frozenset(i for part in parts for i in _occurrences_of(part))
        case tuple():
            return frozenset((row[1],)) if is_copy(row) else frozenset()
        case _:
            return _occurrences_of(row.row)


# Terms, and how they are written --------------------------------------------------------------------------------------


def _with_days(node: Node, written: list[str]) -> Node:
    """The query with starts of days in the place of dates; `written` gets what is changed, as it is written then."""
    node = with_children(node, tuple(_with_days(child, written) for child in children(node)))
    match node:
        case Imbed(input_, name, term) if (day := _start_of_day(term, input_.schema)) is not None:
            written.append(f"{name.partition('#')[0]}={_day_text(term, node)}")
            return Imbed(input_, name, day)
        case Select(input_, condition):
            return Select(input_, _days_compared(condition, input_.schema, node, written))
        case Join(left, right, condition, kind):
            both = Schema((*left.schema.attributes, *right.schema.attributes))
            return Join(left, right, _days_compared(condition, both, node, written), kind)
        case _:
            return node


def _days_compared(condition: Term, schema: Schema, node: Node, written: list[str]) -> Term:
    match condition:
        case Call(("and" | "or" | "not") as op, args):
            return Call(op, tuple(_days_compared(arg, schema, node, written) for arg in args))
        case Call(op, (left, right)) if op in _SIGNS:
            days = [_start_of_day(side, schema) for side in (left, right)]
            if None in days:
                return condition
            written.append(f"{_day_text(left, node)} {_SIGNS[op]} {_day_text(right, node)}")
            return Call(op, tuple(day for day in days if day is not None))
        case _:
            return condition


def _start_of_day(term: Term, schema: Schema) -> Term | None:
    """The start of the day in the place of the date of an instant; None of any other term."""
    match term:
        case Call(op, (Attr(name) as instant, *form)) if name in schema.temporal and (
            op in DATES or _shows_days(op, form)
        ):
            return call("floor", instant, Lit(duration_ticks("1d"), DURATION))
        case _:
            return None


def _shows_days(op: str, form: list[Term]) -> bool:
    """Whether an instant becomes the text of its date."""
    return op == "format" and isinstance(form[0], Lit) and {*re.findall("%.", str(form[0].value))} == {"%Y", "%m", "%d"}


def _day_text(term: Term, node: Node) -> str:
    assert isinstance(term, Call)
    instant = term.args[0]
    assert isinstance(instant, Attr)
    return f'tg.floor({written_name(instant.name, node)}, "1d")'


def _span(type_: DataType, least: int) -> tuple[int, str] | None:
    """The first of the bounds that hints propose that two instants can keep which lie at least so far apart."""
    return next((span for span in usual_spans(type_) if span[0] > least), None)


def _length(ticks: int, type_: DataType) -> Lit:
    return Lit(ticks, type_.distance)


def _at_most(y: str, t: str, type_: DataType, ticks: int) -> Term:
    return call("le", Attr(y), call("add", Attr(t), _length(ticks, type_)))


def _latest(names: tuple[str, ...]) -> Term:
    return Attr(names[0]) if len(names) == 1 else call("greatest", *map(Attr, names))


def _latest_text(names: tuple[str, ...], node: Node) -> str:
    written = [written_name(name, node) for name in names]
    return written[0] if len(written) == 1 else f"tg.max({', '.join(written)})"


def _window(instant: Term, type_: DataType) -> Term:
    size = _length(usual_spans(type_)[0][0], type_)
    return call("add", call("floor", instant, size), size)


def _window_text(instant: str, type_: DataType) -> str:
    return f"tg.tumbling({instant}, {usual_spans(type_)[0][1]})"


def _window_of(node: Node, instant: str) -> tuple[Term, str]:
    """The window of an instant of a node, and how it is written."""
    type_ = node.schema[instant].type
    return _window(Attr(instant), type_), _window_text(written_name(instant, node), type_)


def _size_of_window(term: Term) -> Lit | None:
    """How long the windows are that a term is the start of, or the date."""
    match term:
        case Call("floor", (Attr(), Lit() as size)):
            return size
        case Call(op, (Attr(),)) if op in DATES:
            return Lit(duration_ticks("1d"), DURATION)
        case _:
            return None


def _size_text(size: Lit) -> str:
    return (
        f'"{format_duration(size.value)}"' if size.type == DURATION and isinstance(size.value, int) else str(size.value)
    )


def _keys(group: Group) -> str:
    """The beginning of a grouping's text, up to where a further key stands."""
    computed = {operator.name for operator in unary_operators(group.input) if isinstance(operator, Imbed)}
    keys = [f"{key.partition('#')[0]}=..." if key in computed else written_name(key, group.input) for key in group.keys]
    return "group_by(" + "".join(f"{key}, " for key in keys)
