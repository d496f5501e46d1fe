"""Situations and temporal patterns as users write them: `partition_by(...).derive(...)`, Allen's relations, `match`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from tidegate.algebra.allen import INTERSECTS, Allen, intersection
from tidegate.algebra.diagnostics.shown import kind_of, nearest, shown
from tidegate.algebra.dsl.aggregates import AggregateExpression
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.durations import Duration, check_duration, duration_in_ticks
from tidegate.algebra.dsl.checks.operators import check_operator, check_reads, check_tables
from tidegate.algebra.dsl.checks.relation import check_condition, flag, is_identifier, place, renamed, what_else
from tidegate.algebra.dsl.expression import (
    Expression,
    Origin,
    compare,
    merged_reads,
    merged_sites,
    to_expression,
)
from tidegate.algebra.dsl.here import Here, UnknownAttributeError, unknown_name
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.nodes import Node, Project, Rename, Scan, children
from tidegate.algebra.ordered.derive import END, START, Derive, derivation_text, situation_text
from tidegate.algebra.ordered.match.node import Emission, Match, RowIntervals
from tidegate.algebra.ordered.process import Operator, Process
from tidegate.algebra.printing.plans import preformatted, printable
from tidegate.algebra.row_wise import is_static
from tidegate.algebra.schema import checked_name
from tidegate.algebra.terms import Lit, Term, conjunction, conjuncts
from tidegate.algebra.types import BOOLEAN, DataType

_DERIVE = "each situation needs a name: derive(Name=tg.situation(condition))"
#: What `situation` takes beside aggregates.
_LIMITS = ("at_least", "at_most", "between")


class IntervalOrigin(Origin):
    """Where the attributes of an interval relation come from: the relation, so that a pattern knows what it is over."""

    __slots__ = ("intervals",)
    intervals: Intervals


@checked_calls
class Situation:
    """A period to be derived: how long a condition holds, and what is computed of its events. Made by `situation`.

    Examples:
        >>> fast = tg.situation(cars.speed > 80, at_least=2)
        >>> fast
        situation while speed > 80.0; give it a name: partition_by(...).derive(Name=...)
        >>> show(cars.partition_by("car").derive(Fast=fast).Fast)
        red, 2, 5
    """

    __slots__ = ("_aggregates", "_condition", "_least", "_most", "_site")

    def __init__(
        self,
        condition: object,
        least: Duration,
        most: Duration,
        aggregates: Mapping[str, AggregateExpression],
        site: Site | None,
    ) -> None:
        self._condition, self._least, self._most = condition, least, most
        self._aggregates, self._site = aggregates, site

    def __repr__(self) -> str:
        return f"situation while {self._condition!r}; give it a name: partition_by(...).derive(Name=...)"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        hint = (
            f"write tg.situation(condition, {name}=...)"
            if name in _LIMITS
            else "derive it under a name first: partition_by(...).derive(A=tg.situation(condition)).A"
        )
        raise unknown_name(f"a situation to be derived has no {name!r}", hint)


#: Situations of one pattern: to analyse so many takes some seconds, which grow with their square.
MAX_SITUATIONS: Final = 256


@called()
def situation(
    condition: Expression,
    *,
    at_least: Duration = None,
    at_most: Duration = None,
    between: tuple[Duration, Duration] | None = None,
    **aggregates: AggregateExpression,
) -> Situation:
    """A period during which the condition holds of every event, to be named in `derive`.

    It is valid in [ts, te): from its first event to the first one after it for which the condition is not true. Limits
    of its duration te - ts are inclusive: durations such as "5s" for timestamps, whole numbers for integer time (else
    `QueryError` TG160). `aggregates` are computed from its events.

    From the papers: TPStream Def. 7.

    Examples:
        >>> fast = tg.situation(cars.speed > 80, between=(2, 10), top=tg.max(cars.speed))
        >>> show(cars.partition_by("car").derive(Fast=fast).Fast)
        red, 2, 5, 95.0
    """
    with Here() as site:
        if between is not None:
            if at_least is not None or at_most is not None or not _is_pair(between):
                raise QueryError(
                    "TG160",
                    "between is a pair of durations, and stands for both limits",
                    hint='write between=("4s", "30s"), or at_least and at_most',
                )
            at_least, at_most = between
        check_condition(condition)
        check_duration("at_least", at_least)
        check_duration("at_most", at_most)
        return Situation(condition, at_least, at_most, aggregates, site)


@checked_calls
class Partitioned:
    """Events of a relation in order of time, in partitions: what `partition_by` yields and `derive` completes.

    Examples:
        >>> cars.partition_by("car")
        partitions by car, in order of time; follow it with derive(...)
    """

    __slots__ = ("_keys", "_relation", "_tie", "_time")

    def __init__(self, relation: Relation, keys: tuple[str, ...], time: str, tie: str | None) -> None:
        self._relation, self._keys, self._time, self._tie = relation, keys, time, tie

    def __repr__(self) -> str:
        return (
            f"partitions by {', '.join(self._keys) or 'nothing'}, in order of {self._time}; follow it with derive(...)"
        )

    @called(hint=_DERIVE)
    def derive(self, **situations: Situation) -> Derived:
        """The situations by these names: `derived.A` is the relation of those that are named A.

        Its rows are the keys of the partition, `ts`, `te` and the aggregates, all with the name as prefix. `QueryError`
        TG124 where no situation is given.

        Examples:
            >>> derived = cars.partition_by("car").derive(Braking=tg.situation(cars.accel < -2))
            >>> derived.Braking.schema.names
            ('Braking.car', 'Braking.ts', 'Braking.te')
            >>> show(derived.Braking)
            red, 4, 6
        """
        with Here() as site:
            if not situations:
                raise QueryError("TG124", "nothing to derive", hint=_DERIVE)
            return Derived({name: self._derived(name, definition, site) for name, definition in situations.items()})

    @called()
    def process(self, operator: Operator) -> Relation:
        """The rows of an operator of your own over these partitions: the keys, and what it declares.

        `QueryError` TG114 for what is no `tg.Operator`, or has parameters and is no frozen dataclass, or declares its
        result otherwise than with `tg.stream`, or bounds tables that it lacks; TG101 for an attribute that it reads and
        events lack; TG160 for a `kept_for` that is no duration.

        Examples:
            >>> show(cars.partition_by("car").process(Above(90)))
            red, 3, 95.0
        """
        with Here() as site:
            check_operator(operator)
            check_reads(operator)
            relation = self._relation
            for name in operator.reads:
                relation._column(name)
            types = {name: str(relation.schema[name].type) for name in operator.reads}
            declared = operator.result(types)
            if not isinstance(declared, Relation) or not isinstance(declared._node, Scan):
                raise QueryError(
                    "TG114",
                    f"result of {type(operator).__name__} gives {kind_of(declared)}",
                    hint='declare it: return tg.stream("Name", "t timestamp, ...", progress="t")',
                )
            time = relation.schema[self._time].type
            check_tables(operator, time)
            kept_for = _kept_for(operator, time)
            stream = declared._node.stream
            node = Process(relation._node, self._keys, self._time, self._tie, operator, stream, kept_for)
            name = stream.name
            return relation._with(node, dict.fromkeys(node.schema, Origin(name)), site)

    def _derived(self, name: str, given: Situation, site: Site | None) -> Intervals:
        if not isinstance(given, Situation):
            raise QueryError(
                "TG114", f"{name} is {kind_of(given)}, not a situation", hint=f"write {name}=tg.situation(condition)"
            )
        _check_symbol(name)
        relation = self._relation
        condition = relation._condition(given._condition)
        parts, aggregates = [condition], []
        for aggregate_name, aggregate in given._aggregates.items():
            self._check_aggregate(name, aggregate_name, aggregate, given._site)
            argument, by = (
                None if part is None else relation._column(part) for part in (aggregate._argument, aggregate._by)
            )
            parts += [part for part in (argument, by) if part is not None]
            aggregates.append(
                Aggregate(
                    aggregate_name,
                    aggregate._function,
                    None if argument is None else argument._term,
                    None if by is None else by._term,
                )
            )
        type_ = relation.schema[self._time].type
        least = 1 if given._least is None else duration_in_ticks(given._least, type_, "at_least")
        most = None if given._most is None else duration_in_ticks(given._most, type_, "at_most")
        node = Derive(
            relation._node,
            self._keys,
            self._time,
            self._tie,
            condition._term,
            least,
            most,
            tuple(aggregates),
        )
        base = relation._with(node, {}, given._site or site, parts)
        return _intervals(name, node, node, base, site)

    def _check_aggregate(self, symbol: str, name: str, value: object, site: Site | None) -> None:
        checked_name(name, "an attribute")
        if not isinstance(value, AggregateExpression):
            near = nearest(name, _LIMITS, 1)
            given = repr(value) if isinstance(value, Expression) else value
            lasts = f"how long it lasts at least is at_least={shown(given)}" if _is_duration(value) else ""
            raise QueryError(
                "TG115",
                f"{name}={shown(value)} is no aggregate",
                hint=f"did you mean {near[0]}=?" if near else lasts or f"write {name}=tg.max(...)",
                site=site,
            )
        if name in (*self._keys, START, END):
            what = "a key of its partition" if name in self._keys else "an end of the period"
            raise QueryError(
                "TG103",
                f"{symbol} has {name} already: {what}",
                hint=f"give the aggregate another name: {name}_=",
                site=site,
            )


def _is_duration(value: object) -> bool:
    try:
        check_duration("", value)
    except QueryError:
        return False
    return value is not None and (not isinstance(value, Expression) or isinstance(value._term, Lit))


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2


def _check_symbol(name: str) -> None:
    if not is_identifier(name):
        raise QueryError("TG114", f"{shown(name)} is no name for situations", hint="use letters, digits and _")


def _kept_for(operator: Operator, type_: DataType) -> int | None:
    """How long an operator keeps rows of a partition, in ticks; None: for ever."""
    given: Duration = operator.kept_for
    if given is None:
        return None
    check_duration("kept_for", given)
    ticks = duration_in_ticks(given, type_, "kept_for")
    if ticks < 0:
        raise QueryError("TG160", f"kept_for={shown(given)} ends before the last event", hint="write 0 or more")
    return ticks


@checked_calls
class Derived(Mapping[str, "Intervals"]):
    """Situations by name, as attributes and as a mapping.

    Examples:
        >>> driving
        situations by car in order of time
          Fast     while speed > 80.0
          Braking  while accel < -2.0
        >>> show(driving.Fast)
        red, 2, 5
    """

    __slots__ = ("_relations",)

    def __init__(self, relations: Mapping[str, Intervals]) -> None:
        self._relations = relations

    def __getitem__(self, name: str) -> Intervals:
        return self._relations[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)

    def __repr__(self) -> str:
        derivations = {
            name: intervals._periods
            for name, intervals in self._relations.items()
            if isinstance(intervals._periods, Derive)
        }
        wide = max(map(len, derivations))
        lines = [f"  {name:{wide}}  {situation_text(derivation)}" for name, derivation in derivations.items()]
        return printable("\n".join([f"situations {derivation_text(next(iter(derivations.values())))}", *lines]))

    def _repr_html_(self) -> str:
        """For notebooks."""
        return preformatted(repr(self))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._relations)

    def __getattr__(self, name: str) -> Intervals:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._relations:
            with Here() as site:
                known = ", ".join(self._relations)
                error = QueryError("TG101", f"no situations are named {name!r}", hint=f"derived here: {known}")
                raise UnknownAttributeError.of(error.at(site).problems)
        return self._relations[name]

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._relations})

    def match(
        self,
        *conditions: Expression | Intervals,
        within: Duration = None,
        emission: Emission = "earliest",
        order: Iterable[Intervals | str] = (),
    ) -> Relation:
        """`match` of conditions over these situations.

        Examples:
            >>> show(driving.match(driving.Fast.overlaps(driving.Braking), within=10))
            red, 2, 5, 4, None, 5
        """
        with Here():
            return match(*conditions, within=within, emission=emission, order=order)


@checked_calls
class Intervals(Relation):
    """Rows that are periods [ts, te): derived situations, or rows of a stream that says when they begin and end.

    Allen's thirteen relations to other periods are conditions, and so is `intersects`; `&`, `|` and comparisons of
    endpoints build patterns.

    Examples:
        >>> Fast.overlaps(Braking) & (Fast.te - Braking.ts <= 3)
        Fast.ts < Braking.ts & Braking.ts < Fast.te & Fast.te < Braking.te & Fast.te - Braking.ts <= 3
    """

    __slots__ = ("_periods", "_symbol")
    _symbol: str
    _periods: Derive | RowIntervals

    def as_(self, name: str) -> Intervals:
        """The same periods under another name, to use them twice in a pattern.

        Examples:
            >>> again = Fast.as_("Again")
            >>> Fast.before(again)
            Fast.te < Again.ts
        """
        with Here() as site:
            _check_symbol(name)
            node = self._node
            assert isinstance(node, Rename)
            plain = Relation(node.input, {}, self._sites, self._results)
            return _intervals(name, node.input, self._periods, plain, site)

    def before(self, other: Intervals) -> Expression:
        """This period ends, and the other begins later.

        As for all thirteen relations: `QueryError` TG114 for what is no period, TG103 for the period itself.

        Examples:
            >>> Fast.before(Braking)
            Fast.te < Braking.ts
        """
        return self._related(Allen.BEFORE, other)

    def meets(self, other: Intervals) -> Expression:
        """This period ends when the other begins.

        Examples:
            >>> Fast.meets(Braking)
            Fast.te = Braking.ts
        """
        return self._related(Allen.MEETS, other)

    def overlaps(self, other: Intervals) -> Expression:
        """This period begins first, the other before this one ends, and this one ends first.

        Examples:
            >>> Fast.overlaps(Braking)
            Fast.ts < Braking.ts & Braking.ts < Fast.te & Fast.te < Braking.te
            >>> show(tg.match(Fast.overlaps(Braking), within=10))
            red, 2, 5, 4, None, 5
        """
        return self._related(Allen.OVERLAPS, other)

    def finished_by(self, other: Intervals) -> Expression:
        """This period begins first, and both end together.

        Examples:
            >>> Fast.finished_by(Braking)
            Fast.ts < Braking.ts & Fast.te = Braking.te
        """
        return self._related(Allen.FINISHED_BY, other)

    def contains(self, other: Intervals) -> Expression:
        """This period begins first and ends last.

        Examples:
            >>> Fast.contains(Braking)
            Fast.ts < Braking.ts & Braking.te < Fast.te
        """
        return self._related(Allen.CONTAINS, other)

    def starts(self, other: Intervals) -> Expression:
        """Both begin together, and this period ends first.

        Examples:
            >>> Fast.starts(Braking)
            Fast.ts = Braking.ts & Fast.te < Braking.te
        """
        return self._related(Allen.STARTS, other)

    def equals(self, other: Intervals) -> Expression:
        """Both begin and end together.

        Examples:
            >>> Fast.equals(Braking)
            Fast.ts = Braking.ts & Fast.te = Braking.te
        """
        return self._related(Allen.EQUALS, other)

    def started_by(self, other: Intervals) -> Expression:
        """Both begin together, and the other ends first.

        Examples:
            >>> Fast.started_by(Braking)
            Braking.ts = Fast.ts & Braking.te < Fast.te
        """
        return self._related(Allen.STARTED_BY, other)

    def during(self, other: Intervals) -> Expression:
        """The other period begins first and ends last.

        Examples:
            >>> Fast.during(Braking)
            Braking.ts < Fast.ts & Fast.te < Braking.te
        """
        return self._related(Allen.DURING, other)

    def finishes(self, other: Intervals) -> Expression:
        """The other period begins first, and both end together.

        Examples:
            >>> Fast.finishes(Braking)
            Braking.ts < Fast.ts & Braking.te = Fast.te
        """
        return self._related(Allen.FINISHES, other)

    def overlapped_by(self, other: Intervals) -> Expression:
        """The other period begins first, this one before the other ends, and the other ends first.

        Examples:
            >>> Fast.overlapped_by(Braking)
            Braking.ts < Fast.ts & Fast.ts < Braking.te & Braking.te < Fast.te
        """
        return self._related(Allen.OVERLAPPED_BY, other)

    def met_by(self, other: Intervals) -> Expression:
        """This period begins when the other ends.

        Examples:
            >>> Fast.met_by(Braking)
            Braking.te = Fast.ts
        """
        return self._related(Allen.MET_BY, other)

    def after(self, other: Intervals) -> Expression:
        """The other period ends, and this one begins later.

        Examples:
            >>> Fast.after(Braking)
            Braking.te < Fast.ts
        """
        return self._related(Allen.AFTER, other)

    def intersects(self, other: Intervals) -> Expression:
        """Both have an instant in common: any relation but before, meets, met by and after.

        Examples:
            >>> Fast.intersects(Braking)
            Fast.ts < Braking.te & Braking.ts < Fast.te
            >>> show(tg.match(Fast.intersects(Braking), within=10))
            red, 2, None, 4, None, 4
        """
        points = _may_be_points(self) or _may_be_points(other)
        return self._stated(INTERSECTS, partial(intersection, points=points), other)

    if not TYPE_CHECKING:  # type checkers shall refuse operators themselves

        def _no_operator(self, *_: object) -> NoReturn:
            with Here():
                raise QueryError(
                    "TG114",
                    f"{self._symbol} is periods, which no operator relates",
                    hint="relations are methods: A.before(B), A.meets(B), with & and | between them; "
                    "what does not happen is a.anti_join(b, ...)",
                )

        __lt__ = __le__ = __gt__ = __ge__ = _no_operator
        __rshift__ = __lshift__ = __and__ = __or__ = __add__ = __sub__ = __invert__ = __neg__ = _no_operator

    def _related(self, relation: Allen, other: Intervals) -> Expression:
        return self._stated(relation.value, relation.condition, other)

    def _stated(self, name: str, condition: Callable[[Term, Term, Term, Term], Term], other: Intervals) -> Expression:
        with Here() as site:
            if not isinstance(other, Intervals):
                raise QueryError(
                    "TG114",
                    f"{name} relates two periods, and got {what_else(other)}",
                    hint="derive situations, or say which attributes are the ends: relation.as_intervals(...)",
                )
            if other._symbol == self._symbol:
                raise QueryError(
                    "TG103",
                    f"{self._symbol} {name} itself says nothing",
                    hint=f'use it under a second name: other = {self._symbol}.as_("other")',
                )
            left, right = self._endpoints(), other._endpoints()
            compare("eq", left[0], right[0])  # both hold instants of one type, or it is said here
            term = condition(left[0]._term, left[1]._term, right[0]._term, right[1]._term)
            parts = [*left, *right]
            sites = merged_sites(parts)
            if site is not None:
                sites.update(dict.fromkeys((term, *conjuncts(term)), site))
            return Expression(term, BOOLEAN, merged_reads(parts), sites)

    def _endpoints(self) -> tuple[Expression, Expression]:
        return self._attribute(f"{self._symbol}.{START}"), self._attribute(f"{self._symbol}.{END}")


def _may_be_points(value: object) -> bool:
    return isinstance(value, Intervals) and isinstance(value._periods, RowIntervals) and value._periods.points


def given_intervals(
    relation: Relation, start: str, end: str, keys: tuple[str, ...], name: str | None, points: bool, site: Site | None
) -> Intervals:
    """What `as_intervals` yields; `start`, `end` and keys are attributes of the relation."""
    if is_static(relation._node):
        raise QueryError(
            "TG162",
            "situations are those of streams, and this reads static tables only",
            because=("a match is reported when progress has come to its detection, and a table has no progress",),
            hint=(
                "declare a stream instead: rows or a frame given as its source are complete, so nothing waits for more"
            ),
        )
    points = flag("points", points, "where a period may end as it begins")
    if name is not None and not is_identifier(name):
        raise QueryError("TG114", f"{shown(name)} is no name for periods", hint='use letters, digits and _: name="A"')
    labels = {origin.label for origin in relation._origins.values()}
    for end_ in (start, end):
        if end_ in relation.schema and not relation.schema[end_].temporal:
            raise QueryError(
                "TG117",
                f"{end_!r} is no end of a period: it holds no instants",
                hint=(
                    f'where the stream is declared, say temporal="{end_}", or relate them: lambda s: s.{start} < '
                    f"s.{end}"
                )
                if relation.schema[end_].type.can_be_time
                else "name an instant",
            )
    symbol = name if name is not None else labels.pop() if len(labels) == 1 else ""
    if not is_identifier(symbol):
        raise QueryError("TG114", "what are these periods called?", hint='name them: as_intervals(..., name="A")')
    short = dict(relation._short_names())
    start, end, *keys_ = (short.get(attribute, attribute) for attribute in (start, end, *keys))
    plain = relation._unqualified()
    others = [attribute for attribute in plain.schema if attribute not in (start, end, *keys_)]
    if start == end or {START, END} & {*others, *keys_}:
        raise QueryError(
            "TG103",
            f"the ends of a period are called {START} and {END}, and these rows have another such attribute",
            hint="rename it, or drop it",
        )
    kept = Project(plain._node, (*keys_, start, end, *others))
    node = renamed(kept, ((start, START), (end, END)))
    return _intervals(symbol, node, RowIntervals(node, tuple(keys_), points), plain, site)


def _intervals(symbol: str, node: Node, periods: Derive | RowIntervals, base: Relation, site: Site | None) -> Intervals:
    """The rows of a node as periods under a name: all attributes get it as prefix."""
    pairs = tuple((name, f"{symbol}.{name}") for name in node.schema)
    prefixed = Rename(node, pairs)
    sites = dict(base._sites)
    place(sites, node, site)
    place(sites, prefixed, site)
    origin = IntervalOrigin(symbol)
    intervals = Intervals(prefixed, dict.fromkeys(prefixed.schema, origin), sites, base._results)
    intervals._symbol, intervals._periods = symbol, periods
    object.__setattr__(origin, "intervals", intervals)
    return intervals


Relation._partitioned, Relation._given_intervals = Partitioned, given_intervals


@called()
def match(
    *conditions: Expression | Intervals,
    within: Duration = None,
    emission: Emission = "earliest",
    order: Iterable[Intervals | str] = (),
) -> Relation:
    """All combinations of one situation per name, within a partition, for which the conditions hold.

    `within` limits the time from the first start to the detection. Emission `earliest`: a match is detected at the
    first instant at which it is certain, whatever ends are still to come; `te` of those is NULL then, and aggregates
    cover the events up to it. `final`: at the last end. Result: the keys, `name.ts`, `name.te` and aggregates of each,
    `detected`.

    `order` pins in which order they are looked for, all of them, from whichever brings a match about; otherwise costs
    decide. Results do not depend on it, and a checkpoint may go on with another.

    `QueryError` TG124 for a pattern without periods, TG153 for a condition that does not compare their ends, TG160 for
    a `within` that is no duration of their time. The analysis refuses a pattern that nothing can match (TG212), and one
    that would wait for ever (TG213).

    Examples:
        >>> hits = tg.match(Fast.overlaps(Braking), within=10)
        >>> hits.schema.names
        ('car', 'Fast.ts', 'Fast.te', 'Braking.ts', 'Braking.te', 'detected')
        >>> show(hits)
        red, 2, 5, 4, None, 5
        >>> show(tg.match(Fast.overlaps(Braking), within=10, emission="final"))
        red, 2, 5, 4, 6, 6
    """
    with Here() as site:
        if emission not in ("earliest", "final"):
            raise QueryError("TG114", f"no emission is called {shown(emission)}", hint="emission is earliest or final")
        symbols: dict[str, Intervals] = {}
        parts: list[Expression] = []
        for condition in conditions:
            if isinstance(condition, Intervals):
                _take(symbols, condition)
                continue
            part = to_expression(condition)
            parts.append(part)
            for read in part._reads.values():
                if not isinstance(read.origin, IntervalOrigin):
                    raise QueryError(
                        "TG116",
                        f"a pattern relates periods, and {read.attribute.name} is an attribute of {read.origin.label}",
                        hint="derive situations by that condition, or filter the matches with where()",
                    )
                if read.attribute.name.rsplit(".", 1)[-1] not in (START, END):
                    raise QueryError(
                        "TG153",
                        f"a pattern can not ask for {part!r}",
                        because=(f"patterns compare starts and ends, and {read.attribute.name} is neither",),
                        hint=(
                            "filter the matches by it: match(...).where(...); or make it part of a situation's "
                            "condition"
                        ),
                        site=part._sites.get(part._term),
                    )
                _take(symbols, read.origin.intervals)
        if not symbols:
            raise QueryError("TG124", "a pattern without periods", hint="write match(A.before(B), within=...)")
        if len(symbols) > MAX_SITUATIONS:
            raise QueryError(
                "TG223",
                f"a pattern of {len(symbols):,} situations; at most {MAX_SITUATIONS} are matched at once",
                hint="match parts of it, and match their results as situations, with as_intervals(...)",
            )
        return _derived_match(list(symbols.values()), parts, within, emission, _pinned(order, list(symbols)), site)


def parts_of_match(relation: Relation) -> tuple[dict[str, Relation], Relation, tuple[str, ...]]:
    """The situations of a match below what is selected of it, by their names, the whole match, and its keys.

    `QueryError` TG114 where the relation is no match of situations.
    """
    node = relation._node
    while not isinstance(node, Match) and len(children(node)) == 1:
        (node,) = children(node)
    if not isinstance(node, Match):
        raise QueryError("TG114", "this is no match of situations", hint="give the query of a pattern")

    def plain(part: Node, name: str) -> Relation:
        return Relation(part, dict.fromkeys(part.schema, Origin(name)), relation._sites, relation._results)

    parts = {
        symbol: plain(periods.input if isinstance(periods, RowIntervals) else periods, symbol)
        for symbol, periods in zip(node.symbols, node.situations, strict=True)
    }
    return parts, plain(node, "match"), node.keys


def _pinned(order: object, names: list[str]) -> tuple[str, ...]:
    """The names of an order; `QueryError` TG114 where it is not one of all symbols."""
    listed = [order] if isinstance(order, str | Intervals) or not isinstance(order, Iterable) else list(order)
    pinned = [
        entry._symbol if isinstance(entry, Intervals) else entry if isinstance(entry, str) else shown(entry)
        for entry in listed
    ]
    if pinned and sorted(pinned) != sorted(names):
        raise QueryError(
            "TG114",
            f"order names {', '.join(pinned)}, and the pattern is about {', '.join(names)}",
            hint="name each of them once, or leave order out",
        )
    return tuple(pinned)


def _take(by_symbol: dict[str, Intervals], intervals: Intervals) -> None:
    known = by_symbol.setdefault(intervals._symbol, intervals)
    if known is not intervals:
        raise QueryError(
            "TG103",
            f"two different situations are named {intervals._symbol}",
            hint=f'give one another name: {intervals._symbol}.as_("other")',
        )


def _derived_match(
    symbols: list[Intervals],
    parts: list[Expression],
    within: Duration,
    emission: Emission,
    order: tuple[str, ...],
    site: Site | None,
) -> Relation:
    situations = tuple(symbol._periods for symbol in symbols)
    type_ = situations[0].schema[START].type
    window = None if within is None else duration_in_ticks(within, type_, "within")
    pattern = conjunction([part._term for part in parts])
    node = Match(situations, tuple(symbol._symbol for symbol in symbols), pattern, window, emission, order)
    origin = Origin("this match")
    origins = dict.fromkeys(node.schema, origin)
    for symbol in symbols:
        origins |= {name: symbol._origins[name] for name in node.schema if name in symbol._origins}
    return symbols[0]._with(node, origins, site, parts, symbols[1:])
