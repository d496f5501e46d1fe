"""What users of other libraries write, and how it is said here; the nearest names for what is merely misspelt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tidegate.algebra.allen import Allen
from tidegate.algebra.diagnostics.shown import misspelt, nearest
from tidegate.algebra.functions.aggregates import TABLE

_WHERE = "rows are chosen with where(r.x > 5)"
_GROUP = 'groups are group_by("x").agg(n=tg.count())'
_WITH = "attributes are computed with with_(y=r.x + 1)"
_AGGREGATE = "aggregates belong to groups: group_by(...).agg(n=tg.count(), top=tg.max(r.x))"
_AGGREGATES = "rows of a group become one value: tg.count, tg.sum, tg.median, tg.string_agg; there are no lists"
_NO_ORDER = "rows have no order; tg.first(r.x, by=r.time) and tg.last(...) take the earliest and latest of a group"
_JOIN = "rows are paired with join(other, a.x == b.x, how=...)"
_AS_OF = 'the row nearest in time is a.asof_join(b, by="x", within="10m"), a and b being r.as_("a") and s.as_("b")'
_FULL = (
    "instead of a full join make two results: a.left_join(b, ...) has all rows of a, b.anti_join(a, ...) those of b "
    "without a partner"
)
_PRODUCT = "all pairs are tg.product(a, b)"
_UNION = "rows are put together with union(other)"
_WINDOW = "windows are keys of groups: group_by(w=tg.tumbling(r.time, tg.minutes(5))).agg(...)"
_OVERLAPPING = (
    'windows that overlap are r.windows(tg.hopping("1h", every="10m"), by="key").agg(n=tg.count()); what each row says '
    'of the ten minutes before it is r.over(by="key", order="time", range="10m", mean=tg.avg(r.x))'
)
_CUMULATING = 'windows that grow are r.windows(tg.cumulating("1d", every="1h"), by="key").agg(n=tg.count())'
_COUNTED = 'windows of so many rows are r.windows(tg.rows(5), by="key", tie="number").agg(n=tg.count())'
_ROLLING = (
    "rolling",
    *(f"rolling_{what}" for what in ("mean", "sum", "min", "max", "count", "median", "std", "var", "quantile")),
)
#: What to do about CSV whose columns are not apart by commas.
CONVERT = (
    'other CSV is read with Polars: convert each file, pl.read_csv("in.csv", '
    'separator=";").write_parquet("orders/in.parquet"), and give tg.parquet("orders"); a frame, '
    'tg.source(pl.scan_csv("in.csv", separator=";")), is the whole of a stream'
)
_CONDITIONAL = "write tg.when(condition, then, otherwise)"
_DATE = 'write r.time.to_date(), or tg.floor(r.time, "1d") for the start of the day, which is an instant'
_SESSION = 'sessions are r.windows(tg.session("5m"), by="key").agg(n=tg.count())'
_RUNNING = (
    'what a row says of all rows up to it is r.over(by="key", order="time", total=tg.sum(r.x), n=tg.row_number())'
)
_LARGEST = 'the three largest of each window, end being its end, are r.top_k(3, by="end", order=tg.desc(r.x))'
_NO_ORDER_FIRST = f"{_NO_ORDER}; {_LARGEST}"
_RANK = 'the places of the rows of a window are r.ranked(by="end", order=tg.desc(r.x), place=tg.rank())'
_TICKS = 'instants at equal distances are tg.ticks("1m", r), and those of each key r.ticks("1m", by="key", within="1h")'
_NO_CLOCK = f"a query knows the times of rows alone; {_TICKS}"
_GAPS = 'the last row of each key at equal distances is r.fill_gaps("1m", by="key", within="1h")'
#: A row that the next one replaces would have to be taken back. What there is says when it is the latest one.
_LATEST = (
    'the latest row of each key, at the time of another row, is a.asof_join(r, by="k"), or a.temporal_join(...) where '
    'rows may be deleted; until when each is the latest one is r.versions(by="k"), and which is it every minute '
    'r.fill_gaps("1m", by="k"); of the rows of a group or window it is tg.last(r.x, by=r.time)'
)
_ROW_BEFORE = (
    'the row before is named by r.over(by="key", order="time", before=tg.lag(r.x)), and computed with by that name'
)
#: What goes through the rows of a key in order of time, and keeps something between them.
_STATEFUL = (
    "what goes through rows in order of time and keeps something is an operator of your own, a class derived from "
    'tg.Operator: r.partition_by("k").process(Own(...))'
)
_OWN_FUNCTION = f"values take the methods and functions that there are; {_STATEFUL}"
#: What other libraries compute of a value by a method or by a function.
_COMPUTED: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("log1p",), "write (r.x + 1).ln()")
    | dict.fromkeys(("expm1",), "write r.x.exp() - 1")
    | dict.fromkeys(("cbrt",), "write r.x.power(1 / 3), of what is not negative")
    | dict.fromkeys(
        ("last_day", "month_end", "end_of_month", "eomonth"),
        'write r.time.to_date().truncate("month").add_months(1) - "1 day"',
    )
    | dict.fromkeys(
        ("unix_timestamp", "to_unix_timestamp", "unix_seconds", "to_unixtime", "epoch", "epoch_seconds"),
        'seconds since 1970 are r.time.cast("bigint") // 1_000_000; a query does not know what time it is now',
    )
    | {"unix_millis": 'write r.time.cast("bigint") // 1_000', "unix_micros": 'write r.time.cast("bigint")'}
    | dict.fromkeys(
        ("from_unixtime", "from_epoch", "timestamp_seconds", "to_timestamp_ltz"),
        'write (r.x * 1_000_000).cast("timestamp") of seconds since 1970',
    )
    | dict.fromkeys(("timestamp_millis",), 'write (r.x * 1_000).cast("timestamp")')
    | dict.fromkeys(("timestamp_micros",), 'write r.x.cast("timestamp")')
    | dict.fromkeys(
        ("to_json", "json_object", "json_build_object", "struct", "named_struct"),
        "attributes are columns of the results, and rows are not put into one; a text is made with "
        'tg.concat("a=", r.x.cast("string")), and read with r.x.json("$.a")',
    )
)
_STATEFUL_VALUES = (
    *(f"ewm{what}" for what in ("", "_mean", "_std", "_var", "_mean_by")),
    *("ffill", "bfill", "forward_fill", "backward_fill", "interpolate", "expanding", "accumulate", "scan"),
)
_STATEFUL_ROWS = (
    *("process", "scan", "stateful", "stateful_map", "map_groups", "map_batches"),
    *("transformWithState", "transform_with_state", "transformWithStateInPandas", "applyInPandas", "apply_in_pandas"),
    *("applyInPandasWithState", "mapGroupsWithState", "flatMapGroupsWithState"),
)
#: What asks for a row beside this one.
NEIGHBOURS = ("lag", "lead", "shift", "diff", "prev", "previous", "pct_change")
_SEQUENCES = (
    'rows of one relation that follow each other are r.sequences("A B+", by="k", define={"B": lambda m: m.B.x > 5}) or '
    'r.match_recognize("...") as in SQL'
)
_FOLLOWED = (
    "what follows is joined by its time: a.join(b, a.x == b.x, a.time < b.time, b.time <= a.time + tg.minutes(10)); "
    f"what does not follow is anti_join; {_SEQUENCES}"
)
_ALLEN = (
    "relations of periods are between situations, or rows with a start and an end: "
    "relation.as_intervals(...); of events, compare the times: a.time < b.time"
)
_PATTERNS = (
    "patterns of periods are partition_by(...).derive(A=tg.situation(condition), ...) and tg.match(A.before(B), "
    f"within=...); {_SEQUENCES}"
)
_WITHIN = 'a window is that of the match: tg.match(A.overlaps(B), within="5m")'
_RUN = "rows appear where the program runs: tg.program(Out=r).run({...})"
_BATCHES = 'new rows of results go to a function: tg.program(Out=r).session(sinks={"Out": tg.callback(f)}, ...)'
_EXPLAIN = "programs are explained: tg.program(Out=r).explain()"
_SITUATIONS = 'situations are r.partition_by("x").derive(Busy=tg.situation(r.load > 5))'
_RUNS = f"runs of rows for which a condition holds are situations: {_SITUATIONS.removeprefix('situations are ')}"
_TIMELINE = "situations and matches are drawn by tg.program(Out=r).timeline({...})"
_STEPS = ("run", "execute", "flush", "commit", "poll", "process_batch")
_FRAMES = {
    name: name.removeprefix("to_") for name in ("polars", "pandas", "arrow", "to_polars", "to_pandas", "to_arrow")
}
_PROGRESS = (
    'progress is declared where the stream is: tg.stream(..., progress="time"), and how late rows are by its source'
)
_HAVING = "groups are chosen afterwards: .agg(n=tg.count()).where(lambda g: g.n > 5)"
#: Methods of relations in pandas, Polars, Spark and Flink that are called otherwise here.
RELATION_METHODS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("filter", "query", "loc"), _WHERE)
    | {"having": _HAVING}
    | dict.fromkeys(("groupby", "groupBy", "partitionBy", "key_by", "keyBy"), _GROUP)
    | dict.fromkeys(("agg", "aggregate", "count", "sum", "mean", "avg", "min", "max", "reduce"), _AGGREGATE)
    | dict.fromkeys(
        ("withColumn", "withColumns", "with_columns", "with_column", "assign", "map", "apply", "add_columns"), _WITH
    )
    | dict.fromkeys(
        ("withColumnRenamed", "withColumnsRenamed", "rename_columns"), 'attributes are renamed with rename(old="new")'
    )
    | dict.fromkeys(("limit", "head", "tail", "take", "fetch", "sample"), _NO_ORDER_FIRST)
    | dict.fromkeys(("top", "topk", "top_n", "nlargest", "nsmallest", "bottom_k"), _LARGEST)
    | dict.fromkeys(("rank", "dense_rank", "ntile", "qualify"), _RANK)
    | dict.fromkeys(
        ("first", "dropDuplicatesOn", "deduplicate", "unique_by", "dedupe"),
        'the first row of each key is dedup(by="k"), and within="5m" lets the next one through after so long',
    )
    | dict.fromkeys(
        ("last", "latest", "latest_by", "last_by", "keep_last", "most_recent", "toTable", "to_table"),
        _LATEST,
    )
    | dict.fromkeys(("order_by", "orderBy", "sort", "sort_by", "sort_values", "sortBy"), _NO_ORDER)
    | dict.fromkeys(("alias", "set_alias", "named"), 'relations are named with as_("a"): a.x, a.time')
    | dict.fromkeys(("unionAll", "union_all", "unionByName", "concat", "append", "vstack"), _UNION)
    | dict.fromkeys(("crossJoin", "cross_join", "cross"), _PRODUCT)
    | dict.fromkeys(("merge", "inner_join", "interval_join", "join_where"), _JOIN)
    | dict.fromkeys(("join_asof", "merge_asof", "asofJoin", "asof"), _AS_OF)
    | dict.fromkeys(("left_outer_join", "leftOuterJoin", "outer_join"), "left_join(other, ...) pads with NULLs")
    | dict.fromkeys(("full_join", "full_outer_join", "fullOuterJoin"), _FULL)
    | dict.fromkeys(
        ("right_join", "right_outer_join", "rightOuterJoin"), "change the sides: other.left_join(this, ...)"
    )
    | dict.fromkeys(
        ("drop_duplicates", "dropDuplicates", "unique", "dropDuplicatesWithinWatermark"),
        'each row once is distinct(), which looks at all attributes; the first of each key is dedup(by="k")',
    )
    | dict.fromkeys(
        ("subtract", "exceptAll", "except_", "minus", "minus_all"), "rows that the other lacks are difference(other)"
    )
    | dict.fromkeys(("intersect", "intersectAll", "intersection"), "rows that the other has are semi_join(other, ...)")
    | dict.fromkeys(("columns", "dtypes", "printSchema", "collect_schema"), "attributes and types are relation.schema")
    | dict.fromkeys(("window", "windowed", "tumble", "TUMBLE", "resample"), _WINDOW)
    | dict.fromkeys(("upsample", "asfreq", "gapfill", "gap_fill", "time_bucket_gapfill", "locf"), _GAPS)
    | dict.fromkeys(("timer", "date_range", "datetime_range"), _TICKS)
    | dict.fromkeys(("sessions", "session_window", "sessionize"), _SESSION)
    | dict.fromkeys(("foreachBatch", "foreach_batch", "foreach", "for_each", "sink_batches"), _BATCHES)
    | dict.fromkeys(("groupby_dynamic", "group_by_dynamic"), f"{_WINDOW}; tg.floor(r.time, unit) is the start of one")
    | dict.fromkeys((*_ROLLING, "hopping", "sliding", "hop", "slide", "HOP"), _OVERLAPPING)
    | dict.fromkeys(("cumulating", "cumulate", "CUMULATE"), _CUMULATING)
    | dict.fromkeys(("count_window", "countWindow", "length_batch"), _COUNTED)
    | dict.fromkeys(NEIGHBOURS, _ROW_BEFORE)
    | dict.fromkeys((*_STATEFUL_ROWS, *_STATEFUL_VALUES), _STATEFUL)
    | dict.fromkeys(
        (
            "followed_by",
            "followedBy",
            "followedByAny",
            "followed_by_any",
            "notFollowedBy",
            "not_followed_by",
            "next",
            "every",
        ),
        _FOLLOWED,
    )
    | dict.fromkeys((*(relation.value for relation in Allen), "intersects"), _ALLEN)
    | dict.fromkeys(("match", "pattern"), _PATTERNS)
    | dict.fromkeys(("sequence", "seq", "cep"), _SEQUENCES)
    | dict.fromkeys(("collect", "show", "toPandas", "to_pandas", "execute", "write", "writeStream", "to_pylist"), _RUN)
    | dict.fromkeys(("run", "start", "session", "print", "display", "rows", "to_polars", "results"), _RUN)
    | dict.fromkeys(("explain", "describe", "plan", "check"), _EXPLAIN)
    | dict.fromkeys(("derive", "situation", "situations"), _SITUATIONS)
    | dict.fromkeys(("plot", "draw", "timeline"), _TIMELINE)
    | {"cast": 'values are cast one by one: r.x.cast("double")'}
    | dict.fromkeys(("withWatermark", "with_watermark", "assign_timestamps_and_watermarks"), _PROGRESS)
    | dict.fromkeys(("fillna", "fill_null", "fill_nan"), "NULLs are replaced with with_(y=tg.coalesce(r.x, 0))")
    | dict.fromkeys(("dropna", "drop_nulls", "drop_nans"), "rows without NULL are where(r.x.is_not_null())")
)

#: What a period has, by other names.
PERIOD_PARTS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("start", "begin", "since", "start_time", "begin_time"), "a period begins at A.ts")
    | dict.fromkeys(("end", "stop", "until", "end_time"), "a period ends at A.te")
    | dict.fromkeys(("duration", "length", "lasts"), "a period lasts A.te - A.ts")
)

#: Relations of periods by other names.
_PERIOD_RELATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "A.before(B)": ("precedes", "preceded", "followed_by", "followedBy", "then", "earlier"),
        "A.after(B)": ("follows", "preceded_by", "later"),
        "A.meets(B)": ("touches", "adjacent", "adjacent_to"),
        "A.equals(B)": ("coincides", "coincides_with", "same_as", "simultaneous", "cotemporal"),
        "A.contains(B)": ("covers", "includes", "include", "encloses", "surrounds", "overlies"),
        "A.during(B)": ("inside", "covered_by", "included_in", "while_"),
        "A.starts(B)": ("begins", "start_with", "starts_with"),
        "A.finishes(B)": ("ends", "end_with", "ends_with"),
        "A.intersects(B)": ("overlapping", "overlaps_any", "concurrent", "concurrent_with", "overlaps_with"),
        "A.before(B) | A.after(B)": ("disjoint", "outside", "apart"),
    }
)
PERIOD_RELATIONS: Mapping[str, str] = MappingProxyType(
    {name: f"of periods write {ours}" for ours, names in _PERIOD_RELATIONS.items() for name in names}
    | {"within": f"of periods write A.during(B); {_WITHIN}"}
)


_TRUNCATED = (
    'r.time.truncate("month") is the start of the month; of groups, weeks and what is shorter are windows: '
    'r.time.truncate("week"), tg.floor(r.time, "1d")'
)


def _unit_hint(unit: str) -> str:
    return f"a duration is tg.{unit}s(5); the {unit} of an instant is r.time.{unit}()"


_SINKS = (
    "sink",
    *(
        f"{what}_sink"
        for what in ("csv", "json", "ndjson", "file", "kafka", "delta", "iceberg", "console", "print", "memory")
    ),
    *(f"{verb}_{what}" for verb in ("sink", "write") for what in ("parquet", "csv", "json", "ndjson", "delta")),
)

#: Functions that are called otherwise here, or are no functions of the module.
FUNCTIONS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("col", "column"), "attributes are those of a relation: r.x")
    | dict.fromkeys(("mean", "average"), "did you mean tg.avg?")
    | dict.fromkeys(("window", "tumble", "TUMBLE"), _WINDOW)
    | dict.fromkeys((*_ROLLING, "hopping", "sliding", "hop", "slide", "HOP"), _OVERLAPPING)
    | dict.fromkeys(("cumulating", "cumulate", "CUMULATE"), _CUMULATING)
    | dict.fromkeys(("count_window", "countWindow", "length_batch"), _COUNTED)
    | dict.fromkeys(("len", "size"), "did you mean tg.count?")
    | dict.fromkeys(("n_unique", "nunique", "countDistinct"), "did you mean tg.count_distinct?")
    | dict.fromkeys(
        ("approx_n_unique", "approx_count_distinct", "approxCountDistinct", "hll", "hll_count_distinct"),
        "did you mean tg.approx_distinct?",
    )
    | dict.fromkeys(
        ("approx_percentile", "percentile_approx", "tdigest", "ddsketch"), "did you mean tg.approx_quantile?"
    )
    | dict.fromkeys(("countIf", "sum_if"), "every aggregate takes a condition: tg.sum(r.x, filter=r.ok)")
    | dict.fromkeys(("every_value", "bool_all", "logical_and", "all"), "did you mean tg.bool_and?")
    | dict.fromkeys(("some", "bool_any", "logical_or", "any"), "did you mean tg.bool_or?")
    | dict.fromkeys(("argmin", "min_by", "argMin"), "did you mean tg.arg_min?")
    | dict.fromkeys(("argmax", "max_by", "argMax"), "did you mean tg.arg_max?")
    | dict.fromkeys(("date", "to_date"), _DATE)
    | dict.fromkeys(("if_else", "iff", "case", "case_when"), _CONDITIONAL)
    | dict.fromkeys(("session_window", "sessionize", "SESSION"), _SESSION)
    | dict.fromkeys(("now", "current_timestamp", "current_date"), _NO_CLOCK)
    | dict.fromkeys(("timer", "date_range", "datetime_range", "generate_series"), _TICKS)
    | dict(_COMPUTED)
    | {"least": "did you mean tg.min(x, y)?", "greatest": "did you mean tg.max(x, y)?"}
    | {"str": 'text of a value is r.x.cast("string"), and its methods are those of the value: r.x.upper()'}
    | {"dt": 'its methods are those of the value: r.time.hour(); tg.floor(r.time, "1h") is the start of the hour'}
    | dict.fromkeys(("pi", "e"), "write a number: math.pi")
    | dict.fromkeys(("ntile", "percent_rank", "cume_dist"), _RANK)
    | dict.fromkeys(("top_k", "topk", "nlargest", "nsmallest"), _LARGEST)
    | {"asc": "values order from the least on: order=r.x; from the greatest on it is tg.desc(r.x)"}
    | dict.fromkeys(("merge_asof", "join_asof"), _AS_OF)
    | dict.fromkeys(("latest", "most_recent", "keep_last"), _LATEST)
    | dict.fromkeys(("cum_sum", "cumsum", "first_value", "last_value", "nth_value"), _RUNNING)
    | {unit: _unit_hint(unit) for unit in ("second", "minute", "hour", "day")}
    | {"date_trunc": _TRUNCATED}
    | dict.fromkeys(("datediff", "date_diff", "dateDiff"), "did you mean tg.days_between?")
    | dict.fromkeys(("interval", "weeks", "to_duration"), 'durations are text or tg.days(7): r.time + "5m"')
    | dict.fromkeys(("collect_list", "collect_set", "array_agg"), _AGGREGATES)
    | dict.fromkeys(("percentile", "percentile_cont"), "did you mean tg.quantile?")
    | dict.fromkeys(("group_concat", "listagg", "str_concat"), "did you mean tg.string_agg?")
    | {f"{verb}_{name}": f"did you mean tg.{name}?" for verb in ("read", "scan") for name in ("parquet", "csv", "json")}
    | dict.fromkeys(
        _SINKS, 'results go to tg.parquet_sink("a directory"), or to what tg.callback(f) does with new rows'
    )
    | dict.fromkeys(
        ("kafka", "delta", "iceberg"), "a streaming DataFrame of Spark is a source, too: start(spark, sources=...)"
    )
    | dict.fromkeys(("expr", "sql"), "conditions are written with operators: (r.x > 5) & (r.y == 1)")
    | dict.fromkeys(NEIGHBOURS, _ROW_BEFORE)
    | dict.fromkeys((*_STATEFUL_ROWS, *_STATEFUL_VALUES), _STATEFUL)
    | dict.fromkeys(("followed_by", "not_followed_by"), _FOLLOWED)
    | {"every": f"of the rows of a group it is tg.bool_and; {_FOLLOWED}"}
    | {"pattern": _PATTERNS}
    | dict.fromkeys(("sequences", "match_recognize", "sequence", "seq"), _SEQUENCES)
    | {name: f"write from tidegate import {name}" for name in ("testing", "metrics")}
    | dict.fromkeys(("explain", "run"), "programs have it: tg.program(Out=r)")
    | dict.fromkeys(("var", "var_samp"), "did you mean tg.variance?")
    | dict.fromkeys(("std", "stdev", "stddev_samp"), "did you mean tg.stddev?")
    | {name: f"relations have it: r.{name}(...)" for name in ("join", "left_join", "semi_join", "anti_join", "where")}
    | {one.value: f"situations have it: A.{one.value}(B)" for one in Allen}
    | dict.fromkeys(("plot", "draw"), _TIMELINE)
)

#: Methods of values by what SQL, Spark, Polars, pandas, NumPy and Python call them.
_OTHER_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "asin()": ("arcsin",),
        "acos()": ("arccos",),
        "atan()": ("arctan",),
        "atan2(y)": ("arctan2",),
        "sign()": ("signum", "sgn"),
        "trunc()": ("truncate_number", "fix"),
        "is_nan()": ("isnan", "isNaN"),
        "power(y)": ("pow",),
        "bit_and(y)": ("bitwise_and", "bitwiseAND", "bitand"),
        "bit_or(y)": ("bitwise_or", "bitwiseOR", "bitor"),
        "bit_xor(y)": ("bitwise_xor", "bitwiseXOR", "xor", "bitxor"),
        "bit_not()": ("bitwise_not", "bitwiseNOT", "bitnot"),
        "shift_left(bits)": ("shiftleft", "shiftLeft", "bit_shift_left"),
        "shift_right(bits)": ("shiftright", "shiftRight", "bit_shift_right"),
        "trim()": ("strip", "strip_chars", "btrim"),
        "ltrim()": ("lstrip", "strip_chars_start", "trim_start"),
        "rtrim()": ("rstrip", "strip_chars_end", "trim_end"),
        'lpad(8, "0")': ("pad_start", "zfill", "rjust"),
        "rpad(8)": ("pad_end", "ljust"),
        'split_part(",", 1)': ("split", "splitn", "split_exact", "substring_index"),
        "position(part)": ("strpos", "instr", "locate", "find", "index", "charindex", "indexOf"),
        "initcap()": ("capitalize", "title", "to_titlecase"),
        "levenshtein(y)": ("edit_distance", "editdist3", "levenshtein_distance"),
        'regexp_like("...")': ("rlike", "match", "regexp", "regexp_matches", "similar_to"),
        'regexp_extract("...", 1)': ("extract", "regexp_substr"),
        'regexp_replace("...", new)': ("replace_all", "regex_replace"),
        'lower().like("...")': ("ilike",),
        "sha256()": ("sha2", "sha", "hash", "sha_256"),
        'json("$.a")': (
            "get_json_object",
            "json_extract",
            "json_extract_string",
            "json_path_match",
            "json_value",
            "json_query",
        ),
        "to_uuid()": ("uuid", "as_uuid"),
        "length()": ("len_chars", "char_length", "character_length"),
        "day_of_year()": ("dayofyear", "ordinal_day", "doy", "day_of_the_year"),
        "day_of_week()": ("dayofweek", "weekday", "isodow"),
        "week()": ("weekofyear", "week_of_year", "isoweek"),
        "week_year()": ("iso_year", "isoyear", "yearofweek"),
        'truncate("month")': ("month_start", "start_of_month", "date_trunc", "trunc_date"),
        "add_months(1)": ("offset_by", "plus_months", "date_add_months"),
        'to_local("Europe/Berlin")': ("from_utc_timestamp", "convert_time_zone", "tz_convert", "at_time_zone"),
        'from_local("Europe/Berlin")': ("to_utc_timestamp", "replace_time_zone", "tz_localize"),
        'format("%d.%m.%Y")': ("strftime", "date_format", "dt_strftime"),
        'cast("string"), or r.time.format("%d.%m.%Y")': (
            "to_char",
            "to_string",
            "to_str",
            "to_text",
            "as_string",
            "to_varchar",
        ),
        'round(2).cast("string")': ("format_number", "format_string", "to_fixed"),
        "substring(r.x.length() - 2, 3)": ("right", "tail"),
        'parse_timestamp("%d.%m.%Y")': ("strptime", "to_datetime", "str_to_date", "parse_datetime"),
        "upper()": ("to_uppercase", "toupper", "ucase"),
        "lower()": ("to_lowercase", "tolower", "lcase"),
        "substring(1, n)": ("slice", "substr", "left", "head"),
        "starts_with(y)": ("startswith", "startsWith"),
        "ends_with(y)": ("endswith", "endsWith"),
        "is_null()": ("isnull", "isNull", "isna"),
        "is_not_null()": ("notnull", "isNotNull", "notna"),
    }
)
METHODS_CALLED_OTHERWISE: Mapping[str, str] = MappingProxyType(
    {name: f"write r.x.{ours}" for ours, names in _OTHER_NAMES.items() for name in names}
)

#: What other libraries ask of values.
VALUE_METHODS: Mapping[str, str] = MappingProxyType(
    dict(METHODS_CALLED_OTHERWISE)
    | dict(_COMPUTED)
    | dict.fromkeys(
        ("alias", "label", "named", "name", "as_"), "a value gets its name where it is computed: select(y=r.x + 1)"
    )
    | dict.fromkeys(("str",), "its methods are those of the value: r.x.upper(), r.x.contains(...)")
    | dict.fromkeys(
        ("dt",),
        'its methods are those of the value: r.time.hour(); tg.floor(r.time, "1h") is the start of the hour; '
        "whole minutes of a duration are (r.end - r.begin).div(tg.minutes(1))",
    )
    | dict.fromkeys(("date",), _DATE)
    | dict.fromkeys(
        ("total_seconds", "total_minutes", "total_hours", "total_days", "seconds", "minutes", "hours"),
        (
            "durations are divided by durations: (r.end - r.begin) / tg.minutes(1), or .div(tg.minutes(1)) for "
            "whole minutes"
        ),
    )
    | dict.fromkeys(NEIGHBOURS, _ROW_BEFORE)
    | dict.fromkeys(_STATEFUL_VALUES, _STATEFUL)
    | dict.fromkeys(("over", "cum_sum", "cumsum", "row_number"), _RUNNING)
    | dict.fromkeys(("rle", "rle_id"), _RUNS)
    | dict.fromkeys(("rank", "dense_rank"), _RANK)
    | dict.fromkeys(_ROLLING, _OVERLAPPING)
    | dict.fromkeys(("asc", "sort"), _NO_ORDER)
    | {"desc": "it is a function, inside top_k and ranked: order=tg.desc(r.x)"}
    | {"within": _WITHIN}
    | dict.fromkeys(("apply", "map", "map_elements", "udf"), _OWN_FUNCTION)
    | {"clip": "write tg.max(low, tg.min(r.x, high))"}
    | {"least": "it is a function: tg.min(r.x, y)", "greatest": "it is a function: tg.max(r.x, y)"}
    | dict.fromkeys(("mean", "average"), "it is a function: tg.avg(...)")
    | {name: f"it is a function: tg.{ours}(...)" for name, ours in (("std", "stddev"), ("var", "variance"))}
    | dict.fromkeys(("n_unique", "nunique"), "it is a function: tg.count_distinct(...)")
    | dict.fromkeys(("fill_null", "fillna", "fill_nan", "ifnull"), "write tg.coalesce(r.x, 0)")
    | dict.fromkeys(("astype", "to"), 'write r.x.cast("bigint")')
    | dict.fromkeys(("otherwise", "then"), _CONDITIONAL)
)

#: Kinds of joins by the names of Spark, Polars and pandas.
JOINS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("left_outer", "leftouter"), 'write how="left"')
    | dict.fromkeys(("left_anti", "leftanti"), 'write how="anti"')
    | dict.fromkeys(("left_semi", "leftsemi"), 'write how="semi"')
    | dict.fromkeys(("right", "right_outer", "rightouter"), 'change the sides: other.join(this, ..., how="left")')
    | dict.fromkeys(("outer", "full", "full_outer", "fullouter"), f"how is inner, left, semi or anti; {_FULL}")
    | dict.fromkeys(("cross",), _PRODUCT)
    | dict.fromkeys(("asof",), _AS_OF)
)

LATENESS = (
    'how late rows are is said of the source: tg.parquet("in", delay="10m"), tg.source(None, delay="10m") for '
    "rows that are pushed"
)
#: Keywords that others take and these functions do not.
KEYWORDS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("on", "left_on", "right_on", "using"), "conditions are comparisons: a.x == b.x; ")
    | dict.fromkeys(
        ("watermark", "delay", "late", "lateness"),
        f"{LATENESS}; ",
    )
    | {"within": "a time limit is a condition: a.time < b.time, b.time <= a.time + tg.minutes(10); "}
    | dict.fromkeys(("mode", "outputMode", "output_mode"), "rows are final, and always added; ")
    | dict.fromkeys(("sep", "separator", "delimiter", "encoding", "header", "has_header", "skip_rows"), f"{CONVERT}; ")
)

#: Keywords of a method that mean something else than with the others.
METHOD_KEYWORDS: Mapping[tuple[str, str], str] = MappingProxyType(
    dict.fromkeys(
        (("asof_join", name) for name in ("on", "using", "left_by", "right_by", "tolerance")),
        'equal keys are by="k", or by=[("k", "l")] of two names; the instants are left_on="time", right_on="at", the '
        'limit is within="10m"; ',
    )
    | {("run", "close_open"): 'an instant after all rows ends what is open: close_at="2026-03-02T12:00Z"; '}
    | {("asof_join", "allow_exact_matches"): "strict=True leaves a row at the instant itself out; "}
    | {("asof_join", "strategy"): 'it is direction="backward", "forward" or "nearest"; '}
    | {
        (method, name): f'keys are given without {name}=: x.{method}("k") or x.{method}("k", "l"); '
        for method in ("distinct_on", "partition_by")
        for name in ("by", "key", "keys", "on", "subset")
    }
    | dict.fromkeys(
        ((method, "closed") for method in ("windows", "hopping", "cumulating", "calendar", "landmark")),
        "windows have their end, and not their start; for those with their start and not their end let them go by an "
        'instant one tick later, r.with_(at=r.time + "1us").windows(..., order="at") (+ 1 of integers and dates); ',
    )
    | {("tumbling", "closed"): "these windows have their start, and not their end; "}
)

#: What other libraries call the options of `over`.
OVER_OPTIONS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("partition_by", "partition", "keys", "key", "group_by"), "by")
    | dict.fromkeys(("order_by", "sort", "sort_by"), "order")
)

#: What others call the options of `sequences`.
SEQUENCE_OPTIONS: Mapping[str, str] = MappingProxyType(
    dict(OVER_OPTIONS)
    | dict.fromkeys(("partitions", "key_by"), "by")
    | dict.fromkeys(("window", "timeout", "limit", "duration", "max_duration", "time_limit"), "within")
    | dict.fromkeys(("defines", "definitions", "definition", "conditions"), "define")
    | dict.fromkeys(("match", "mode", "strategy", "contiguity"), "matches")
    | dict.fromkeys(("after_match", "after_match_skip", "skip_strategy", "skip_to"), "skip")
    | {"rows_per_match": "rows", "subset": "subsets"}
)
#: What each of these options takes.
SEQUENCE_VALUES: Mapping[str, str] = MappingProxyType(
    {
        "by": 'by="k"',
        "order": 'order="time"',
        "within": 'within="5m"',
        "define": 'define={"A": lambda m: m.A.x > 5}',
        "matches": 'matches="contiguous", "next", "any" or "preferred"',
        "skip": 'skip="past last row", "next row", "first A" or "last A"',
        "rows": 'rows="one" or "all"',
        "subsets": 'subsets={"AB": ["A", "B"]}',
    }
)
_MEASURES = "measures are keywords: top=lambda m: m.A.x, n=lambda m: m.A.agg(tg.count())"
#: What others say of matches in keywords, and what there is instead.
SEQUENCE_KEYWORDS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("measures", "measure"), _MEASURES)
    | {"emission": "leave it out: a match is reported when no row to come can change it"}
)

#: What other libraries ask of partitions in order of time.
PARTITION_METHODS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(NEIGHBOURS, _ROW_BEFORE)
    | dict.fromkeys(("row_number", "over", "cum_sum", "cumsum"), _RUNNING)
    | dict.fromkeys(("rank", "dense_rank", "ntile"), _RANK)
    | dict.fromkeys((*_STATEFUL_ROWS, *_STATEFUL_VALUES, "map", "apply"), _STATEFUL)
    | dict.fromkeys(("agg", "aggregate", "count", "sum", "mean", "avg", "min", "max", "group_by"), _GROUP)
    | dict.fromkeys(("where", "filter", "select", "with_"), 'it stands before: r.where(r.x > 5).partition_by("k")')
    | dict.fromkeys(("match", "pattern"), _PATTERNS)
    | dict.fromkeys(("sequences", "match_recognize"), _SEQUENCES)
)

#: What other libraries ask of sessions and of the results of a run.
MEMBERS: Mapping[tuple[str, str], str] = MappingProxyType(
    {("Session", name): "a batch is session.step(); session.process() takes all that is there" for name in _STEPS}
    | {("Session", name): f'write session.table("Name").{to}()' for name, to in _FRAMES.items()}
    | {("Results", name): f'write results["Name"].{to}()' for name, to in _FRAMES.items()}
    | {("Results", "table"): 'write results["Name"]'}
    | {
        (
            "Session",
            name,
        ): "rows that were set aside are session.quarantine(), and session.counts says how many there are"
        for name in ("late", "late_rows", "late_events", "rejected", "side_output", "dropped")
    }
    | {("Partitioned", name): hint for name, hint in PARTITION_METHODS.items()}
    | {
        (
            "Session",
            "timeline",
        ): "write program.timeline({...}), or tg.timeline of the results so far: session.table(...)"
    }
    | {
        ("Program", name): "program.explain() shows it, a notebook draws it"
        for name in ("plan", "graph", "svg", "schema")
    }
    | {
        ("Timeline", name): "the last line of a notebook's cell shows it; save(path) makes a page"
        for name in ("show", "plot")
    }
)

#: What other libraries ask of aggregates.
AGGREGATE_METHODS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("filter", "where", "when"), "the condition is said inside: tg.sum(r.x, filter=r.ok)")
    | dict.fromkeys(("alias", "as_", "named", "name"), "an aggregate gets its name in agg: .agg(n=tg.count())")
    | dict.fromkeys(("over", "partition_by"), _GROUP)
    | {"having": _HAVING}
)


def _of_rows(written: str) -> str:
    """An aggregate of the attributes of a relation."""
    return written.replace("(x", "(r.x").replace("by=y", "by=r.time")


#: What other libraries do to groups at once.
GROUP_METHODS: Mapping[str, str] = MappingProxyType(
    {function.value: f"write .agg(total={_of_rows(entry.written)})" for function, entry in TABLE.items()}
    | dict.fromkeys(("count", "size", "len"), "write .agg(n=tg.count())")
    | dict.fromkeys(("mean", "average"), "write .agg(mean=tg.avg(r.x))")
    | dict.fromkeys(("where", "having", "filter"), _HAVING)
)


def function_hint(name: str, functions: Iterable[str], methods: Iterable[str]) -> str:
    """How what is asked of the module is written here, or which functions have nearly that name; empty where none
    does.
    """
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name in methods:
        return f"it is a method of values: r.x.{name}(...)"
    if name in METHODS_CALLED_OTHERWISE:
        return METHODS_CALLED_OTHERWISE[name]
    near = nearest(name, functions)
    if near:
        return f"did you mean {' or '.join(f'tg.{candidate}' for candidate in near)}?"
    methods = [method for method in methods if not method.startswith("_")]
    for meant in misspelt(name, (*FUNCTIONS, *methods, *METHODS_CALLED_OTHERWISE)):
        hint = function_hint(meant, functions, methods)
        return hint if hint.startswith("did you mean") else f"if {meant} is meant: {hint}"
    return ""


def row_value_hint(function: str) -> str:
    """What to do instead of an aggregate in a condition on rows: `first` and `last` may be meant of the row before."""
    named = "give it a name in agg(), and compute with that name in with_() or where() afterwards"
    return f"{named}; {_ROW_BEFORE}" if function in ("first", "last") else named


#: How an aggregate of rows is written, by its name here and elsewhere.
AGGREGATES_OF_ROWS: Mapping[str, str] = MappingProxyType(
    {function.value: _of_rows(entry.written) for function, entry in TABLE.items()}
    | dict.fromkeys(("count", "size", "len"), "tg.count()")
    | dict.fromkeys(("mean", "average"), "tg.avg(r.x)")
)


def matched_rows_hint(function: str, variable: str) -> str:
    """How an aggregate of the rows of a match is written."""
    return f"write m.{variable}.agg({AGGREGATES_OF_ROWS[function]})"


def aggregate_hint(name: str) -> str:
    """How what is asked of an aggregate is written here."""
    return _nearly(name, AGGREGATE_METHODS, "an aggregate gets its name in agg(n=...), and is computed with afterwards")


def group_hint(name: str) -> str:
    """How what is asked of groups is written here."""
    return _nearly(name, GROUP_METHODS, "say what each group yields: .agg(n=tg.count())")


def _nearly(name: str, known: Mapping[str, str], otherwise: str) -> str:
    """The hint on a name, or on one that it is misspelt of."""
    return next((known[spelling] for spelling in (name, *misspelt(name, known)) if spelling in known), otherwise)


#: A condition as it would be text, as other libraries take it.
_COMPARISON = re.compile(r"\s*([a-z_]\w*)\s*(<=|>=|==|=|!=|<|>)\s*(.{1,80}?)\s*", re.IGNORECASE)


def condition_hint(given: object) -> str:
    """How the condition is written for which something else was given: an attribute's name, or the kind of a join."""
    if given in ("inner", "left", "semi", "anti"):
        return f'write how="{given}"'
    if isinstance(given, str) and given in JOINS:
        return JOINS[given]
    if isinstance(given, str) and given.isidentifier():
        return f"write a condition on attributes, such as r.{given} > 5, or a.{given} == b.{given} of two relations"
    if isinstance(given, str) and (comparison := _COMPARISON.fullmatch(given)) is not None:
        name, sign, rest = comparison.groups()
        return (
            f"conditions are made of attributes, not text: write relation.{name} {'==' if sign == '=' else sign} {rest}"
        )
    return "write a condition on attributes, such as relation.time > 5"


def join_hint(how: object) -> str:
    """Which kind of join is meant, or which there are."""
    return (
        JOINS.get(how, "how is inner, left, semi or anti")
        if isinstance(how, str)
        else "how is inner, left, semi or anti"
    )


#: Members of relations that are no methods.
_VALUES = ("schema",)


def method_hint(name: str, methods: Iterable[str], own: Iterable[str] = ()) -> str:
    """How what is asked for is written here, or which methods have nearly that name; empty where none does.

    `own`: methods that only this kind of relation has, which are meant before what other libraries call so.
    """
    if own and name in PERIOD_PARTS:
        return PERIOD_PARTS[name]
    if own and name in PERIOD_RELATIONS:
        return PERIOD_RELATIONS[name]
    near = nearest(name, own)
    if not near and name in RELATION_METHODS:
        return RELATION_METHODS[name]
    near = near or nearest(name, methods)
    if near:
        return f"did you mean {' or '.join(method if method in _VALUES else f'{method}(...)' for method in near)}?"
    meant = misspelt(name, RELATION_METHODS)
    return f"if {meant[0]} is meant: {RELATION_METHODS[meant[0]]}" if meant else ""
