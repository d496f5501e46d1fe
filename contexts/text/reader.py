"""The text of queries in contexts as a model and relations of the DSL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tidegate.algebra.diagnostics.shown import nearest
from tidegate.algebra.dsl.aggregates import max as latest
from tidegate.algebra.dsl.aggregates import min as earliest
from tidegate.algebra.dsl.checks.calls import called
from tidegate.algebra.dsl.expression import Expression, constant
from tidegate.algebra.dsl.here import Here, written_at
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Scan
from tidegate.algebra.ordered.transitions.definition import BEGAN, HeldBy
from tidegate.algebra.terms import Attr, Lit, Term, conjunction, rename_attributes
from tidegate.algebra.text.conditions import Conditions
from tidegate.algebra.text.parsing import Part, Text, name_of
from tidegate.algebra.text.sources import stream_of
from tidegate.algebra.text.wording import in_words_of_text
from tidegate.algebra.time import INF
from tidegate.analysis.federation.federation import federation
from tidegate.contexts.model import ContextModel, context_model
from tidegate.contexts.named import named_result
from tidegate.contexts.text.language import CONTEXTS
from tidegate.contexts.text.queries import ContextQueries, ContextQuery, Event, head_text

#: The beginning of the window that an event of a sequence lies in; no name of a user's looks like this one.
_WINDOW: Final = "window began"
#: The instant at which it is certain that no event follows that must not.
_CERTAIN: Final = "certain at"


@called()
def read_contexts(
    text: str, streams: Relation | Mapping[str, Relation], *, model: ContextModel | None = None, file: str = "contexts"
) -> ContextQueries:
    """The model and the results that queries in contexts ask for: `INITIATE CONTEXT ... PATTERN ... WHERE ... CONTEXT
    ...`, SWITCH, TERMINATE, and `DERIVE Name(...) PATTERN ... WHERE ... CONTEXT ...`, with semicolons between.

    A text that begins with `MODEL name BY keys CONTEXT names DEFAULT name` has a model of its own; the queries of
    others are added to `model`. `streams` are the streams that patterns name, and `file` is what errors call the text.
    `QueryError` TG170 where the text does not fit the grammar, TG187 for contexts that there are not, TG175 for what
    the language cannot say.

    From the papers: CAESAR Figure 4.

    Examples:
        >>> text = "DERIVE Fast(c.car, c.time) PATTERN Cars c WHERE c.speed > 80 CONTEXT slow"
        >>> fast = tg.read_contexts(text, {"Cars": cars}, model=traffic).results["Fast"]
        >>> show(fast)
        red, 2
    """
    with Here(), in_words_of_text():
        if not isinstance(text, str):
            raise QueryError("TG114", f"queries are text, not a {type(text).__name__}", hint="give what the file holds")
        read = Text(text, file, CONTEXTS)
        parts = read.parse().parts
        head = ""
        if parts[0].kind == "model":
            model, head = _model(read, parts[0])
            parts = parts[1:]
        if model is None:
            hint = "begin it: MODEL Traffic BY segment CONTEXT clear, congestion DEFAULT clear; or give model=..."
            raise QueryError("TG187", "the text is of no model", hint=hint, site=read.site(1, 1))
        return _Reader(read, streams, model).read(parts, head)


def _model(text: Text, part: Part) -> tuple[ContextModel, str]:
    """The model of a text, and its clause."""
    name, *clauses = part.parts
    keys = [name_of(key) for clause in clauses if clause.kind == "by" for key in clause.parts]
    contexts = [(name_of(one.parts[0]), _held(text, one)) for one in clauses if one.kind == "context"]
    default = name_of(clauses[-1].parts[0])
    if [context for context, _ in contexts].count(default) > 1:
        message, hint = f"two contexts are called {default}", f"list {default} once"
        raise QueryError("TG187", message, hint=hint, site=text.at(part))
    with written_at(text.at(clauses[-1])):
        if default not in (context for context, _ in contexts):
            near = nearest(default, [context for context, _ in contexts])
            listed = ", ".join([*(context for context, _ in contexts), default])
            hint = f"did you mean {' or '.join(near)}?" if near else f"list it: CONTEXT {listed} DEFAULT {default}"
            raise QueryError("TG187", f"the default context {default} is not listed", hint=hint)
    with written_at(text.at(part)):
        others = [context for context, _ in contexts if context != default]
        causes = {context: held for context, held in contexts if held is not None}
        model = context_model(name_of(name), by=keys, default=default, contexts=others, causes=causes)
    return model, head_text(name_of(name), keys, contexts, default)


def _held(text: Text, context: Part) -> HeldBy | None:
    for held in context.parts[1:]:
        kinds: tuple[HeldBy, ...] = ("bag", "set")
        asked = name_of(held.parts[0])
        for kind in kinds:
            if asked.lower() == kind:
                return kind
        raise QueryError(
            "TG187", f"a context is held by no {asked}", hint="HELD BY BAG, or HELD BY SET", site=text.at(held)
        )
    return None


@dataclass(slots=True)
class _Qualified(Conditions):
    """Conditions over the events of a pattern, whose attributes may have the variable of an event before them, and over
    the window in which they lie, whose attributes have its context before them.

    `window` has the attributes of the window by what the text calls them.
    """

    window: Mapping[str, str] = field(default_factory=dict)

    def attribute(self, tree: Part) -> Expression:
        names = [name_of(part) for part in tree.parts]
        with written_at(self.text.at(tree)):
            if len(names) == 2 and names[0] not in self.prefixes:
                if of_window := self.window.get(".".join(names)):
                    return self.relation[of_window]
                near = nearest(names[0], self.prefixes, 1)
                hint = f"did you mean {near[0]}.{names[1]}?" if near else f"events are {', '.join(self.prefixes)}"
                raise QueryError("TG172", f"{names[0]} is no event of the pattern", hint=hint)
            qualified = ".".join(names)
            return self.relation[qualified if qualified in self.relation.schema else names[-1]]


@dataclass(frozen=True, slots=True)
class _Matches:
    """The matches of a pattern as rows, with the instants of the first event and of the last, or when it is certain
    that nothing follows that must not, and the keys of the last.
    """

    rows: Relation
    conditions: _Qualified
    where: tuple[Expression, ...]
    first: str
    last: str
    keys: tuple[str, ...]


@dataclass(slots=True)
class _Reader:
    """Reads queries one by one: those that derive contexts first, as others read the model."""

    text: Text
    streams: Relation | Mapping[str, Relation]
    model: ContextModel
    derived: dict[str, list[Part]] = field(default_factory=dict)
    results: dict[str, Relation] = field(default_factory=dict)
    reading: list[str] = field(default_factory=list)
    queries: dict[int, ContextQuery] = field(default_factory=dict)
    #: The instant of an event by its type.
    times: dict[str, str] = field(default_factory=dict)

    def read(self, parts: Sequence[Part], head: str) -> ContextQueries:
        for part in parts:
            if part.kind == "derive":
                self._require_free_name(part)
                self.derived.setdefault(name_of(part.parts[0]), []).append(part)
        for part in parts:
            if part.kind != "derive":
                self._transition(part)
        for name in self.derived:
            self._result(name)
        return ContextQueries(self.model, dict(self.results), tuple(self.queries[id(part)] for part in parts), head)

    def _require_free_name(self, part: Part) -> None:
        name = name_of(part.parts[0])
        if name == self.model._name:
            message = f"{name} is the name of the model of contexts"
            raise QueryError("TG122", message, hint="derive it under another name", site=self.text.at(part))

    # Queries ---------------------------------------------------------------------------------------------------------
    def _transition(self, part: Part) -> None:
        """Adds a deriving query to the model."""
        context, contexts = name_of(part.parts[0]), self._contexts(part)
        events = self._events(part)
        matches = self._matches(part, events, (), deriving=True)
        cause = next((matches.conditions.read(one.parts[0]) for one in part.parts if one.kind == "cause"), None)
        items = self._items(part, matches.conditions)
        with written_at(self.text.at(part)):
            since = None if matches.first == matches.last else matches.rows[matches.first]
            if part.kind == "terminate":
                if contexts not in ((), (context,)):
                    raise QueryError(
                        "TG187",
                        f"a query that terminates {context} stands in {context}, not in {', '.join(contexts)}",
                        hint=f"write CONTEXT {context}, or nothing",
                    )
                self.model = self.model.terminate(
                    context, when=matches.rows, by=matches.keys, at=matches.last, since=since, cause=cause
                )
            else:
                add = self.model.initiate if part.kind == "initiate" else self.model.switch
                self.model = add(
                    context,
                    when=matches.rows,
                    within=contexts or None,
                    by=matches.keys,
                    at=matches.last,
                    since=since,
                    cause=cause,
                    values=items,
                )
        self._note(part, events, matches, items, cause, contexts)

    def _result(self, name: str) -> Relation:
        """What is derived by this name, by one query or by several."""
        if name in self.results:
            return self.results[name]
        first = self.derived[name][0]
        if name in self.reading:
            circle = " reads ".join([*self.reading[self.reading.index(name) :], name])
            message = f"{name} is derived of itself: {circle}"
            hint = "say recursion in Python, with tg.result(...)"
            if not isinstance(self.streams, Relation) and name in self.streams:
                hint = f"a stream is called {name}, too: derive it under another name"
            raise QueryError("TG211", message, hint=hint, site=self.text.at(first))
        self.reading.append(name)
        first_rows, *more = [self._rows(part) for part in self.derived[name]]
        with written_at(self.text.at(first)), Here() as site:
            self.results[name] = named_result(name, first_rows.union(*more) if more else first_rows, site)
        self.reading.pop()
        return self.results[name]

    def _rows(self, part: Part) -> Relation:
        events, contexts = self._events(part), self._contexts(part)
        matches = self._matches(part, events, contexts, deriving=False)
        items = self._items(part, matches.conditions)
        for one in part.parts:
            if one.kind == "cause":
                hint = "leave CAUSE out"
                raise QueryError("TG187", "an event that is derived has no cause", hint=hint, site=self.text.at(one))
        self._note(part, events, matches, items, None, contexts)
        with written_at(self.text.at(part)):
            return matches.rows.select(**items)

    def _note(
        self,
        part: Part,
        events: Sequence[tuple[Event, Part]],
        matches: _Matches,
        items: Mapping[str, Expression],
        cause: Expression | None,
        contexts: tuple[str, ...],
    ) -> None:
        called = {attribute: name for name, attribute in matches.conditions.window.items()}

        def written(value: Expression) -> Term:
            return rename_attributes(value._term, called)

        self.queries[id(part)] = ContextQuery(
            part.kind,  # type: ignore[arg-type]  # the grammar has these four
            name_of(part.parts[0]),
            tuple((written(item), name) for name, item in items.items()),
            tuple(event for event, _ in events),
            conjunction([written(condition) for condition in matches.where]) if matches.where else None,
            None if cause is None else cause._term,
            contexts,
        )

    # Clauses ---------------------------------------------------------------------------------------------------------
    def _contexts(self, part: Part) -> tuple[str, ...]:
        return tuple(name_of(name) for clause in part.parts if clause.kind == "standing" for name in clause.parts)

    def _items(self, part: Part, conditions: _Qualified) -> dict[str, Expression]:
        """The values in brackets by their names."""
        items: dict[str, Expression] = {}
        for item in (item for clause in part.parts if clause.kind == "items" for item in clause.parts):
            value = conditions.read(item.parts[0])
            if len(item.parts) == 1 and not isinstance(value._term, Attr):
                hint = f"write {value!r} AS name"
                raise QueryError("TG114", f"{value!r} has no name", hint=hint, site=self.text.at(item))
            name = name_of(item.parts[1] if len(item.parts) > 1 else item.parts[0].parts[-1])
            if name in items:
                hint = "name one of them: AS name"
                raise QueryError("TG103", f"{name} is there twice", hint=hint, site=self.text.at(item))
            items[name] = value
        return items

    def _events(self, part: Part) -> list[tuple[Event, Part]]:
        """The events of a pattern in their order, brackets in brackets taken off."""
        pattern = next(clause for clause in part.parts if clause.kind == "pattern")
        found: dict[str, tuple[Event, Part]] = {}
        for one in _flat(pattern):
            type_, *variable = map(name_of, one.parts)
            event = Event(type_, variable[0] if variable else None, one.kind == "absent")
            if event.name in found:
                hint = f"name one of them: {type_} {type_.lower()}2"
                raise QueryError("TG103", f"two events are called {event.name}", hint=hint, site=self.text.at(one))
            found[event.name] = event, one
        events = list(found.values())
        if all(event.absent for event, _ in events):
            hint = "name an event after which it must not come: SEQ(A a, NOT N n) WHERE n.time <= a.time + ..."
            raise QueryError("TG182", "nothing is to come", hint=hint, site=self.text.at(events[-1][1]))
        return events

    # Patterns --------------------------------------------------------------------------------------------------------
    def _matches(
        self, part: Part, events: Sequence[tuple[Event, Part]], contexts: tuple[str, ...], *, deriving: bool
    ) -> _Matches:
        """Every combination of events in order of time, of one partition and one window, for which WHERE holds.

        Of several contexts one has a window with all events of a sequence: it is asked for of the whole match. So it is
        where an event must not follow, up to the instant at which that is certain.
        """
        several = len(events) > 1
        whole = contexts if several and (len(contexts) > 1 or events[-1][0].absent) else ()
        if (deriving or whole) and events[0][0].absent:
            raise QueryError(
                "TG175",
                f"the absence of {events[0][0].name} would begin before the match, where its context may not hold",
                hint="let the pattern begin with an event; or look back in Python, before the window, too",
                site=self.text.at(events[0][1]),
            )
        each = () if whole else contexts
        positive = [i for i, (event, _) in enumerate(events) if not event.absent]
        last = positive[-1]
        asked = {} if deriving else self._of_window(part, contexts, [event.name for event, _ in events])
        # All events lie in one window, so what is asked of it is known of the last one.
        relations = [
            self._relation(event, place, contexts, several, deriving, asked)
            if asked and i == last
            else self._relation(event, place, each, several, deriving)
            for i, (event, place) in enumerate(events)
        ]
        scope, *others = relations
        with written_at(self.text.at(events[-1][1])):
            for other in others:
                scope = scope.join(other)
        window = {f"{contexts[0]}.{name}": _named(events[last][0], own, relations[last]) for own, name in asked.items()}
        conditions = _Qualified(self.text, scope, tuple(event.name for event, _ in events), (), {}, window=window)
        where = self._conjuncts(part, conditions)
        times = [
            _named(event, self.times[event.type], relation)
            for (event, _), relation in zip(events, relations, strict=True)
        ]
        rows, at = self._joined(part, events, relations, times, where, scope)
        keys = tuple(_named(events[last][0], key, relations[last]) for key in self.model._keys)
        first = times[positive[0]]
        if whole:
            with written_at(self.text.at(part)):
                rows = rows.in_context(self.model, *whole, by=keys, at=at, since=first)
        return _Matches(rows, conditions, where, first, at, keys)

    def _of_window(self, part: Part, contexts: tuple[str, ...], events: Sequence[str]) -> dict[str, str]:
        """The attributes of the window that a query reads, `congestion.began`, by names that no event has."""
        asked: dict[str, str] = {}
        for context, name, place in _qualified(part):
            if context in events or context not in {type_.name for type_ in self.model._types}:
                continue
            with written_at(self.text.at(place)):
                if contexts != (context,):
                    message = f"{context}.{name} is of a window, and the query does not stand in {context} alone"
                    raise QueryError("TG187", message, hint=f"end the query with CONTEXT {context}")
                self.model._require_of_window(context, name)
            asked[_WINDOW if name == BEGAN else f"{name} of the window"] = name
        return asked

    def _conjuncts(self, part: Part, conditions: _Qualified) -> tuple[Expression, ...]:
        for clause in part.parts:
            if clause.kind == "where":
                return tuple(map(conditions.read, _conjuncts(clause.parts)))
        return ()

    def _joined(
        self,
        part: Part,
        placed: Sequence[tuple[Event, Part]],
        relations: Sequence[Relation],
        times: Sequence[str],
        where: Sequence[Expression],
        scope: Relation,
    ) -> tuple[Relation, str]:
        """The events joined one after the other, then without matches that an absent event excludes; and the instant by
        which a match is certain.
        """
        events = [event for event, _ in placed]
        names = [event.name for event in events]
        read = {id(one): _of(one, names) for one in where}
        positive = [i for i, event in enumerate(events) if not event.absent]
        absent = {names[i] for i, event in enumerate(events) if event.absent}
        with written_at(self.text.at(part)):
            joined = relations[positive[0]]
            seen = {names[positive[0]]}
            if own := [one for one in where if read[id(one)] <= seen and not read[id(one)] & absent]:
                joined = joined.where(*own)
            for before, i in pairwise(positive):
                new = seen | {names[i]}
                its = [one for one in where if read[id(one)] <= new and not read[id(one)] <= seen]
                links = [scope[times[before]] < scope[times[i]], *self._together(scope, events, before, i)]
                joined, seen = joined.join(relations[i], *links, *its), new
            absent_ones = (i for i, event in enumerate(events) if event.absent)
            excluded = {i: self._links(i, events, times, where, scope) for i in absent_ones}
            ends = [times[i] for i in positive]
            limits = [
                self._limit(joined.join(relations[i], *its), placed[i], times[i], ends)
                for i, its in excluded.items()
                if i > positive[-1]
            ]
            for i, its in excluded.items():
                joined = joined.anti_join(relations[i], *its)
            if not limits:
                return joined, ends[-1]
            certain = joined[ends[-1]]
            for limit in limits:
                certain = latest(certain, limit)
            return joined.with_(**{_CERTAIN: certain}), _CERTAIN

    def _limit(self, matches: Relation, absent: tuple[Event, Part], time: str, ends: Sequence[str]) -> Expression:
        """The last instant at which an absent event could exclude a match, as the conditions say of those matches that
        it does exclude: the least of the instants that bound its own.
        """
        zones = federation(matches._node).zones
        if not zones:
            raise QueryError(
                "TG182",
                f"the conditions let {absent[0].name} come before the end of the match only",
                hint=f"at the end NOT is of what comes after {ends[-1]}: WHERE {time} <= {ends[-1]} + ..., "
                "or write it before the event that it must not precede",
                site=self.text.at(absent[1]),
            )
        limits: list[Expression] = []
        for end in ends:
            distance = max(zone.distance(("a", end), ("a", time)) for zone in zones)
            if distance < INF:
                limits.append(matches[end] + constant(Lit(int(distance), matches.schema[end].type.distance)))
        if not limits:
            raise QueryError(
                "TG182",
                f"nothing says until when {absent[0].name} must not come",
                hint=f"bound its instant: WHERE {time} <= {ends[-1]} + ...",
                site=self.text.at(absent[1]),
            )
        limit, *others = limits
        for other in others:
            limit = earliest(limit, other)
        return limit

    def _links(
        self, i: int, events: Sequence[Event], times: Sequence[str], where: Sequence[Expression], scope: Relation
    ) -> list[Expression]:
        """Where an absent event comes between the events of a match, or after the last one."""
        names = [event.name for event in events]
        after = next((k for k in range(i + 1, len(events)) if not events[k].absent), None)
        before = next((k for k in range(i - 1, -1, -1) if not events[k].absent), None)
        links: list[Expression] = []
        if after is not None:
            links.append(scope[times[i]] < scope[times[after]])
        near = before if after is None else after
        assert near is not None, "a pattern has an event"
        links += self._together(scope, events, i, near)
        if before is not None:
            links.append(scope[times[before]] < scope[times[i]])
        for one in where:
            of = _of(one, names)
            if names[i] in of:
                if len([event for event in events if event.absent and event.name in of]) > 1:
                    hint = "say of each absent event by itself what it is"
                    raise QueryError("TG175", f"{one!r} is of two absent events", hint=hint)
                links.append(one)
        return links

    def _together(self, scope: Relation, events: Sequence[Event], first: int, second: int) -> Iterator[Expression]:
        """That two events are of one partition, and of one window."""
        for key in (*self.model._keys, _WINDOW):
            left, right = (f"{events[i].name}.{key}" for i in (first, second))
            if left in scope.schema and right in scope.schema:
                yield scope[left].same_as(scope[right]) if key == _WINDOW else scope[left] == scope[right]

    def _relation(
        self,
        event: Event,
        place: Part,
        contexts: tuple[str, ...],
        several: bool,
        deriving: bool,
        asked: Mapping[str, str] | None = None,
    ) -> Relation:
        """The events of a type in the contexts; with the beginning of the window where there are several, and with what
        else of it is asked for.
        """
        with written_at(self.text.at(place)):
            relation = self._stream(event.type, deriving=deriving)
            at = self.times[event.type] = _instant(relation)
            if contexts:
                values = {**({_WINDOW: BEGAN} if several else {}), **(asked or {})}
                relation = relation.in_context(self.model, *contexts, at=at, values=values)
            return relation.as_(event.name) if several or event.variable is not None else relation

    def _stream(self, name: str, *, deriving: bool) -> Relation:
        """The events of a type: a stream, or what a query derives."""
        if name not in self.derived:
            return stream_of(self.streams, name)
        inside = [part for part in self.derived[name] if self._contexts(part)]
        if deriving and inside:
            raise QueryError(
                "TG211",
                f"{name} is derived in a context, and a query that derives contexts reads it",
                hint="derive it in no context, and let the query that reads it stand in it: CONTEXT ...",
            )
        return self._result(name)


def _conjuncts(conditions: Iterable[Part]) -> Iterator[Part]:
    """Conditions that have to hold together, brackets around some of them taken off."""
    for condition in conditions:
        if condition.kind == "and":
            yield from _conjuncts(condition.parts)
        else:
            yield condition


def _flat(pattern: Part) -> Iterator[Part]:
    for part in pattern.parts:
        if part.kind == "seq":
            yield from _flat(part)
        else:
            yield part


def _qualified(part: Part) -> Iterator[tuple[str, str, Part]]:
    """The attributes in a query that have a name before them: that name, their own, and where they stand."""
    if part.kind == "attribute" and len(part.parts) == 2:
        before, name = map(name_of, part.parts)
        yield before, name, part
    for one in part.parts:
        yield from _qualified(one)


def _instant(relation: Relation) -> str:
    """The instant of an event: that on which its stream progresses, where it holds several."""
    temporal = relation.schema.temporal
    if len(temporal) > 1 and isinstance(relation._node, Scan) and len(relation._node.stream.progress) == 1:
        return relation._node.stream.progress[0]
    return relation._order(None, "PATTERN", "time")


def _named(event: Event, name: str, relation: Relation) -> str:
    qualified = f"{event.name}.{name}"
    return qualified if qualified in relation.schema else name


def _of(condition: Expression, names: Sequence[str]) -> frozenset[str]:
    """The events that a condition reads."""
    if len(names) == 1:
        return frozenset(names)
    return frozenset(read.partition(".")[0] for read in condition._reads)
