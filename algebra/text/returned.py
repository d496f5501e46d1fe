"""RETURN: what a result has of a match, and which aggregates its situations need for that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.algebra.diagnostics.shown import nearest
from tidegate.algebra.dsl import aggregates as dsl_aggregates
from tidegate.algebra.dsl.aggregates import AggregateExpression
from tidegate.algebra.dsl.checks.relation import free_name
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.situations import Partitioned
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.functions.aggregates import TABLE, Function
from tidegate.algebra.ordered.derive import END, START
from tidegate.algebra.ordered.match.node import DETECTED
from tidegate.algebra.text.conditions import Conditions
from tidegate.algebra.text.parsing import Part, name_of

#: Aggregates that RETURN knows: those of events of a situation, for which no list of all values is kept.
AGGREGATES = tuple(function.value for function, entry in TABLE.items() if entry.of_events)


def plain_name(function: str, attribute: str | None) -> str:
    """What an aggregate is called in its situation where nothing else is."""
    return function if attribute is None else f"{function}_{attribute}"


@dataclass(slots=True)
class Item:
    """An item of RETURN: the attribute of the match that it is, the name that it gets, and where it stands."""

    source: str
    name: str
    site: Site


@dataclass(slots=True)
class ReturnReader:
    """Reads RETURN before the situations are made; `aggregates` are those that each of them needs, by their names
    there.
    """

    conditions: Conditions
    events: Partitioned
    aggregates: dict[str, dict[str, AggregateExpression]]

    def item(self, part: Part) -> Item:
        what, *name = part.parts
        source = self._aggregate(what) if what.kind == "aggregate" else self._endpoint_or_key(what)
        return Item(source, name_of(name[0]) if name else source, self._at(part))

    def selected(self, matches: Relation, items: list[Item], clause: Part) -> Relation:
        """What RETURN names, and the instant of detection: a result is an event, too, and that is its time."""
        columns: dict[str, Expression] = {}
        for item in items:
            if item.name in columns:
                raise QueryError("TG103", f"RETURN gives {item.name} twice", hint="name each: AS other", site=item.site)
            if item.name == DETECTED != item.source:
                raise QueryError(
                    "TG103", f"{DETECTED} is the time of a result", hint="choose another name", site=item.site
                )
            columns[item.name] = matches[item.source]
        with written_at(self._at(clause)):
            if all(item.source != DETECTED for item in items):
                columns[DETECTED] = matches[DETECTED]
            return matches.select(**columns)

    def _at(self, part: Part) -> Site:
        return self.conditions.text.at(part)

    def _aggregate(self, part: Part) -> str:
        """The attribute of the match that holds the aggregate, which becomes one of its situation."""
        function, argument = part.parts
        name = function.text.lower()
        if name not in AGGREGATES:
            near = nearest(name, AGGREGATES)
            hint = f"did you mean {' or '.join(near)}?" if near else f"aggregates are {', '.join(AGGREGATES)}"
            raise QueryError("TG131", f"no aggregate is called {function.text}", hint=hint, site=self._at(function))
        if len(argument.parts) == 1 and name != "count":
            hint = f"write {name}({next(iter(self.aggregates))}.attribute)"
            raise QueryError("TG132", f"{name} of which situation's events?", hint=hint, site=self._at(argument))
        symbol = self._symbol(argument.parts[0])
        attribute = None
        for inner in argument.parts[1:]:
            with written_at(self._at(inner)):
                attribute = self.conditions.relation[name_of(inner)]
        with written_at(self._at(part)):
            return f"{symbol}.{self._asked(symbol, name, attribute)}"

    def _asked(self, symbol: str, function: str, attribute: Expression | None) -> str:
        """The name of an aggregate of a situation, under which it is computed once however often it is asked for."""
        asked, events = self.aggregates[symbol], self.events
        order = {"by": events._relation[events._time]} if TABLE[Function(function)].ordered else {}
        arguments = [] if attribute is None else [attribute]
        aggregate: AggregateExpression = getattr(dsl_aggregates, function)(*arguments, **order)
        for name, known in asked.items():
            if repr(known) == repr(aggregate):
                return name
        plain = plain_name(function, None if attribute is None else repr(attribute))
        name = free_name(plain, {*events._keys, START, END, *asked})
        asked[name] = aggregate
        return name

    def _symbol(self, part: Part) -> str:
        name = name_of(part)
        if name not in self.aggregates:
            raise unknown_symbol(name, self.aggregates, self._at(part))
        return name

    def _endpoint_or_key(self, part: Part) -> str:
        names, keys = [name_of(name) for name in part.parts], self.events._keys
        if names == [DETECTED]:
            return DETECTED
        if len(names) == 2 and names[0] not in self.conditions.prefixes:
            symbol = self._symbol(part.parts[0])
            if names[1] in (START, END):
                return f"{symbol}.{names[1]}"
            raise QueryError(
                "TG115",
                f"{symbol} is a period with many events, and {names[1]} has a value in each",
                hint=f"write first({symbol}.{names[1]}), avg({symbol}.{names[1]}), {symbol}.ts or {symbol}.te",
                site=self._at(part),
            )
        if names[-1] in keys:
            return names[-1]
        known = [*keys, DETECTED]
        near = nearest(names[-1], known, 1)
        has = f"a match has {', '.join(known)}, endpoints such as {next(iter(self.aggregates))}.ts, and aggregates"
        hint = f"did you mean {near[0]}?" if near else has
        raise QueryError("TG101", f"{names[-1]} is no attribute of a match", hint=hint, site=self._at(part))


def unknown_symbol(name: str, known: Iterable[str], site: Site) -> QueryError:
    """The error for what is no situation of the query, with the nearest name that is."""
    symbols = list(known)
    near = nearest(name, symbols, 1)
    hint = f"did you mean {near[0]}?" if near else f"defined are {', '.join(symbols)}"
    return QueryError("TG172", f"no situation is called {name}", hint=hint, site=site)
