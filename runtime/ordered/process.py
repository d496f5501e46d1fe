"""Operators that users write: their steps over whole shards, what they declare checked, and their tables as state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import polars as pl
import pyarrow as pa

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.ddl import to_schema
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.ordered.derive import tied
from tidegate.algebra.ordered.process import Process, Reach
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import TRUE
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.eval.aggregates.partials import same_zero
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.eval.small.increment import Rows, as_frame
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.ordered.family import Family, Operator, Tables
from tidegate.runtime.ordered.state_tables import KEY, StateTable
from tidegate.runtime.plan.steps import Ordered

#: The first column of all frames that users see.
PARTITION: Final = "partition"
#: Of a kept row: whether it says that its partition has none.
_NONE: Final = "~none"
_TIE: Final = "tie"


@dataclass(frozen=True, slots=True)
class ProcessOperator(Operator):
    """An operator of a user's: `kept` has the rows of its tables, with the keys of their partitions; `changed` those of the
    partitions that the last increment looked at, None before the first.
    """

    ordered: Ordered
    kept: Mapping[str, pl.DataFrame]
    changed: Mapping[str, pl.DataFrame] | None = None

    @property
    def node(self) -> Process:
        assert isinstance(self.ordered.node, Process)
        return self.ordered.node

    def events(self, leaves: Mapping[int, Rows], old: Extended, new: Extended) -> list[Rows]:
        rows = evaluate(self.node.input, {0: as_frame(leaves[self.ordered.leaves[0]])})
        time = pl.col(self.node.time)
        within = [time > old] if isinstance(old, int) else []
        within += [time <= new] if isinstance(new, int) else []
        return [rows.filter(*within) if within else rows]

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[ProcessOperator, pl.DataFrame]:
        rows = as_frame(events[0])
        made = self._stepped(rows, after, until, close_at)
        if self.node.verifies:
            again = self._stepped(rows, after, until, close_at)
            _require_equal(self.node, made, again, "it was called again for the same events and state")
            instants = rows.get_column(self.node.time).unique().sort()
            if len(instants) > 1:
                self._verify_cut(rows, after, until, close_at, made, int(instants[(len(instants) - 1) // 2]))
        return made

    def _verify_cut(
        self, rows: pl.DataFrame, after: Extended, until: Extended, close_at: int | None, made: Stepped, cut: int
    ) -> None:
        """`EvaluationError` TG305 where a step yields or leaves something else in two parts."""
        early = pl.col(self.node.time) <= cut
        first, some = self._stepped(rows.filter(early), after, cut, None)
        last, more = first._stepped(rows.filter(~early), cut, until, close_at)
        parts = (last, pl.concat([some, more]))
        _require_equal(self.node, made, parts, f"its events came in two batches, those up to {cut} and those after")

    def _stepped(self, rows: pl.DataFrame, after: Extended, until: Extended, close_at: int | None) -> Stepped:
        node = self.node
        keys = self._keys(rows, until)
        read = self._numbered(rows, keys)
        _require_order(node, read)
        state = {name: _with_partition(table, keys, list(_columns(node, name))) for name, table in self.kept.items()}
        reach = Reach(_instant(after), _instant(until), close_at)
        made, left = _called(node, read, state, reach, keys.height)
        found = _result(node, made, keys.height, reach)
        result = _with_keys(found, keys, node.keys).select(node.schema.names)
        own = {name: _with_keys(left[name], keys, _key_names(node)) for name in self.kept}
        kept = {
            name: pl.concat([_without(table, keys), own[name].select(table.columns)])
            for name, table in self.kept.items()
        }
        changed = {name: _told(own[name], keys) for name in self.kept}
        return replace(self, kept=kept, changed=changed), result

    def _keys(self, events: pl.DataFrame, until: Extended) -> pl.DataFrame:
        """The partitions that have events, those whose time has come, and all where there are no more events; numbered."""
        names = _key_names(self.node)
        schema = self.node.input.schema
        columns = [
            (same_zero(pl.col(key)) if schema[key].type.kind.value == "double" else pl.col(key)).alias(name)
            for key, name in zip(self.node.keys, names, strict=True)
        ]
        if not names:
            return pl.DataFrame({PARTITION: [0]}, schema={PARTITION: pl.Int64})
        parts = [events.select(columns)]
        wakes = self.node.operator.wakes
        for name, table in self.kept.items():
            if until == INF:
                parts.append(table.select(names))
            elif wakes is not None and wakes[0] == name and isinstance(until, int):
                parts.append(table.filter(pl.col(wakes[1]) <= until).select(names))
        return pl.concat(parts).unique(maintain_order=True).with_row_index(PARTITION).cast({PARTITION: pl.Int64})

    def _numbered(self, events: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
        """The events with the numbers of their partitions, in order."""
        node = self.node
        read = sorted(node.readings[0].attributes - {*node.keys})
        order = [PARTITION, node.time, *(() if node.tie is None else (node.tie,))]
        own = events.rename(dict(zip(node.keys, _key_names(node), strict=True)))
        return _with_partition(own, keys, read).sort(order)

    def untied(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        """Of events that are equal in all that is read one stays; of others with one partition, time and tie none."""
        node, rows = self.node, as_frame(events[0])
        order = [*node.keys, node.time, *(() if node.tie is None else (node.tie,))]
        doubles = [name for name, type_ in rows.schema.items() if type_ == pl.Float64]
        read = rows.with_columns(same_zero(pl.col(name)).alias(name) for name in doubles)
        first = read.select(pl.struct(sorted(node.readings[0].attributes)).is_first_distinct()).to_series()
        distinct = rows.filter(first)
        keep = read.filter(first).select(~pl.struct(order).is_duplicated()).to_series()
        schema = Schema(tuple(node.input.schema[name] for name in rows.columns if name in node.input.schema))
        gone = pl.concat([rows.filter(~first), distinct.filter(~keep)])
        aside = [
            SetAside(_TIE, None, row, schema, tied(row[node.time], schema[node.time].type))
            for row in gone.select(schema.names).iter_rows(named=True)
        ]
        return [distinct.filter(keep)], aside

    def noting(self, noted: list[SetAside] | None) -> ProcessOperator:
        return self

    def emptied(self) -> ProcessOperator:
        return ProcessFamily().start(self.ordered)

    def tables(self) -> dict[str, pa.Table]:
        return {
            name: table.with_columns(pl.lit(value=False).alias(_NONE)).to_arrow()
            for name, table in self.kept.items()
            if table.height
        }

    def changes(self) -> dict[str, pa.Table] | None:
        return None if self.changed is None else {name: rows.to_arrow() for name, rows in self.changed.items()}

    def described(self) -> dict[str, StateTable]:
        return {
            name: StateTable(
                pl.Schema({**table.schema, _NONE: pl.Boolean()}),
                "partition",
                len(self.node.keys),
                empty=pl.col(_NONE),
                needed=(_NONE,),
            )
            for name, table in self.kept.items()
        }

    def counts(self) -> dict[str, int]:
        return {name: table.height for name, table in self.kept.items()}


#: The operator after a step, and the rows that it yields.
Stepped = tuple[ProcessOperator, pl.DataFrame]


class ProcessFamily(Family[Process]):
    node = Process

    def start(self, ordered: Ordered) -> ProcessOperator:
        assert isinstance(ordered.node, Process)
        node = ordered.node
        types = list(polars_schema(Schema(tuple(node.input.schema[key] for key in node.keys))).values())
        keys = dict(zip(_key_names(node), types, strict=True))
        return ProcessOperator(
            ordered, {name: pl.DataFrame(schema={**keys, **_columns(node, name)}) for name in node.operator.tables}
        )

    def load(self, ordered: Ordered, tables: Tables, reached: Extended) -> ProcessOperator:
        fresh = self.start(ordered)
        kept = {name: tables[name].drop(_NONE) if name in tables else none for name, none in fresh.kept.items()}
        return replace(fresh, kept=kept)


def _key_names(node: Process) -> list[str]:
    return [KEY.format(place) for place in range(len(node.keys))]


@lru_cache(maxsize=256)
def _table_schema(columns: str) -> Mapping[str, Any]:
    return polars_schema(to_schema(columns))


def _columns(node: Process, name: str) -> Mapping[str, Any]:
    """The columns of a table beside the keys."""
    return _table_schema(node.operator.tables[name])


def _instant(progress: Extended) -> int | None:
    return progress if isinstance(progress, int) else None


def _with_partition(rows: pl.DataFrame, keys: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The rows of these partitions, with their numbers in place of their keys."""
    names = keys.columns[1:]
    if not names:
        return rows.select(pl.lit(0, pl.Int64).alias(PARTITION), *columns)
    doubles = [name for name in names if rows.schema[name] == pl.Float64]
    own = rows.with_columns(same_zero(pl.col(name)).alias(name) for name in doubles)
    return own.join(keys, on=names, how="inner", nulls_equal=True, maintain_order="left").select(PARTITION, *columns)


def _with_keys(rows: pl.DataFrame, keys: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The rows with the keys of their partitions, by these names, in place of their numbers."""
    named = keys.rename(dict(zip(keys.columns[1:], names, strict=True)))
    joined = rows.join(named, on=PARTITION, how="left", maintain_order="left")
    return joined.select(*names, pl.exclude(PARTITION, *names))


def _without(table: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    names = keys.columns[1:]
    return table.join(keys, on=names, how="anti", nulls_equal=True, maintain_order="left") if names else table.clear()


def _told(rows: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """The rows of the partitions that were looked at, and of those that have none the word of it."""
    names = keys.columns[1:]
    gone = keys.join(rows, on=names, how="anti", nulls_equal=True) if names else keys.head(int(not rows.height))
    missing = [pl.lit(None, type_).alias(name) for name, type_ in rows.schema.items() if name not in names]
    none = gone.select(*names, *missing).select(rows.columns)
    return pl.concat(
        [rows.with_columns(pl.lit(value=False).alias(_NONE)), none.with_columns(pl.lit(value=True).alias(_NONE))]
    )


def _require_order(node: Process, events: pl.DataFrame) -> None:
    """`EvaluationError` TG304 where nothing says which of two events of a partition comes first."""
    order = [PARTITION, node.time, *(() if node.tie is None else (node.tie,))]
    twice = events.filter(pl.struct(order).is_duplicated()) if events.height else events
    if twice.height:
        raise tied(twice.get_column(node.time)[0], node.input.schema[node.time].type)


def _called(
    node: Process, events: pl.DataFrame, state: Mapping[str, pl.DataFrame], reach: Reach, partitions: int
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """What the user's step yields, its tables of the declared columns; `EvaluationError` TG305 for anything else."""
    what = type(node.operator).__name__
    try:
        rows, left = _any(node.operator.step(events, state, reach))
    except Exception as error:
        raise EvaluationError("TG305", f"step of {what} failed: {type(error).__name__}: {error}") from error
    if not isinstance(rows, pl.DataFrame) or not isinstance(left, Mapping):
        raise _wrong(what, f"step returned {shown((type(rows).__name__, type(left).__name__))}, not rows and tables")
    if unknown := sorted({*left} - {*node.operator.tables}):
        raise _wrong(what, f"step returned a table {unknown[0]!r} that it does not declare")
    tables = {}
    for name in node.operator.tables:
        columns = {PARTITION: pl.Int64(), **_columns(node, name)}
        table = left[name] if name in left else pl.DataFrame(schema=columns)
        tables[name] = _conforming(what, f"table {name!r}", table, columns)
        _check_partitions(what, f"table {name!r}", tables[name], partitions)
    return rows, tables


def _require_equal(node: Process, made: Stepped, other: Stepped, when: str) -> None:
    """`EvaluationError` TG305 where two ways of doing a step differ, in whatever order their rows are."""
    (operator, rows), (its, others) = made, other
    compared = [
        ("rows", rows, others),
        *((f"rows of table {n!r}", operator.kept[n], its.kept[n]) for n in operator.kept),
    ]
    for what, one, two in compared:
        if not one.sort(one.columns).equals(two.sort(two.columns)):
            raise _wrong(
                type(node.operator).__name__,
                f"step {'yields' if what == 'rows' else 'keeps'} other {what} when {when}: {_difference(one, two)}",
            )


def _difference(one: pl.DataFrame, two: pl.DataFrame) -> str:
    """A row that only one of them has, or has more often."""
    fewer, more = (Counter(frame.iter_rows()) for frame in (one, two))
    row, how = next(((row, "not") for row in fewer - more), None) or next((row, "only") for row in more - fewer)
    return f"{shown(dict(zip(one.columns, row, strict=True)))} is {how} there then"


def _result(node: Process, rows: pl.DataFrame, partitions: int, reach: Reach) -> pl.DataFrame:
    """The rows as declared; `EvaluationError` TG305 for one that is complete too early or too late, or of which a relation is not true."""
    what, schema = type(node.operator).__name__, node.result.schema
    found = _conforming(what, "its result", rows, {PARTITION: pl.Int64(), **polars_schema(schema)})
    _check_partitions(what, "its result", found, partitions)
    for attribute in schema.attributes:
        if not attribute.nullable and found.get_column(attribute.name).null_count():
            raise _wrong(what, f"a row has no {attribute.name}, which is declared not null")
    at = pl.col(node.completed_by)
    late = [at <= reach.after] if reach.after is not None else []
    late += [at > reach.until] if reach.until is not None else []
    for wrong in late:
        if (bad := found.filter(wrong)).height:
            raise _wrong(
                what,
                f"a row is complete at {node.completed_by} = {bad.get_column(node.completed_by)[0]}, "
                f"and this step is about instants after {reach.after} and up to {reach.until}",
            )
    if node.result.relations != TRUE and found.height:
        holds = evaluated(found, compile_term(node.result.relations, schema)).to_series()
        if not holds.fill_null(value=False).all():
            bad_row = found.filter(~holds.fill_null(value=False)).row(0, named=True)
            raise _wrong(what, f"a declared relation does not hold of the row {shown(bad_row)}")
    return found


def _conforming(what: str, where: str, rows: Any, columns: Mapping[str, Any]) -> pl.DataFrame:
    if not isinstance(rows, pl.DataFrame) or {*rows.columns} != {*columns}:
        got = ", ".join(rows.columns) if isinstance(rows, pl.DataFrame) else type(rows).__name__
        raise _wrong(what, f"{where} has the columns {', '.join(columns)}, and step returned {got}")
    try:
        return rows.select(*columns).cast(_any(dict(columns)))
    except pl.exceptions.PolarsError as error:
        raise _wrong(what, f"{where} has other types than declared: {error}") from error


def _check_partitions(what: str, where: str, rows: pl.DataFrame, partitions: int) -> None:
    numbers = rows.get_column(PARTITION)
    if numbers.null_count() or (rows.height and not numbers.is_between(0, partitions - 1).all()):
        raise _wrong(what, f"{where} has a row of a partition that step was not given")


def _any(value: Any) -> Any:
    """What a user's code gives may be anything."""
    return value


def _wrong(what: str, message: str) -> EvaluationError:
    return EvaluationError(
        "TG305", f"{what} breaks what it declares: {message}", hint="correct its step or its declaration"
    )
