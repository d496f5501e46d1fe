"""What users of other libraries write, and how it is said here; the nearest names for what is merely misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tidegate.algebra.allen import Allen

_WHERE = "rows are chosen with where(r.x > 5)"
_GROUP = 'groups are group_by("x").agg(n=tg.count())'
_WITH = "attributes are computed with with_(y=r.x + 1)"
_AGGREGATE = "aggregates belong to groups: group_by(...).agg(n=tg.count(), top=tg.max(r.x))"
_NO_ORDER = "rows have no order; tg.first(r.x, by=r.time) and tg.last(...) take the earliest and latest of a group"
_JOIN = "rows are paired with join(other, a.x == b.x, how=...)"
_PRODUCT = "all pairs are tg.product(a, b)"
_UNION = "rows are put together with union(other)"
_WINDOW = "windows are keys of groups: group_by(w=tg.tumbling(r.time, tg.minutes(5))).agg(...)"
_RUN = "rows appear where the program runs: tg.program(Out=r).run({...})"
_EXPLAIN = "programs are explained: tg.program(Out=r).explain()"
_SITUATIONS = 'situations are r.partition_by("x").derive(Busy=tg.situation(r.load > 5))'
_TIMELINE = "situations and matches are drawn by tg.program(Out=r).timeline({...})"
_PROGRESS = (
    'progress is declared where the stream is: tg.stream(..., progress="time"), and how late rows are by its source'
)

#: Methods of relations in pandas, Polars, Spark and Flink that are called otherwise here.
RELATION_METHODS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("filter", "query", "loc"), _WHERE)
    | dict.fromkeys(
        ("groupby", "groupBy", "groupby_dynamic", "group_by_dynamic", "partitionBy", "key_by", "keyBy"), _GROUP
    )
    | dict.fromkeys(
        ("agg", "aggregate", "count", "sum", "mean", "avg", "min", "max", "first", "last", "reduce"), _AGGREGATE
    )
    | dict.fromkeys(
        ("withColumn", "withColumns", "with_columns", "with_column", "assign", "map", "apply", "add_columns"), _WITH
    )
    | dict.fromkeys(
        ("withColumnRenamed", "withColumnsRenamed", "rename_columns"), 'attributes are renamed with rename(old="new")'
    )
    | dict.fromkeys(("limit", "head", "tail", "take", "fetch", "top", "sample", "nlargest", "nsmallest"), _NO_ORDER)
    | dict.fromkeys(("order_by", "orderBy", "sort", "sort_by", "sort_values", "sortBy"), _NO_ORDER)
    | dict.fromkeys(("alias", "set_alias", "named"), 'relations are named with as_("a"): a.x, a.time')
    | dict.fromkeys(("unionAll", "union_all", "unionByName", "concat", "append", "vstack"), _UNION)
    | dict.fromkeys(("crossJoin", "cross_join", "cross"), _PRODUCT)
    | dict.fromkeys(("merge", "inner_join", "join_asof", "merge_asof", "interval_join", "join_where"), _JOIN)
    | dict.fromkeys(("left_outer_join", "leftOuterJoin", "outer_join"), "left_join(other, ...) pads with NULLs")
    | dict.fromkeys(
        ("drop_duplicates", "dropDuplicates", "unique", "dropDuplicatesWithinWatermark"), "each row once is distinct()"
    )
    | dict.fromkeys(
        ("subtract", "exceptAll", "except_", "minus", "minus_all"), "rows that the other lacks are difference(other)"
    )
    | dict.fromkeys(("intersect", "intersectAll", "intersection"), "rows that the other has are semi_join(other, ...)")
    | dict.fromkeys(("columns", "dtypes", "printSchema", "collect_schema"), "attributes and types are relation.schema")
    | dict.fromkeys(("window", "windowed", "tumble", "resample", "rolling", "over"), _WINDOW)
    | dict.fromkeys(("collect", "show", "toPandas", "to_pandas", "execute", "write", "writeStream", "to_pylist"), _RUN)
    | dict.fromkeys(("run", "start", "session", "print", "display", "rows", "to_polars", "results"), _RUN)
    | dict.fromkeys(("explain", "describe", "plan", "check"), _EXPLAIN)
    | dict.fromkeys(("derive", "situation", "situations", "match_recognize"), _SITUATIONS)
    | dict.fromkeys(("plot", "draw", "timeline"), _TIMELINE)
    | {"cast": 'values are cast one by one: r.x.cast("double")'}
    | dict.fromkeys(("withWatermark", "with_watermark", "assign_timestamps_and_watermarks"), _PROGRESS)
    | dict.fromkeys(("fillna", "fill_null", "fill_nan"), "NULLs are replaced with with_(y=tg.coalesce(r.x, 0))")
    | dict.fromkeys(("dropna", "drop_nulls", "drop_nans"), "rows without NULL are where(r.x.is_not_null())")
)

#: Functions that are called otherwise here, or are no functions of the module.
FUNCTIONS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("col", "column"), "attributes are those of a relation: r.x")
    | dict.fromkeys(("mean", "average"), "did you mean tg.avg?")
    | dict.fromkeys(("window", "tumble", "session"), _WINDOW)
    | dict.fromkeys(("expr", "sql"), "conditions are written with operators: (r.x > 5) & (r.y == 1)")
    | {name: f"write from tidegate import {name}" for name in ("testing", "metrics")}
    | dict.fromkeys(("explain", "run"), "programs have it: tg.program(Out=r)")
    | dict.fromkeys(
        ("var", "std", "stddev", "stdev"), "compute it from tg.sum(r.x * r.x), tg.sum(r.x) and tg.count(r.x)"
    )
    | {name: f"relations have it: r.{name}(...)" for name in ("join", "left_join", "semi_join", "anti_join", "where")}
    | {one.value: f"situations have it: A.{one.value}(B)" for one in Allen}
    | dict.fromkeys(("plot", "draw"), _TIMELINE)
)

#: What other libraries ask of aggregates.
AGGREGATE_METHODS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("filter", "where", "when"), "aggregate what the condition lets through: tg.sum(tg.when(r.ok, r.x))")
    | dict.fromkeys(("alias", "as_", "named", "name"), "an aggregate gets its name in agg: .agg(n=tg.count())")
    | dict.fromkeys(("over", "partition_by"), _GROUP)
)

#: What other libraries do to groups at once.
GROUP_METHODS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("count", "size", "len"), "write .agg(n=tg.count())")
    | {name: f"write .agg(total=tg.{name}(r.x))" for name in ("sum", "try_sum", "min", "max", "avg", "count_distinct")}
    | dict.fromkeys(("mean", "average"), "write .agg(mean=tg.avg(r.x))")
    | {name: f"write .agg(x=tg.{name}(r.x, by=r.time))" for name in ("first", "last")}
    | dict.fromkeys(
        ("where", "having", "filter"), "groups are chosen afterwards: .agg(n=tg.count()).where(lambda g: g.n > 5)"
    )
)


def function_hint(name: str, functions: Iterable[str]) -> str:
    """How what is asked of the module is written here, or which functions have nearly that name; empty where none does."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    near = nearest(name, functions)
    return f"did you mean {' or '.join(f'tg.{one}' for one in near)}?" if near else ""


def aggregate_hint(name: str) -> str:
    """How what is asked of an aggregate is written here."""
    return AGGREGATE_METHODS.get(name, "an aggregate gets its name in agg(n=...), and is computed with afterwards")


def group_hint(name: str) -> str:
    """How what is asked of groups is written here."""
    return GROUP_METHODS.get(name, "say what each group yields: .agg(n=tg.count())")


def method_hint(name: str, methods: Iterable[str]) -> str:
    """How what is asked for is written here, or which methods have nearly that name; empty where none does."""
    if name in RELATION_METHODS:
        return RELATION_METHODS[name]
    near = nearest(name, methods)
    return f"did you mean {' or '.join(f'{one}(...)' for one in near)}?" if near else ""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Names that are probably meant: of a short one, with which other short ones share most letters, hardly another one is."""
    return difflib.get_close_matches(name.lower(), list(known), n=2, cutoff=0.8 if len(name) < 5 else 0.7)
