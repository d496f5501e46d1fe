"""Relations as users write them: handles around nodes.

A handle remembers which relation each attribute comes from and where each part was written; every method builds a new
handle and checks names and types at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, TypeAlias

from tidegate.algebra.diagnostics.shown import kind_of, nearest, shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.relation import (
    applied,
    attribute_name,
    check_condition,
    free_name,
    fresh_origins,
    is_identifier,
    joined_origins,
    listed,
    place,
    proper_prefixes,
    renamed,
    require_free,
    require_instants,
    require_new,
    require_same_attributes,
    require_temporal,
    short_name,
    what_else,
)
from tidegate.algebra.dsl.checks.results import add_results
from tidegate.algebra.dsl.checks.suggestions import RELATION_METHODS, join_hint, method_hint
from tidegate.algebra.dsl.contexts.handle import require_model, require_values
from tidegate.algebra.dsl.expression import Expression, Origin, attribute_expression, to_expression
from tidegate.algebra.dsl.grouping import Grouped
from tidegate.algebra.dsl.here import Here, UnknownAttributeError, variable_of
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Imbed,
    Join,
    JoinKind,
    Node,
    OrderedNode,
    Product,
    Project,
    Rename,
    Select,
    Union,
)
from tidegate.algebra.printing.plans import node_text, preformatted
from tidegate.algebra.schema import Schema, checked_name
from tidegate.algebra.terms import Attr, Term, conjunction, rename_attributes, unknown_attribute
from tidegate.algebra.types import BOOLEAN

if TYPE_CHECKING:
    from tidegate.algebra.dsl.aggregates import AggregateExpression
    from tidegate.algebra.dsl.asof.build import AsOfKind, Keys
    from tidegate.algebra.dsl.checks.durations import Duration
    from tidegate.algebra.dsl.contexts.handle import Contexts
    from tidegate.algebra.dsl.over.build import RangeFrame, RowsFrame
    from tidegate.algebra.dsl.over.columns import OverExpression
    from tidegate.algebra.dsl.ranks.columns import RankExpression, RankOrder
    from tidegate.algebra.dsl.sequences.build import OfMatch
    from tidegate.algebra.dsl.sequences.rows import MatchedRows
    from tidegate.algebra.dsl.situations import Intervals, Partitioned
    from tidegate.algebra.dsl.sources import Result
    from tidegate.algebra.dsl.versions.build import Versioned
    from tidegate.algebra.dsl.windows.between import Between
    from tidegate.algebra.dsl.windows.bounds import WindowBounds
    from tidegate.algebra.dsl.windows.build import Windowed
    from tidegate.algebra.ordered.asof import Direction
    from tidegate.algebra.ordered.sequences.pattern import Pattern

#: What selects an attribute or computes a value: an expression, an attribute's name, or a function of the relation.
Column: TypeAlias = "Expression | str | Callable[[Relation], Expression]"


class Declaration:
    """What a query promises of its result beyond its schema: progressing attributes and relations between instants."""

    __slots__ = ("progress", "relations")

    def __init__(self, progress: tuple[str, ...], relations: Term) -> None:
        self.progress: tuple[str, ...] = progress
        self.relations: Term = relations


@checked_calls
class Relation:
    """Rows of a stream, a table or a query; attributes are `relation.name` or `relation["name"]`.

    Each method makes a new relation and checks names and types at once: `QueryError` TG101 for an unknown name, TG103
    for one that two attributes have, TG113 for an attribute of another relation. An attribute may be given as itself,
    by its name, or as a function of the relation.

    Examples:
        >>> orders.amount, orders["customer"]
        (amount, customer)
        >>> large = orders.where(orders.amount > 10).select("customer", "ordered")
        >>> show(large)
        Ada, 2026-03-02 12:00:00+00:00
        Bob, 2026-03-02 12:07:00+00:00
    """

    __slots__ = ("_declaration", "_node", "_origins", "_results", "_sites")
    #: What makes the values of `partition_by` and `as_intervals`. `situations` sets both: its intervals are relations.
    _partitioned: ClassVar[type[Partitioned]]
    _given_intervals: ClassVar[
        Callable[[Relation, str, str, tuple[str, ...], str | None, bool, Site | None], Intervals]
    ]
    #: What reads the clause of `match_recognize`, set by the text language.
    _clause_over: ClassVar[Callable[[Relation, str, Mapping[str, str], str, Site | None], Relation]]

    def __init__(
        self,
        node: Node,
        origins: Mapping[str, Origin],
        sites: Mapping[Term | Node, Site],
        results: Mapping[str, Result],
        declaration: Declaration | None = None,
    ) -> None:
        self._node, self._origins, self._sites, self._results = node, origins, sites, results
        self._declaration = declaration

    @property
    def schema(self) -> Schema:
        """Attributes of the rows, in order.

        Examples:
            >>> print(payments.schema)
            order_id bigint, paid timestamp not null
        """
        return self._node.schema

    def __repr__(self) -> str:
        return node_text(self._node)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return preformatted(repr(self))

    def __len__(self) -> NoReturn:
        with Here():
            raise QueryError(
                "TG118",
                "a relation has no length: its rows come while the program runs",
                hint="count groups of them: group_by(...).agg(n=tg.count())",
            )

    def __bool__(self) -> bool:
        with Here():
            raise QueryError(
                "TG118", "a relation is neither true nor false", hint="compare its attributes inside where()"
            )

    # Attributes ------------------------------------------------------------------------------------------------------
    def __getitem__(self, name: str) -> Expression:
        """The attribute of that name, or the only one that has it after its prefix."""
        with Here():
            if not isinstance(name, str):
                raise _no_name(name)
            return self._attribute(name)

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("_"):
            raise AttributeError(name)
        with Here() as site:
            try:
                return self._attribute(name)
            except QueryError as error:
                if error.code != "TG101":
                    raise
                if any(f".{name}." in f".{full}" for full in self._node.schema):
                    return Prefixed(self, name)  # type: ignore[return-value]  # what follows is an attribute
                error = self._in_its_words(name, error)
                methods = [method for method in dir(type(self)) if not method.startswith("_")]
                subclass_methods = [
                    method for method in vars(type(self)) if type(self) is not Relation and not method.startswith("_")
                ]
                if hint := method_hint(name, methods, subclass_methods):
                    unsure = error.hint.startswith("did you mean") or hint.startswith("if ")
                    attributes = f"; {error.hint}" if unsure else ""
                    error = QueryError("TG101", f"unknown attribute or method {name!r}", hint=hint + attributes)
                raise UnknownAttributeError.of(error.at(site).problems) from None

    def _in_its_words(self, name: str, error: QueryError) -> QueryError:
        """The error for an unknown attribute, where what is meant has a prefix: as the user writes that here."""
        last = [full.rpartition(".")[2] for full in self._node.schema]
        meant = error.hint.removeprefix("did you mean ").rstrip("?").split(" or ")
        near = [full for full in self._node.schema if "." in full and full in meant]
        heads = nearest(name, dict.fromkeys(full.partition(".")[0] for full in self._node.schema if "." in full))
        if error.hint.startswith("did you mean") and near:
            names = [full if last.count(short := full.rpartition(".")[2]) > 1 else short for full in near]
        elif heads and not error.hint.startswith("did you mean"):
            names = heads
        else:
            return error
        hint = f"did you mean {' or '.join(f'{variable_of(self)}.{attribute}' for attribute in names)}?"
        return QueryError("TG101", f"unknown attribute {name!r}", hint=hint)

    def __dir__(self) -> list[str]:
        known = {part for name in self._node.schema for part in name.split(".")}
        return sorted({*object.__dir__(self), *(name for name in known if name.isidentifier())})

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._node.schema.names)

    def _attribute(self, name: str) -> Expression:
        schema = self._node.schema
        if not isinstance(name, str):
            raise unknown_attribute(name, schema)
        names = [name] if name in schema else [full for full in schema if full.endswith("." + name)]
        if len(names) > 1:
            raise QueryError(
                "TG103",
                f"ambiguous name {name!r}: {' or '.join(names)}",
                hint="write " + " or ".join(f"{variable_of(self)}.{full}" for full in names[:2]),
            )
        if not names:
            raise unknown_attribute(name, schema)
        return attribute_expression(schema[names[0]], self._origins[names[0]])

    # One relation ----------------------------------------------------------------------------------------------------
    def as_(self, name: str) -> Relation:
        """The same rows under a name of its own: attribute `time` becomes `name.time`.

        A relation that is used twice in a query needs two names.

        Examples:
            >>> payments.as_("later").schema.names
            ('later.order_id', 'later.paid')
        """
        with Here() as site:
            if not is_identifier(name):
                raise QueryError("TG114", f"{shown(name)} is no name for a relation", hint="use letters, digits and _")
            plain = self._unqualified()
            pairs = tuple((old, f"{name}.{old}") for old in plain.schema.names)
            origin = Origin(name)
            return plain._with(Rename(plain._node, pairs), dict.fromkeys((new for _, new in pairs), origin), site)

    def where(self, *conditions: Condition) -> Relation:
        """Rows for which all conditions are true, neither false nor NULL.

        From the papers: TSA Def. 12.

        Examples:
            >>> show(payments.where(payments.order_id > 1, payments.paid > "2026-03-03"))
            3, 2026-03-03 11:00:00+00:00
        """
        with Here() as site:
            parts = [self._condition(condition) for condition in conditions]
            if not parts:
                return self
            node = Select(self._node, conjunction([part._term for part in parts]))
            return self._with(node, self._origins, site, parts)

    def select(self, *attributes: Column, **named: Column) -> Relation:
        """These attributes and computed values, in this order; duplicate rows stay.

        An attribute loses the prefix that `as_` gave it where no other one selected has its name.

        From the papers: TSA Def. 14.

        Examples:
            >>> show(orders.select("customer", orders.ordered, cents=orders.amount * 100))
            Ada, 2026-03-02 12:00:00+00:00, 1250.0
            Ada, 2026-03-03 09:40:30+00:00, 800.0
            Bob, 2026-03-02 12:07:00+00:00, 3000.0
        """
        with Here() as site:
            base, columns, parts = self._columns(attributes, named, site, "select")
            node = renamed(
                Project(base._node, tuple(source for _, source in columns)), [(s, out) for out, s in columns]
            )
            origins = self._kept_origins(columns)
            return base._with(node, fresh_origins(origins, "this select"), site, parts)

    def with_(self, **named: Column) -> Relation:
        """All attributes and these computed ones after them.

        From the papers: TSA Def. 13.

        Examples:
            >>> show(payments.with_(booked=tg.ceil(payments.paid, "1d")))
            1, 2026-03-02 12:10:00+00:00, 2026-03-03 00:00:00+00:00
            3, 2026-03-03 11:00:00+00:00, 2026-03-04 00:00:00+00:00
        """
        with Here() as site:
            node, parts, sites = self._node, [], dict(self._sites)
            for name, column in named.items():
                part = self._column(column)
                node = Imbed(node, checked_name(name, "an attribute"), part._term)
                parts.append(part)
                place(sites, node, site)
            origins = {**self._origins, **dict.fromkeys(named, Origin("this with_"))}
            return Relation(node, origins, sites, self._results)._with(node, origins, site, parts)

    def rename(self, names: Mapping[str, str] | None = None, /, **old_to_new: str) -> Relation:
        """New names for some attributes: `rename(old="new")`, or a mapping where an old name has a prefix.

        Examples:
            >>> payments.rename(paid="received").schema.names
            ('order_id', 'received')
            >>> p.rename({"p.paid": "received"}).schema.names
            ('p.order_id', 'received')
        """
        with Here() as site:
            if names is not None and not isinstance(names, Mapping):
                raise QueryError("TG114", f"{shown(names)} is no mapping of names", hint='write rename(old="new")')
            asked = {**(names or {}), **old_to_new}
            pairs = tuple(
                (attribute_name(self._attribute(old)), checked_name(new, "an attribute")) for old, new in asked.items()
            )
            new, origin = dict(pairs), Origin("this rename")
            require_free(new, self.schema)
            origins = {new.get(n, n): origin if n in new else o for n, o in self._origins.items()}
            return self._with(Rename(self._node, pairs), origins, site) if pairs else self

    def drop(self, *attributes: Column) -> Relation:
        """All attributes but these; duplicate rows stay.

        Examples:
            >>> orders.drop("pieces", orders.voucher).schema.names
            ('order_id', 'customer', 'ordered', 'amount')
        """
        with Here() as site:
            gone = {self._name_of(attribute, "drop") for attribute in attributes}
            names = tuple(name for name in self.schema.names if name not in gone)
            return self._with(Project(self._node, names), {n: self._origins[n] for n in names}, site)

    def distinct(self) -> Relation:
        """Each row once; rows are equal if all their attributes are, NULL equal to NULL.

        Examples:
            >>> show(orders.select(day=tg.floor(orders.ordered, "1d")).distinct())
            2026-03-02 00:00:00+00:00
            2026-03-03 00:00:00+00:00
        """
        with Here() as site:
            return self._with(Distinct(self._node), self._origins, site)

    def group_by(self, *attributes: Column, **named: Column) -> Grouped:
        """Groups of rows with equal values, NULL equal to NULL; `agg` says what each group yields.

        A group of a stream is final only where an instant, often a window such as `tg.floor(time, "1h")`, is among the
        values. `QueryError` TG103 for a name that is given twice.

        From the papers: TSA Def. 15.

        Examples:
            >>> day = tg.floor(orders.ordered, "1d")
            >>> show(orders.group_by("customer", day=day).agg(orders=tg.count(), amount=tg.sum(orders.amount)))
            Ada, 2026-03-02 00:00:00+00:00, 1, 12.5
            Ada, 2026-03-03 00:00:00+00:00, 1, 8.0
            Bob, 2026-03-02 00:00:00+00:00, 1, 30.0
        """
        with Here() as site:
            base, columns, parts = self._columns(attributes, named, site, "group_by")
            return Grouped(self, base, columns, parts)

    def partition_by(self, *attributes: Column, time: Column | None = None, tie: Column | None = None) -> Partitioned:
        """The rows as events in order of `time`, in partitions of equal values; `derive` says which situations they
        make.

        `time` may be left out where rows hold one instant only (else `QueryError` TG117). Two events of one partition
        at one time are set aside, or fail the batch, as `ties` of their source says, unless `tie` names an attribute
        that orders them.

        Examples:
            >>> readings = cars.partition_by("car", time="time")
            >>> readings
            partitions by car, in order of time; follow it with derive(...)
            >>> show(readings.derive(Fast=tg.situation(cars.speed > 80)).Fast)
            red, 2, 5
        """
        with Here():
            keys = tuple(self._name_of(attribute, "partition_by") for attribute in attributes)
            twice = next((key for key in keys if keys.count(key) > 1), None)
            if twice is not None:
                raise QueryError("TG103", f"events are partitioned by {twice} twice", hint="name each key once")
            order = self._order(time, "partition_by", "time")
            return self._partitioned(self, keys, order, self._tie(tie, "partition_by"))

    def over(
        self,
        *,
        by: Column | Iterable[Column] = (),
        order: Column | None = None,
        tie: Column | None = None,
        rows: RowsFrame | None = None,
        range: RangeFrame | None = None,
        **columns: OverExpression | AggregateExpression | Callable[[Relation], OverExpression | AggregateExpression],
    ) -> Relation:
        """All attributes, and after them values of the rows around each row: those of equal `by`, in order of `order`.

        Columns are `tg.lag`, `tg.lead`, `tg.row_number`, `tg.previous_different`, `tg.next_different`, `tg.nth`, and
        aggregates. Aggregates are of all rows up to this one and, without `tie`, those of its instant. `rows=(2, 0)`
        takes the two rows before and this one, `range="5m"` those of the five minutes before, the first instant
        included.

        `order` may be left out where rows hold one instant only (else `QueryError` TG117). Where a column depends on
        which of two rows of one key and instant comes first, they are set aside, or fail the batch, as `ties` of their
        source says, unless `tie` names an attribute that orders them. Then the later ones of an instant are not among
        those up to a row.

        Examples:
            >>> driven = cars.over(by="car", order="time", before=tg.lag(cars.speed), fastest=tg.max(cars.speed))
            >>> show(driven.select("time", "speed", "before", "fastest").where(driven.time >= 3, driven.time <= 5))
            3, 95.0, 90.0, 95.0
            4, 85.0, 95.0, 95.0
            5, 60.0, 85.0, 95.0
            >>> smooth = cars.over(by="car", order="time", rows=(1, 0), mean=tg.avg(cars.speed))
            >>> show(smooth.select("time", "mean").where(smooth.time <= 2))
            1, 60.0
            2, 75.0
        """
        from tidegate.algebra.dsl.over.build import frame_of, over_node, require_columns

        with Here() as site:
            keys, time, last = self._in_order("over", by, order, tie)
            require_columns(columns)
            frame = frame_of(rows, range, self.schema[time].type)
            node, parts = over_node(self, keys, time, last, frame, columns)
            origin = Origin("this over")
            return self._with(node, {name: self._origins.get(name, origin) for name in node.schema}, site, parts)

    def distinct_on(self, *by: Column, order: Column | None = None, tie: Column | None = None) -> Relation:
        """The first row of each key in order of `order`, once for ever, as SQL's `DISTINCT ON`.

        What is kept is one row a key. `order` may be left out where rows hold one instant only. Rows that are equal are
        one; two that differ, of one key and at one instant, are set aside, or fail the batch, as `ties` of their source
        says, unless `tie` names an attribute that orders them.

        Examples:
            >>> show(cars.distinct_on("car").select("car", "time", "speed"))
            red, 1, 60.0
        """
        with Here() as site:
            if not by:
                raise QueryError("TG114", "distinct_on has no key", hint='name one: distinct_on("car")')
            return self._without_repeats("distinct_on", by, order, tie, None, site)

    def dedup(
        self,
        *,
        by: Column | Iterable[Column],
        within: Duration = None,
        order: Column | None = None,
        tie: Column | None = None,
    ) -> Relation:
        """The rows without those that repeat a key: the first one of each key, and then the next that comes more than
        `within` after the last one that was let through; without `within` no other.

        What is kept is one row a key, with `within` only of keys that came so recently. `order` may be left out where
        rows hold one instant only. Rows that are equal are one; two that differ, of one key and at one instant, are set
        aside, or fail the batch, as `ties` of their source says, unless `tie` names an attribute that orders them.

        Examples:
            >>> show(cars.dedup(by="car", within=2).select("time", "speed"))
            1, 60.0
            4, 85.0
        """
        with Here() as site:
            return self._without_repeats("dedup", by, order, tie, within, site)

    def versions(
        self, *, by: Column | Iterable[Column], order: Column | None = None, tie: Column | None = None
    ) -> Relation:
        """The rows as versions of what their key stands for, each with the instant `until` at which the next one takes
        over: a row holds in [order, until).

        A row is complete when the next one of its key is there. The last one of a key holds still, and is not reported,
        unless it is said where the input ends (`close_at`).

        Examples:
            >>> show(cars.versions(by="car").select("time", "until", "speed").where(lambda r: r.time <= 2))
            1, 2, 60.0
            2, 3, 90.0
        """
        from tidegate.algebra.dsl.over.build import versions_node

        with Here() as site:
            node = versions_node(self._node, *self._in_order("versions", by, order, tie))
            origin = Origin("these versions")
            return self._with(node, {name: self._origins.get(name, origin) for name in node.schema}, site)

    @called(
        by=("TG114", 'say which rows are a group: ranked(by="end", order=tg.desc(r.x), place=tg.rank())'),
        order=("TG114", 'say which rows come first: ranked(by="end", order=tg.desc(r.x), place=tg.rank())'),
    )
    def ranked(
        self,
        *,
        by: Column | Iterable[Column],
        order: RankOrder | Iterable[RankOrder],
        **columns: RankExpression | OverExpression,
    ) -> Relation:
        """All attributes, and after them the places of each row among the rows of its group: those of equal `by`.

        An instant is among `by`, such as the end of a window: a group is complete once all rows up to it are there, and
        nothing is kept of it then. Of several instants that of windows counts, or else the first that progresses.
        `QueryError` TG117 where there is none.

        `order` are values, from the least on, or from the greatest with `tg.desc`; NULL comes last. Columns are
        `tg.rank()`, `tg.dense_rank()` and `tg.row_number()`. Rows with equal values have one rank. For `row_number`
        they are set aside, or fail the batch, as `ties` of their source says: nothing tells which comes first.

        Examples:
            >>> halves = cars.with_(end=tg.ceil(cars.time, 3))
            >>> placed = halves.ranked(by="end", order=(tg.desc("accel"), "time"), place=tg.row_number())
            >>> show(placed.select("end", "time", "place").where(placed.end == 3))
            3, 1, 1
            3, 2, 2
            3, 3, 3
        """
        from tidegate.algebra.dsl.ranks.build import rank_columns, ranks_node

        with Here() as site:
            parts: list[Expression] = []
            node = ranks_node(self, "ranked", by, order, rank_columns(columns), parts)
            origin = Origin("this ranked")
            return self._with(node, {name: self._origins.get(name, origin) for name in node.schema}, site, parts)

    @called(
        k=("TG114", 'say how many rows: top_k(3, by="end", order=tg.desc(r.x))'),
        by=("TG114", 'say of which group: top_k(3, by="end", order=tg.desc(r.x))'),
        order=("TG114", 'say which rows come first: top_k(3, by="end", order=tg.desc(r.x))'),
    )
    def top_k(self, k: int, *, by: Column | Iterable[Column], order: RankOrder | Iterable[RankOrder]) -> Relation:
        """The first `k` rows of each group in an order of values, and the peers of the last of them, as SQL's
        `FETCH FIRST 3 ROWS WITH TIES`.

        `by` and `order` are those of `ranked`. Rows with equal values are peers; a further value in `order` that tells
        them apart leaves `k` rows.

        Examples:
            >>> halves = cars.with_(end=tg.ceil(cars.time, 3))
            >>> show(halves.top_k(1, by="end", order=tg.desc("accel")).select("end", "time", "accel"))
            3, 1, 3.0
            3, 2, 3.0
            6, 6, 0.0
        """
        from tidegate.algebra.dsl.ranks.build import first_rows, ranks_node, require_number

        with Here() as site:
            most, parts = require_number(k), list[Expression]()
            node = first_rows(ranks_node(self, "top_k", by, order, (), parts), most)
            return self._with(node, self._origins, site, parts)

    def versioned(
        self,
        *,
        by: Column | Iterable[Column],
        deleted: Condition | None = None,
        order: Column | None = None,
        tie: Column | None = None,
    ) -> Versioned:
        """The rows as changes of a table with one row a key, which `temporal_join` looks up.

        A change is a version of its key's row, from its own instant up to that of the next change. One for which
        `deleted` is true deletes the row. `order` may be left out where rows hold one instant only (else `QueryError`
        TG117). Two changes of one key at one instant are set aside, or fail the batch, as `ties` of their source says,
        unless `tie` names an attribute that orders them: then the last one counts.

        Examples:
            >>> phases = cars.as_("c").versioned(by="car", deleted=lambda c: c.accel == 0)
            >>> ask = tg.stream("Ask", "car string, at bigint", progress="at")
            >>> show(ask.temporal_join(phases, at="at").select("at", "speed"), Ask=[("red", 2), ("red", 3), ("red", 9)])
            2, 90.0
            3, None
            9, None
        """
        from tidegate.algebra.dsl.versions.build import Versioned

        with Here():
            ended = None if deleted is None else self._condition(deleted)
            return Versioned(self, *self._in_order("versioned", by, order, tie), ended)

    def _without_repeats(
        self,
        where: str,
        by: Column | Iterable[Column],
        order: Column | None,
        tie: Column | None,
        within: Duration,
        site: Site | None,
    ) -> Relation:
        from tidegate.algebra.dsl.over.build import without_repeats

        node = without_repeats(self._node, *self._in_order(where, by, order, tie), within)
        return self._with(node, self._origins, site)

    def _in_order(
        self, where: str, by: Column | Iterable[Column], order: Column | None, tie: Column | None
    ) -> tuple[tuple[str, ...], str, str | None]:
        """The names of the keys, of the attribute that orders rows, and of that which orders rows of one instant."""
        from tidegate.algebra.dsl.over.build import require_once

        keys = tuple(self._name_of(column, where) for column in listed(by))
        require_once(keys)
        return keys, self._order(order, where, "order"), self._tie(tie, where)

    @called(bounds=("TG114", 'say which windows: windows(tg.session("5m"), by="key")'))
    def windows(
        self,
        bounds: WindowBounds | Between,
        *,
        by: Column | Iterable[Column] = (),
        order: Column | None = None,
        tie: Column | None = None,
    ) -> Windowed:
        """Windows that depend on the rows or overlap, of the rows of equal `by`; `agg` says what each yields.

        `bounds` are `tg.session`, `tg.hopping`, `tg.cumulating`, `tg.calendar`, `tg.landmark`, `tg.rows`, or
        `tg.between`, whose keys `by` may be left out. `order` may be left out where rows hold one instant only (else
        `QueryError` TG117). `tie` orders rows of one instant where they are counted. A window has the keys, `start`,
        `end` and its aggregates, and is complete at its end. Windows that do not overlap are groups:
        `group_by(w=tg.ceil(time, "1h"))`.

        Examples:
            >>> show(cars.windows(tg.session(1), by="car").agg(n=tg.count(), fastest=tg.max(cars.speed)))
            red, 1, 7, 6, 95.0
        """
        from tidegate.algebra.dsl.windows.build import windowed

        with Here():
            keys, time, last = self._in_order("windows", by, order, tie)
            return windowed(self, bounds, keys, time, last)

    @called(pattern=("TG114", 'say which rows follow each other: sequences("A B+", by="key", define=...)'))
    def sequences(
        self,
        pattern: str | Pattern,
        *,
        by: Column | Iterable[Column] = (),
        order: Column | None = None,
        tie: Column | None = None,
        define: Mapping[str, OfMatch] = MappingProxyType({}),
        within: Duration = None,
        limits: Callable[[MatchedRows], object] | None = None,
        matches: Literal["preferred", "contiguous", "next", "any"] = "preferred",
        skip: str = "past last row",
        rows: Literal["one", "all"] = "one",
        empty: bool = True,
        unmatched: bool = False,
        subsets: Mapping[str, Iterable[str]] = MappingProxyType({}),
        per_start: int | None = None,
        **measures: OfMatch,
    ) -> Relation:
        """The matches of a row pattern in each partition of equal `by`, as SQL's MATCH_RECOGNIZE has them.

        The pattern is a regular expression over variables; `define` says which rows can have each, and a variable
        without a condition is true of every row. Conditions and measures take the match: `m.A` is its last row so far
        with the variable `A`. A match has the keys, its measures, the instants `first` and `last` of its rows, and
        `detected`, from which on no row to come can change it.

        `matches`: of those that begin at a row the preferred one, after which the search goes on as `skip` says
        (`"past last row"`, `"next row"`, `"first A"`, `"last A"`), or every one: of adjacent rows, skipping till the
        next row that fits, or any rows. `within` bounds the time from the first to the last row, `limits` the time
        between others. `rows="all"` reports each row of a match, `unmatched` those of none as well. `per_start`: of
        every match, how many may begin with one row; where more would, the program stops (TG307).

        Examples:
            >>> rising = {"B": lambda m: m.B.speed > m.B.prev().speed}
            >>> up = cars.sequences("A B+", by="car", define=rising, top=lambda m: m.B.speed)
            >>> show(up)
            red, 95.0, 1, 3, 4
        """
        from tidegate.algebra.dsl.sequences.build import SequenceOptions, pattern_of, sequences_node

        with Here() as site:
            ordered = self._in_order("sequences", by, order, tie)
            options = SequenceOptions(define, subsets, within, limits, matches, skip, rows, empty, unmatched, per_start)
            node, parts = sequences_node(self, pattern_of(pattern, self, ordered[1]), ordered, options, measures)
            origin = Origin("these matches")
            kept = node.schema if rows == "all" else ordered[0]
            known = {name: self._origins.get(name, origin) for name in kept}
            return self._with(node, {name: known.get(name, origin) for name in node.schema}, site, parts)

    def match_recognize(self, clause: str, *, units: Mapping[str, str] | None = None, file: str = "clause") -> Relation:
        """The matches of a row pattern: the clause MATCH_RECOGNIZE of SQL:2016, as it stands in its brackets.

        `units` says in which unit the values of an attribute are, `file` is what errors call the text. With FROM and a
        name it is `tg.read_query`. `QueryError` TG170 where the text does not fit the grammar, TG172 for variables
        that there are not, TG178 for what the standard does not allow.

        Examples:
            >>> braked = cars.match_recognize('''
            ...     PARTITION BY car ORDER BY time
            ...     MEASURES A.speed AS before, LAST(B.speed) AS after
            ...     PATTERN (A B+)
            ...     DEFINE B AS speed < PREV(speed)
            ... ''')
            >>> braked.schema.names
            ('car', 'before', 'after', 'first', 'last', 'detected')
        """
        with Here() as site:
            if not isinstance(clause, str):
                raise QueryError(
                    "TG114", f"a clause is text, not {kind_of(clause)}", hint="give what the brackets hold"
                )
            return self._clause_over(clause, units or {}, file, site)

    @called(every=("TG160", 'say how far apart ticks are: ticks("1m", by="key")'))
    def ticks(
        self,
        every: Duration,
        *,
        by: Column | Iterable[Column] = (),
        within: Duration = None,
        offset: Duration = None,
        order: Column | None = None,
    ) -> Relation:
        """Instants at equal distances: of each key that rows have the multiples of `every`, plus `offset`, as `tick`.

        They begin with the first row of the key. `within`: only so long after one of its rows, that instant included;
        without it they go on for as long as the relation progresses, or up to where `close_at` says that it ends. A
        tick is final once the relation has come as far, whether a row came or the clock says so. `order` is the instant
        of rows, and may be left out where they hold one only (else `QueryError` TG117).

        Examples:
            >>> show(cars.ticks(2, by="car"))
            red, 2
            red, 4
            red, 6
            >>> show(cars.where(cars.speed > 80).ticks(2, by="car", within=3))
            red, 2
            red, 4
            red, 6
        """
        from tidegate.algebra.dsl.ticks.build import ticks_node

        with Here() as site:
            keys, time, _ = self._in_order("ticks", by, order, None)
            node = ticks_node(self._node, keys, time, every, within, offset)
            origin = Origin("these ticks")
            return self._with(node, {name: self._origins.get(name, origin) for name in node.schema}, site)

    @called(every=("TG160", 'say how far apart rows shall be: fill_gaps("1m", by="key")'))
    def fill_gaps(
        self,
        every: Duration,
        *,
        by: Column | Iterable[Column] = (),
        within: Duration = None,
        offset: Duration = None,
        order: Column | None = None,
        tie: Column | None = None,
    ) -> Relation:
        """The last row of each key at each of its `ticks`: a row at equal distances, with the last values carried
        forward.

        A result row has all attributes, and the instant `tick` at which it holds. `within`: a row is carried so far
        only. Rows with a key that is NULL are left out. Two rows of one key at one instant are set aside, or fail the
        batch, as `ties` of their source says, unless `tie` names an attribute that orders them.

        Examples:
            >>> show(cars.fill_gaps(2, by="car").select("tick", "speed"))
            2, 90.0
            4, 85.0
            6, 50.0
        """
        from tidegate.algebra.dsl.ticks.build import filled_node

        with Here() as site:
            keys, time, last = self._in_order("fill_gaps", by, order, tie)
            node = filled_node(self._node, keys, time, last, every, within, offset)
            origin = Origin("this fill_gaps")
            return self._with(node, {name: self._origins.get(name, origin) for name in node.schema}, site)

    def _order(self, given: Column | None, where: str, option: str) -> str:
        """The attribute that orders rows; `QueryError` TG117 where it is not said, and rows have several instants."""
        if given is not None:
            return self._name_of(given, where)
        if len(self.schema.temporal) != 1:
            known = ", ".join(self.schema.temporal) or "none"
            raise QueryError(
                "TG117",
                f"which attribute orders the {'events' if option == 'time' else 'rows'}? instants here: {known}",
                hint=f"name it: {where}(..., {option}={_progressing(self._node) or 'time'!r})",
            )
        return self.schema.temporal[0]

    def as_intervals(
        self,
        *,
        start: Column,
        end: Column,
        by: Column | Iterable[Column] = (),
        name: str | None = None,
        points: bool = False,
    ) -> Intervals:
        """The rows as periods [start, end), in partitions of equal `by`, to be used in `tg.match` as situations are.

        Every row must be known to have `start < end` (with `points`: `<=`), by a declared relation or a filter. The
        ends are called `ts` and `te` from here on. `name` may be left out where the relation has one.

        `QueryError` TG161 for rows that might end before they begin, TG162 for rows of a static table.

        Examples:
            >>> attributes = "who string, a bigint, z bigint"
            >>> shifts = tg.stream("Shifts", attributes, progress="z", relations=lambda s: s.a < s.z)
            >>> Shift = shifts.as_intervals(start="a", end="z", name="Shift")
            >>> show(Shift, Shifts=[("Ada", 0, 8), ("Bob", 8, 16)])
            0, 8, Ada
            8, 16, Bob
        """
        with Here() as site:
            keys = tuple(self._name_of(column, "as_intervals") for column in listed(by))
            first, last = (self._name_of(column, "as_intervals") for column in (start, end))
            return self._given_intervals(first, last, keys, name, points, site)

    def unqualified(self) -> Relation:
        """The same rows with prefixes (`fs.time`) stripped where that leaves no two attributes with one name.

        Examples:
            >>> p.schema.names
            ('p.order_id', 'p.paid')
            >>> p.unqualified().schema.names
            ('order_id', 'paid')
        """
        with Here() as site:
            return self._unqualified(site)

    @called(progress=("TG106", 'name the attribute on which the result progresses: progress="time"'))
    def declare(
        self,
        *,
        progress: str | Expression | Iterable[str | Expression],
        relations: Condition | Iterable[Condition] = (),
    ) -> Relation:
        """The same query with promises for its result stream, to be proved: progress on these attributes alone, and
        temporal relations that every row satisfies.

        The analysis refuses what does not follow from the query (TG201, TG203).

        Examples:
            >>> due = payments.with_(due=payments.paid + tg.days(30))
            >>> promised = due.declare(progress="paid", relations=lambda row: row.paid < row.due)
            >>> tg.program(Due=promised).check()
            []
        """
        with Here():
            names = dict(self._short_names())
            promised = tuple(names.get(n, n) for n in (self._name_of(p, "declare") for p in listed(progress)))
            parts = [self._condition(condition) for condition in listed(relations)]
            require_temporal(parts)
            plain = self._unqualified()
            require_instants(plain.schema, promised)
            sites: dict[Term | Node, Site] = dict(plain._sites)
            for part in parts:
                sites.update({rename_attributes(term, names): at for term, at in part._sites.items()})
            stated = conjunction([rename_attributes(part._term, names) for part in parts])
            return Relation(plain._node, plain._origins, sites, plain._results, Declaration(promised, stated))

    # Two and more relations ------------------------------------------------------------------------------------------
    def join(self, other: Relation, *conditions: Condition2, how: JoinKind = "inner") -> Relation:
        """Pairs of rows for which all conditions are true; `how`: inner, left, semi or anti.

        Conditions may be functions of the two relations. `QueryError` TG114 for a `how` that there is not.

        Examples:
            >>> paid = o.join(p, p.order_id == o.order_id, o.ordered <= p.paid, p.paid <= o.ordered + tg.minutes(30))
            >>> show(paid.select(o.customer, o.ordered, p.paid))
            Ada, 2026-03-02 12:00:00+00:00, 2026-03-02 12:10:00+00:00
        """
        with Here() as site:
            _require_relation(other, "join")
            if how not in ("inner", "left", "semi", "anti"):
                raise QueryError("TG114", f"no join is called {shown(how)}", hint=join_hint(how))
            origins = joined_origins(self.schema, self._origins, other.schema, other._origins)
            both = Relation(Product(self._node, other._node), origins, {}, {})
            parts = [both._condition(applied(c, self, other) if callable(c) else c) for c in conditions]
            node = Join(self._node, other._node, conjunction([part._term for part in parts]), how)
            kept = {name: origins[name] for name in node.schema}
            return self._with(node, kept, site, parts, (other,))

    def left_join(self, other: Relation, *conditions: Condition2) -> Relation:
        """Every row of this relation, with NULLs where no row of the other matches.

        Examples:
            >>> show(o.left_join(p, *in_time).select(o.customer, o.ordered, p.paid))
            Ada, 2026-03-02 12:00:00+00:00, 2026-03-02 12:10:00+00:00
            Ada, 2026-03-03 09:40:30+00:00, None
            Bob, 2026-03-02 12:07:00+00:00, None
        """
        with Here():
            return self.join(other, *conditions, how="left")

    def semi_join(self, other: Relation, *conditions: Condition2) -> Relation:
        """Rows of this relation for which some row of the other matches.

        Examples:
            >>> show(o.semi_join(p, *in_time).select(o.customer, o.ordered))
            Ada, 2026-03-02 12:00:00+00:00
        """
        with Here():
            return self.join(other, *conditions, how="semi")

    def anti_join(self, other: Relation, *conditions: Condition2) -> Relation:
        """Rows of this relation for which no row of the other matches.

        A row is final once no row that would match can come any more. So the conditions must bound the other's instant
        from above; else the program is refused (TG201).

        Examples:
            >>> show(o.anti_join(p, *in_time).select(o.customer, o.ordered))
            Ada, 2026-03-03 09:40:30+00:00
            Bob, 2026-03-02 12:07:00+00:00
        """
        with Here():
            return self.join(other, *conditions, how="anti")

    def asof_join(
        self,
        other: Relation,
        *,
        by: Keys = (),
        left_on: Column | None = None,
        right_on: Column | None = None,
        tie: Column | None = None,
        direction: Direction = "backward",
        within: Duration = None,
        strict: bool = False,
        how: AsOfKind = "left",
    ) -> Relation:
        """Every row of this relation with one row of the other: of those with equal keys the nearest in time.

        `direction`: backward takes the last one at or before the row's instant, forward the first one at or after it,
        nearest that of the two which is not as far away, of two at one distance the earlier. `within`: one that is
        further away does not count. `strict`: nor does one at the instant itself. `how`: a row without another one has
        NULLs (left), or is left out (inner). A key that is NULL equals none.

        `by`: the name of a key on both sides, several, or pairs such as `[("symbol", "ticker")]`. `left_on`,
        `right_on`: the instants, which may be left out where rows hold one only. Two rows of the other relation with
        one key and instant are set aside, or fail the batch, as `ties` of their source says, unless its attribute `tie`
        orders them.

        A row is complete at its own instant with `backward`; else `complete` says when, and without `within` it waits
        until the other relation has a later row.

        Examples:
            >>> known = o.asof_join(p, by="order_id", direction="forward", within="30m")
            >>> show(known.select("customer", "ordered", "paid"))
            Ada, 2026-03-02 12:00:00+00:00, 2026-03-02 12:10:00+00:00
            Ada, 2026-03-03 09:40:30+00:00, None
            Bob, 2026-03-02 12:07:00+00:00, None
        """
        from tidegate.algebra.dsl.asof.build import asof_node

        with Here() as site:
            _require_relation(other, "asof_join")
            origins = joined_origins(self.schema, self._origins, other.schema, other._origins)
            times = self._order(left_on, "asof_join", "left_on"), other._order(right_on, "asof_join", "right_on")
            order = other._tie(tie, "asof_join")
            node = asof_node(self, other, by, times, order, direction, within, strict, how)
            origin = Origin("this asof_join")
            return self._with(node, {name: origins.get(name, origin) for name in node.schema}, site, (), (other,))

    def temporal_join(
        self, table: Versioned, *, on: Keys = (), at: Column | None = None, how: AsOfKind = "left"
    ) -> Relation:
        """Every row of this relation with the version that holds at the row's own instant, as SQL's `FOR SYSTEM_TIME AS
        OF`.

        `table` is what `versioned` makes of changes. `on`: its keys by name, or pairs such as `[("currency", "code")]`;
        where it is left out, this relation has attributes of the same names. `at`: the instant, which may be left out
        where rows hold one only. `how`: a row without a version has NULLs (left), or is left out (inner).

        A row is complete at its own instant, once the changes up to it are there. What is kept is the last change of
        each key that is not deleted.

        Examples:
            >>> gears = tg.stream("Gears", "car string, since bigint, gear bigint", progress="since").as_("g")
            >>> driven_in = cars.temporal_join(gears.versioned(by="car", deleted=gears.gear == 0), at="time")
            >>> changes = [("red", 2, 1), ("red", 3, 2), ("red", 5, 0)]
            >>> show(driven_in.select("time", "speed", "gear"), Gears=changes)
            1, 60.0, None
            2, 90.0, 1
            3, 95.0, 2
            4, 85.0, 2
            5, 60.0, None
            6, 50.0, None
        """
        from tidegate.algebra.dsl.versions.build import Versioned, temporal_join_node

        with Here() as site:
            if not isinstance(table, Versioned):
                raise QueryError(
                    "TG114",
                    f"temporal_join got {kind_of(table)}, not a table of versions",
                    hint='make a table of changes first: rates.versioned(by="currency")',
                )
            other = table._of
            origins = joined_origins(self.schema, self._origins, other.schema, other._origins)
            node = temporal_join_node(self, table, on, self._order(at, "temporal_join", "at"), how)
            parts = () if table._deleted is None else (table._deleted,)
            origin = Origin("this temporal_join")
            return self._with(node, {name: origins.get(name, origin) for name in node.schema}, site, parts, (other,))

    def in_context(
        self,
        model: Contexts,
        *contexts: str,
        by: Column | Iterable[Column] | None = None,
        at: Column | None = None,
        since: Column | None = None,
        values: Mapping[str, str] | None = None,
    ) -> Relation:
        """The rows at whose instant one of these contexts of a model holds, or a window between rows.

        A window (t_i, t_t] has the row at the instant at which it ends, and not the one at which it begins. A row is
        complete at its own instant, once the transitions before it are there: nothing waits for a context's end.

        `model`: a model of contexts, or windows of `tg.between(...)`, which have no contexts to name. `by`: the
        attributes of the model's keys, in their order, where they are not called as those. `at`: the instant that is
        looked up, where rows hold several; it may be another one than that at which a row happened. `since`: an earlier
        instant of the row, as that of the first of several events: the window has to have begun before it, so that both
        lie in one window. `values`: attributes of the window by new names, `{"since": "began"}`; of several contexts
        without the default one `began` alone, of the first of their windows that hold.

        Examples:
            >>> show(cars.in_context(traffic, "slow", values={"since": "began"}).select("time", "speed", "since"))
            2, 90.0, 1
            6, 50.0, 5
            >>> show(cars.in_context(traffic, "clear").select("time", "speed"))
            1, 60.0
            3, 95.0
            4, 85.0
            5, 60.0
        """
        with Here() as site:
            windows, asked = require_model(model, "in_context"), {} if values is None else values
            if not isinstance(asked, Mapping):
                raise QueryError(
                    "TG114",
                    f"values={shown(asked)} says not which attributes of the window have which names",
                    hint='write values={"since": "start"}: the new name first',
                )
            require_new(asked, self.schema)
            require_values(asked)
            first = None if since is None else self._name_of(since, "in_context")
            return windows._inside(self, contexts, by, at, first, asked, site)

    def not_in_context(
        self,
        model: Contexts,
        *contexts: str,
        by: Column | Iterable[Column] | None = None,
        at: Column | None = None,
    ) -> Relation:
        """The rows at whose instant none of these contexts of a model holds, or no window between rows. `by` and `at`
        are those of `in_context`.

        Examples:
            >>> show(cars.not_in_context(traffic, "slow").select("time", "speed"))
            1, 60.0
            3, 95.0
            4, 85.0
            5, 60.0
        """
        with Here() as site:
            return require_model(model, "not_in_context")._outside(self, contexts, by, at, site)

    def union(self, *others: Relation) -> Relation:
        """Rows of all relations, matched by attribute names; duplicates stay.

        `QueryError` TG108 where names or types differ.

        From the papers: TSA Def. 17.

        Examples:
            >>> happened = orders.select("order_id", at="ordered").union(payments.select("order_id", at="paid"))
            >>> show(happened.where(happened.order_id == 1))
            1, 2026-03-02 12:00:00+00:00
            1, 2026-03-02 12:10:00+00:00
        """
        with Here() as site:
            for other in others:
                _require_relation(other, "union")
                require_same_attributes(self.schema, other.schema, "union")
            node = Union((self._node, *(other._node for other in others)))
            return self._with(node, self._origins, site, (), others)

    def difference(self, other: Relation) -> Relation:
        """Rows of this relation that the other does not contain, NULL equal to NULL.

        `QueryError` TG108 where names or types differ.

        From the papers: TSA Def. 18.

        Examples:
            >>> bought = orders.select("order_id", hour=tg.floor(orders.ordered, "1h"))
            >>> settled = payments.select("order_id", hour=tg.floor(payments.paid, "1h"))
            >>> show(bought.difference(settled))
            2, 2026-03-02 12:00:00+00:00
            3, 2026-03-03 09:00:00+00:00
        """
        with Here() as site:
            _require_relation(other, "difference")
            require_same_attributes(self.schema, other.schema, "difference")
            return self._with(Difference(self._node, other._node), self._origins, site, (), (other,))

    # How handles are made --------------------------------------------------------------------------------------------
    def _with(
        self,
        node: Node,
        origins: Mapping[str, Origin],
        site: Site | None,
        parts: Iterable[Expression] = (),
        others: Iterable[Relation] = (),
    ) -> Relation:
        node.schema  # noqa: B018  # names and types are checked here, at the user's line
        sites: dict[Term | Node, Site] = dict(self._sites)
        results = dict(self._results)
        for part in parts:
            for term, written in part._sites.items():
                sites.setdefault(term, written)
        for other in others:
            sites.update(other._sites)
            add_results(results, other._results)
        place(sites, node, site)
        return Relation(node, origins, sites, results)

    def _tie(self, tie: Column | None, where: str) -> str | None:
        """The name of the attribute that orders rows of one instant."""
        if isinstance(tie, list | tuple | set):
            raise QueryError(
                "TG114",
                f"tie={shown(tie)} is not one attribute",
                hint='one orders the rows of an instant: make it of several, r.with_(n=r.a * 1000 + r.b), and tie="n"',
            )
        return None if tie is None else self._name_of(tie, where)

    def _column(self, column: object) -> Expression:
        if isinstance(column, str):
            return self._attribute(column)
        if callable(column):
            column = applied(column, self)
        if isinstance(column, list | tuple | set):
            raise QueryError(
                "TG114", f"{shown(column)} is not taken whole", hint="give its parts one by one: f(*parts)"
            )
        part = self._as_selected(to_expression(column))
        for name, read in part._reads.items():
            if name not in self._origins:
                raise unknown_attribute(name, self.schema)
            if self._origins[name] is not read.origin:
                raise QueryError(
                    "TG113",
                    f"{name!r} here is an attribute of {read.origin.label}, not of this relation",
                    hint="take the attribute from the relation that it is used in, or join the two",
                )
        return part

    def _as_selected(self, part: Expression) -> Expression:
        """The expression with attributes that a `select` took the prefix of, under the names that they have since."""
        names = {
            name: short
            for name, read in part._reads.items()
            if name not in self._origins and self._origins.get(short := name.rpartition(".")[2]) is read.origin
        }
        if not names:
            return part
        reads = {names.get(name, name): read for name, read in part._reads.items()}
        sites = {rename_attributes(term, names): site for term, site in part._sites.items()}
        return Expression(rename_attributes(part._term, names), part._type, reads, sites)

    def _condition(self, condition: object) -> Expression:
        check_condition(condition)
        return self._column(condition)

    def _name_of(self, column: object, where: str) -> str:
        part = self._column(column)
        if not isinstance(part._term, Attr):
            raise QueryError(
                "TG114",
                f"{where} takes attributes, but {part!r} is computed",
                hint=f'give it a name first, with_(key=...), and then {where} by "key"',
            )
        return part._term.name

    def _columns(
        self, attributes: Iterable[object], named: Mapping[str, object], site: Site | None, where: str
    ) -> tuple[Relation, list[tuple[str, str]], list[Expression]]:
        """The relation extended by what must be computed, the columns as (name, attribute that holds it), all parts."""
        parts: list[Expression] = []
        asked: list[tuple[str, Expression]] = []
        for attribute in attributes:
            part = self._column(attribute)
            if not isinstance(part._term, Attr):
                raise QueryError(
                    "TG114", f"{shown(part)} has no name in {where}", hint=f"give it one: {where}(name=...)"
                )
            asked.append((part._term.name, part))
        proper = proper_prefixes(self._node)
        short = [*(short_name(name, proper) for name, _ in asked), *named]
        asked = [
            (brief if short.count(brief) == 1 else name, part)
            for brief, (name, part) in zip(short, asked, strict=False)
        ]
        asked += [(checked_name(name, "an attribute"), self._column(column)) for name, column in named.items()]
        node, columns, used = self._node, [], set[str]()
        sites = dict(self._sites)
        for name, part in asked:
            parts.append(part)
            source = part._term.name if isinstance(part._term, Attr) else None
            if source is None or source in used:
                source = free_name(name, {*node.schema, *used})
                node = Imbed(node, source, part._term)
                place(sites, node, site)
            used.add(source)
            columns.append((name, source))
        names = [name for name, _ in columns]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise QueryError(
                "TG103", f"{where} gives {twice!r} twice", hint="each result attribute needs a name of its own"
            )
        origins = {name: self._origins.get(name) or Origin(f"this {where}") for name in node.schema}
        return Relation(node, origins, sites, self._results), columns, parts

    def _kept_origins(self, columns: Iterable[tuple[str, str]]) -> dict[str, Origin | None]:
        """Of attributes that keep their names, prefixes aside, where they come from."""
        proper = proper_prefixes(self._node)
        return {
            out: self._origins.get(source) if out in (source, short_name(source, proper)) else None
            for out, source in columns
        }

    def _short_names(self) -> tuple[tuple[str, str], ...]:
        names = self.schema.names
        proper = proper_prefixes(self._node)
        short = [short_name(name, proper) for name in names]
        return tuple((n, s) for n, s in zip(names, short, strict=True) if n != s and short.count(s) == 1)

    def _unqualified(self, site: Site | None = None) -> Relation:
        pairs = self._short_names()
        if not pairs:
            return self
        new = dict(pairs)
        origins = {new.get(name, name): origin for name, origin in self._origins.items()}
        return self._with(Rename(self._node, pairs), origins, site)


class Prefixed:
    """The attributes of a relation that have a prefix, such as those of one situation of a match: `matches.Fog.ts`."""

    __slots__ = ("_prefix", "_relation")

    def __init__(self, relation: Relation, prefix: str) -> None:
        self._relation, self._prefix = relation, prefix

    def __repr__(self) -> str:
        return f"attributes of {self._prefix}: {', '.join(self._names())}"

    def __getitem__(self, name: str) -> Expression:
        return self._relation[f"{self._prefix}.{name}"]

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("_"):
            raise AttributeError(name)
        with Here() as site:
            try:
                return self._relation._attribute(f"{self._prefix}.{name}")
            except QueryError as error:
                raise UnknownAttributeError.of(error.at(site).problems) from None

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._names()})

    def _names(self) -> list[str]:
        sign = f".{self._prefix}."
        return [f".{full}".rpartition(sign)[2] for full in self._relation.schema if sign in f".{full}"]


def _no_name(given: object) -> QueryError:
    if isinstance(given, int) and given == 0:  # what a loop asks first of an object without __iter__
        return QueryError(
            "TG118",
            "rows of a relation are not gone through: they come while the program runs",
            hint='read results: for row in tg.program(Out=r).run({...})["Out"]',
        )
    chooses = isinstance(given, Expression) and given._type == BOOLEAN
    hint = RELATION_METHODS["filter"] if chooses else 'write relation["time"]'
    return QueryError("TG114", f"attributes have names, not {shown(given)}", hint=hint)


#: A condition on rows: an expression, or a function from the relation to one.
Condition = Expression | Callable[[Relation], Expression]
#: A condition on pairs of rows: an expression, or a function from both relations to one.
Condition2 = Expression | Callable[[Relation, Relation], Expression]


@called()
def product(*relations: Relation) -> Relation:
    """Every combination of rows of the relations; follow it with where(...).

    The planner makes joins of both. An attribute name that two of them have is refused (TG103): name the relations with
    `as_`.

    From the papers: TSA Def. 16.

    Examples:
        >>> show(tg.product(o, p).where(*in_time).select(o.customer, o.ordered, p.paid))
        Ada, 2026-03-02 12:00:00+00:00, 2026-03-02 12:10:00+00:00
    """
    with Here() as site:
        if not relations:
            raise QueryError("TG114", "a product needs at least one relation", hint="write tg.product(a, b)")
        for relation in relations:
            _require_relation(relation, "product")
        combined = relations[0]
        for other in relations[1:]:
            origins = joined_origins(combined.schema, combined._origins, other.schema, other._origins)
            combined = combined._with(Product(combined._node, other._node), origins, site, (), (other,))
        return combined


def _progressing(node: Node) -> str | None:
    """The instant that rows are best ordered by: the one that says when a row of an ordered operator is complete, where
    the relation has it.
    """
    below = node
    while isinstance(below, Select | Project):
        below = below.input
    if isinstance(below, OrderedNode) and below.completed_by in node.schema.temporal:
        return below.completed_by
    return next(iter(node.schema.temporal), None)


def _require_relation(value: object, where: str) -> None:
    if not isinstance(value, Relation):
        raise QueryError("TG114", f"{where} got {what_else(value)}", hint="give it a stream, a table or a query")
