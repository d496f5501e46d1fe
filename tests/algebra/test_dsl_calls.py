"""Calls that do not fit a signature, unknown methods and `in`: errors of the query, at the user's line, with a hint."""

from __future__ import annotations

import datetime as dt
import inspect
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.dsl import aggregates

tg_: Any = tg  # for calls that type checkers refuse as well
r: Any = tg.stream("R", "time timestamp, k bigint, s string, w interval day to second", progress="time")
other: Any = tg.stream("Other", "at timestamp, k bigint", progress="at").as_("other")
found: Any = r.partition_by("k").derive(Low=tg.situation(r.s == "low"), High=tg.situation(r.s == "high"))
matches: Any = tg.match(found.Low.before(found.High), within="5m")
# Situations whose keys are not those of `found`.
renamed: Any = r.rename(k="id").partition_by("id").derive(Other=tg.situation(r.s == "low"))
swapped: Any = r.partition_by("s", "k").derive(Other=tg.situation(r.s == "low"))
two_keys: Any = r.partition_by("k", "s").derive(Low=tg.situation(r.s == "low"))
texts: Any = r.select("time", "s", k=r.k.cast("string")).partition_by("k").derive(Other=tg.situation(r.s == "low"))
stays: Any = tg.stream("Stays", "k bigint, begun timestamp, ended timestamp", progress="ended")


@pytest.mark.parametrize(
    ("wrong", "code", "hint"),
    [
        (lambda: tg_.stream("S", "time timestamp"), "TG106", 'progress="time"'),
        (lambda: tg_.result("S", "time timestamp"), "TG106", 'progress="time"'),
        (lambda: tg_.stream("S"), "TG114", "tg.stream(name, schema, progress=..."),
        (lambda: tg_.table("S"), "TG114", "tg.table(name, schema)"),
        (lambda: r.declare(), "TG106", 'progress="time"'),
        (lambda: tg_.first(r.k), "TG132", "by=r.time"),
        (lambda: tg_.last(r.k), "TG132", "by=r.time"),
        (lambda: tg_.last(), "TG132", "tg.sum(r.x)"),
        (lambda: tg_.sum(), "TG132", "tg.sum(r.x)"),
        (lambda: tg_.min(), "TG132", "only count()"),
        (lambda: tg_.max(r.k, by=r.time), "TG114", "tg.max(*arguments, filter=...)"),
        (lambda: r.group_by(r.k).agg(r.k), "TG115", ".agg(n=tg.count())"),
        (lambda: r.group_by(r.k).agg(tg.count()), "TG115", ".agg(n=tg.count())"),
        (lambda: r.where(k=3), "TG114", "x.where(*conditions)"),
        (lambda: r.s.lower(1), "TG114", "x.lower()"),
        (lambda: r.s.cast(5), "TG111", 'x.cast("bigint")'),
        (lambda: tg_.minutes("x"), "TG104", "tg.minutes(5)"),
        (lambda: tg.hours(float("nan")), "TG104", "tg.hours(5)"),
        (lambda: tg_.minutes(r.k), "TG104", "x * tg.minutes(1)"),
        (lambda: tg_.duration(5), "TG104", "tg.seconds(5)"),
        (lambda: tg_.timestamp(5), "TG110", "ISO text"),
        (lambda: tg.coalesce("s", "k"), "TG114", "attributes are r.s, r.k, and"),
        (lambda: tg.concat("k"), "TG114", "text is a constant here; attributes are r.k, and"),
        (lambda: tg.concat_ws("-", "s", "k"), "TG114", "attributes are r.s, r.k, and"),
        (lambda: tg.max("s", "k"), "TG114", "attributes are r.s, r.k, and"),
        (lambda: tg.min("a b", "c d"), "TG114", "attributes are r.x, and a text alone is tg.lit(...), an instant tg"),
        (lambda: tg.max("2026-01-01", "2026-01-02"), "TG114", "a date datetime.date(...)"),
        (lambda: tg.coalesce("5m", "1h"), "TG114", "a duration tg.duration(...)"),
        (lambda: found.Low < found.High, "TG114", "relations are methods: A.before(B), A.meets(B)"),
        (lambda: found.Low >= found.High, "TG114", "A.before(B)"),
        (lambda: r.group_by(w=tg_.session("5m")), "TG110", "write r.windows(tg.session('5m'), by="),
        (
            lambda: r.group_by("k", tg_.hopping("1h", every="5m")),
            "TG110",
            "r.windows(tg.hopping('1h', every='5m'), by=",
        ),
        (lambda: r.windows(tg_.tumbling("10s"), by="k"), "TG114", 'tg.hopping("10s", every="10s")'),
        (lambda: r.windows(tg_.tumbling(r.time, "10s"), by="k"), "TG114", 'tg.hopping("10s", every="10s")'),
        (lambda: tg.program(Out=r).run({"R": []}, close_open=True), "TG114", "close_at="),  # type: ignore[call-arg]
        (lambda: tg.match(found.Low.before(renamed.Other), within="5m"), "TG108", 'relation.rename(id="k")'),
        (
            lambda: tg.match(found.Low.before(swapped.Other), within="5m"),
            "TG108",
            "by the same keys, in the same order",
        ),
        (lambda: tg.match(found.Low.before(texts.Other), within="5m"), "TG108", 'r.k.cast("bigint")'),
        (lambda: r.k.isin(1, 2), "TG131", "is_in"),
        (lambda: r.s.startsWith("a"), "TG131", "starts_with"),
        (lambda: r.k.max(), "TG131", "tg.max(...)"),
        (lambda: r.k.zzz(), "TG131", "abs, acos"),
        (lambda: tg_.cout(), "TG131", "did you mean tg.count"),
        (lambda: tg_.mean(r.k), "TG131", "tg.avg"),
        (lambda: tg_.zzz, "TG131", ""),
        (lambda: r.group_by(r.k).sum("k"), "TG131", ".agg(total=tg.sum("),
        (lambda: r.group_by(r.k).zzz, "TG131", ".agg(n=tg.count())"),
        (lambda: r.k in [1, 2], "TG118", "x.is_in(a, b)"),
        (lambda: r.k not in (1, 2) and r.s == "a", "TG118", "x.is_in(a, b)"),
        (lambda: 1 in r.k, "TG118", "x.is_in(a, b)"),
        (lambda: tg_.now(), "TG131", 'tg.ticks("1m", r)'),
        (lambda: tg_.date_range(1, 5), "TG131", 'tg.ticks("1m", r)'),
        (lambda: r.upsample("1m"), "TG101", 'r.fill_gaps("1m", by="key", within="1h")'),
        (lambda: tg_.diff(r.k), "TG131", "the row before is"),
        (lambda: tg_.last(r.k, by=r.time) > r.k, "TG115", "the row before is"),
        (lambda: tg.situation(r.k < tg_.first(r.k, by=r.time)), "TG115", "the row before is"),
        (lambda: tg.situation(r.k < tg_.max(r.k)), "TG115", "in with_() or where() afterwards"),
        (lambda: tg_.ntile(4), "TG131", "r.ranked(by="),
        (lambda: r.nlargest(3, "k"), "TG101", "r.top_k(3, by="),
        (lambda: tg_.asc(r.k), "TG131", "tg.desc(r.x)"),
        (lambda: tg_.merge_asof(r, other), "TG131", 'a.asof_join(b, by="x", within="10m")'),
        (lambda: tg_.session_window(r.time, "5m"), "TG131", 'r.windows(tg.session("5m"), by="key")'),
        (lambda: tg_.interval("5m"), "TG131", "tg.days(7)"),
        (lambda: tg_.collect_list(r.k), "TG131", "there are no lists"),
        (lambda: tg_.read_csv("in"), "TG131", "did you mean tg.csv?"),
        (lambda: tg_.upper(r.s), "TG131", "r.x.upper(...)"),
        (lambda: r.k.alias("x"), "TG131", "select(y=r.x + 1)"),
        (lambda: r.k.shift(1), "TG131", "the row before is"),
        (lambda: r.k.cum_sum(), "TG131", "total=tg.sum(r.x)"),
        (lambda: r.s.str.contains("a"), "TG131", "r.x.contains(...)"),
        (lambda: r.time.dt.truncate("1h"), "TG131", "r.time.hour()"),
        (lambda: r.k.fill_null(0), "TG131", "tg.coalesce(r.x, 0)"),
        (lambda: r.k.mean(), "TG131", "tg.avg"),
        (lambda: r.k.is_in([1, 2]), "TG110", "x.is_in(*values)"),
        (lambda: r.group_by(["k", "s"]), "TG114", "one by one"),
        (lambda: r.join_asof(r, on="time"), "TG101", 'a.asof_join(b, by="x", within="10m")'),
        (lambda: r.merge_asof(r, on="time"), "TG101", 'a.asof_join(b, by="x", within="10m")'),
        (lambda: r.join(other, how="asof"), "TG114", 'a.asof_join(b, by="x", within="10m")'),
        (lambda: r.join(other, "k"), "TG114", "a.k == b.k"),
        (lambda: r.join(other, on="k"), "TG114", "a.x == b.x"),
        (lambda: r.join(other, "left"), "TG114", 'how="left"'),
        (lambda: r.join(other, "left_outer"), "TG114", 'how="left"'),
        (lambda: r.join(other, how="left_anti"), "TG114", 'how="anti"'),
        (lambda: r.join(other, how="outer"), "TG114", "how is inner, left, semi or anti"),
        (lambda: r.join(other, how="full"), "TG114", "a.left_join(b, ...) has all rows of a"),
        (lambda: r.dropDuplicates(["k"]), "TG101", "dedup(by="),
        (lambda: r.first(by="k"), "TG101", "dedup(by="),
        (lambda: r.latest(by="k"), "TG101", 'a.asof_join(r, by="k")'),
        (lambda: r.last(by="k"), "TG101", 'r.versions(by="k")'),
        (lambda: r.toTable(), "TG101", "a.temporal_join(...)"),
        (lambda: tg_.latest(r.k), "TG131", "tg.last(r.x, by=r.time)"),
        (lambda: r.session_window("5m"), "TG101", 'r.windows(tg.session("5m"), by="key")'),
        (lambda: r.foreachBatch(print), "TG101", "tg.callback(f)"),
        (lambda: r.k.rle_id(), "TG131", "derive(Busy=tg.situation("),
        (lambda: (r.time - r.time).dt.total_minutes(), "TG131", ".div(tg.minutes(1))"),
        (lambda: tg_.minute(5), "TG131", "a duration is tg.minutes(5)"),
        (lambda: r.k == "5", "TG102", "write the number without quotes: 5"),
        (lambda: r.k == "five", "TG102", '.cast("bigint")'),
        (lambda: r.s == 5, "TG102", 'put it in quotes: "5"'),
        (lambda: tg.duration("pt1h"), "TG104", 'did you mean "PT1H"?'),
        (lambda: tg_.stream("S", "t timestamp", watermark="5m"), "TG114", 'tg.source(None, delay="10m")'),
        (lambda: tg_.stream("S", "t datetime", progress="t"), "TG111", "did you mean timestamp?"),
        (lambda: tg_.tumbling(r.k.cast("double"), "1h"), "TG102", "r.time"),
        (lambda: tg_.floor(r.s, "1h"), "TG102", "r.time"),
        (lambda: r.time + "1M", "TG104", 'write "1m" for minutes'),
        (lambda: r.time + "1h 3M", "TG104", "t.add_months(3)"),
        (lambda: r.time + "1mo", "TG104", "months and years differ in length"),
        (lambda: r.time + "P1M", "TG104", "months and years differ in length"),
        (lambda: r.time + "P1Y2DT3H", "TG104", "months and years differ in length"),
        (lambda: tg.duration("5mss"), "TG104", "did you mean ms?"),
        (lambda: tg.duration("5 minuts"), "TG104", "did you mean minute"),
        (lambda: tg.minutes(1) * 1.5, "TG102", '"90s" is a minute and a half'),
        (lambda: tg_.program(Out=r).start(), "TG114", 'tg.spark_session("name")'),
        (lambda: tg_.program(Out=r).session().flush(), "TG131", "session.step()"),
        (lambda: tg_.program(Out=r).session().late, "TG131", "session.quarantine()"),
        (lambda: tg_.program(Out=r).session().timeline(), "TG131", "program.timeline({...})"),
        (lambda: tg_.program(Out=r).session().polars("Out"), "TG131", 'session.table("Name").polars()'),
        (lambda: tg_.program(Out=r).run({"R": []}).polars(), "TG131", 'results["Name"].polars()'),
        (lambda: tg_.program(Out=r).run({"R": []}).table("Out"), "TG131", 'results["Name"]'),
        (lambda: r.filter(r.k > 1), "TG101", "where(r.x > 5)"),
        (lambda: r.groupBy(r.k), "TG101", "group_by("),
        (lambda: r.limit(5), "TG101", "rows have no order"),
        (lambda: r.order_by("k"), "TG101", "rows have no order"),
        (lambda: r.withColumn("x", r.k), "TG101", "with_("),
        (lambda: r.count(), "TG101", "group_by(...).agg("),
        (lambda: r.unionAll(r), "TG101", "union(other)"),
        (lambda: r.semijoin(r), "TG101", "did you mean semi_join(...)"),
        (lambda: r.distict(), "TG101", "did you mean distinct(...)"),
        (lambda: r.tim, "TG101", "did you mean time?"),
        (lambda: r.as_("x").tim, "TG101", "did you mean relation.time?"),
        (lambda: matches.hihg, "TG101", "did you mean matches.High?"),
        (lambda: r.schemas, "TG101", "did you mean schema?"),
        (lambda: next(iter(r)), "TG118", 'tg.program(Out=r).run({...})["Out"]'),
        (lambda: 1 in r, "TG118", 'tg.program(Out=r).run({...})["Out"]'),
        (lambda: r.where(lambda: 1), "TG114", "write lambda r: r.x"),
        (lambda: r.group_by(r.k).agg(n=lambda: tg_.count()), "TG114", "write n=lambda r: tg.max(r.x)"),
        (lambda: r.group_by(r.k).agg(n=int), "TG114", "write n=lambda r: tg.max(r.x)"),
        (
            lambda: tg_.stream("S", "a timestamp, b timestamp", progress="a", relations=lambda: True),
            "TG114",
            "write relations=lambda s: s.start <= s.end",
        ),
        (
            lambda: tg_.result("S", "a bigint, b bigint", progress="a", relations=lambda a, b: a < b),
            "TG114",
            "lambda s:",
        ),
        (
            lambda: tg_.stream("S", "a timestamp, b timestamp", progress="a", relations=dt.datetime(2026, 1, 1)),
            "TG116",
            "compare temporal attributes",
        ),
        (lambda: r.declare(progress="time", relations=lambda s: 5), "TG116", "compare temporal attributes"),
        (lambda: r.join(other, lambda a: a.k == 1), "TG114", "write lambda a, b: a.x == b.x"),
        (lambda: r.over(by="k", n=lambda: tg.row_number()), "TG114", "write lambda r: r.x"),
        (lambda: r.over(partition_by="k", n=tg.row_number()), "TG115", "write by='k'"),
        (lambda: r.over(order_by="time", n=tg.row_number()), "TG115", "write order='time'"),
        (
            lambda: r.asof_join(other, on="k", tolerance="5m"),
            "TG114",
            'keys are by="k", or by=[("k", "l")] of two names',
        ),
        (lambda: r.asof_join(other, tolerance="5m"), "TG114", 'the limit is within="10m"'),
        (lambda: r.distinct_on(by="k"), "TG114", 'keys are given without by=: x.distinct_on("k")'),
        (lambda: r.partition_by(keys="k"), "TG114", 'keys are given without keys=: x.partition_by("k")'),
        (lambda: r.where(condition=r.k > 1), "TG114", "write x.where(*conditions)"),
        (lambda: r.asof_join(other, strategy="nearest"), "TG114", 'it is direction="backward"'),
        (lambda: r.asof_join(other, allow_exact_matches=False), "TG114", "strict=True"),
        (
            lambda: tg_.hopping(4, every=2, closed="left"),
            "TG114",
            'r.with_(at=r.time + "1us").windows(..., order="at")',
        ),
        (lambda: r.windows(tg.session(4), closed="left"), "TG114", "windows have their end, and not their start"),
        (lambda: tg_.tumbling(r.k, 4, closed="left"), "TG114", "these windows have their start, and not their end"),
        (lambda: tg_.match_recognize("PATTERN (A B)"), "TG131", 'r.match_recognize("...") as in SQL'),
        (lambda: r.partition_by("k").match_recognize("PATTERN (A B)"), "TG131", 'r.match_recognize("...") as in SQL'),
        (lambda: tg_.sequence("A B"), "TG131", 'r.sequences("A B+", by="k"'),
        (lambda: r.k.item, "TG131", "more: the reference lists"),
        (lambda: matches.ts, "TG103", "write matches.Low.ts or matches.High.ts"),
        (lambda: tg_.sum(r.k).filtre, "TG131", "tg.sum(r.x, filter=r.ok)"),
        (lambda: r.group_by(r.k).summ, "TG131", ".agg(total=tg.sum("),
        (lambda: len(r), "TG118", "tg.count()"),
        (lambda: len(r.s), "TG118", "text.length()"),
        (lambda: (r.k / 2).cast("decimal(18,2)"), "TG102", "for hundredths"),
        (lambda: r.k.round(-2), "TG102", "tg.floor(x + 50, 100)"),
        (lambda: tg_.round(r.k), "TG131", "it is a method of values: r.x.round(...)"),
        (lambda: tg_.max(r.k, 2, filter=r.k > 1), "TG132", "tg.when"),
        (lambda: tg_.sum(r.k, filter=r.k), "TG102", "compare it"),
        (lambda: tg_.bool_and(r.k), "TG102", "compare it"),
        (lambda: tg_.when(r.k > 1, 1, 2, otherwise=3), "TG114", "leave one of them out"),
        (lambda: r.s + "x", "TG102", "tg.concat(a, b)"),
        (lambda: r[r.k > 1], "TG114", "where(r.x > 5)"),
        (lambda: r[3], "TG114", 'relation["time"]'),
        (lambda: (r.time - r.time).total_seconds(), "TG131", "/ tg.minutes(1)"),
        (lambda: int(r.k), "TG118", '.cast("bigint")'),
        (lambda: float(r.k), "TG118", '.cast("double")'),
        (lambda: math.sqrt(r.k), "TG118", "x.sqrt()"),
        (lambda: max(r.k, 2), "TG118", "tg.max(a, b)"),
        (lambda: r.full_join(other, r.k == other.k), "TG101", "a.left_join(b, ...) has all rows of a"),
        (lambda: r.right_join(other, r.k == other.k), "TG101", "other.left_join(this, ...)"),
        (lambda: (r.k > 1) ^ (r.k < 3), "TG114", "a != b"),
        (lambda: tg_.count_if(filter=r.k > 1), "TG132", "tg.count_if(r.x > 5)"),
        (lambda: tg_.count_if(r.k > 1, filter=r.k), "TG102", "compare it"),
        (lambda: r.k ^ 3, "TG114", "x.bit_xor(y)"),
        (lambda: r.k.format("%.2f"), "TG102", 'x.round(2).cast("string")'),
        (lambda: r.s.format("%Y"), "TG102", '.parse_timestamp("%d.%m.%Y")'),
        (lambda: r.time.format("yyyy-MM-dd"), "TG102", 'write "%Y-%m-%d"'),
        (lambda: r.time.format("YYYY-MM-DD'T'HH24:MI:SS"), "TG102", 'write "%Y-%m-%dT%H:%M:%S"'),
        (lambda: r.time.format("HH:MM"), "TG102", 'write "%H:%M"'),
        (lambda: r.time.format("week"), "TG102", "such as in %d.%m.%Y"),
        (lambda: r.time.format("100 %%"), "TG102", "such as in %d.%m.%Y"),
        (lambda: r.time.format(r.s), "TG102", "given to engines once, for all rows"),
        (lambda: r.s.parse_timestamp("dd.MM.yyyy HH:mm"), "TG102", 'write "%d.%m.%Y %H:%M"'),
        (lambda: r.s.parse_timestamp("%d.%m."), "TG102", "such as in %d.%m.%Y"),
        (lambda: r.time.add_months(r.k), "TG102", "tg.when(condition, x.add_months(1), ...)"),
        (lambda: r.time.add_months(1.5), "TG102", "write x.add_months(1)"),
        (lambda: r.time.truncate("months"), "TG102", 'write x.truncate("month")'),
        (lambda: r.time.to_local("Berlin"), "TG102", '"Europe/Berlin"'),
        (lambda: r.s.lpad(-1), "TG102", 'write x.lpad(8, "0")'),
        (lambda: r.s.rpad(r.k), "TG102", 'tg.when(condition, x.rpad(8, "0"), ...)'),
        (lambda: r.k.lpad(8), "TG102", '.cast("string")'),
        (lambda: r.s.split_part(",", 0), "TG102", "-1 for the last part"),
        (lambda: r.s.like(r.s), "TG102", 'tg.when(condition, x.like("a%"), ...)'),
        (lambda: r.s.json(r.s), "TG102", 'tg.when(condition, x.json("$.a"), ...)'),
        (lambda: r.s.regexp_extract("a", r.k), "TG102", "for all rows"),
        (lambda: r.s.contains(5), "TG102", 'write text: "5"'),
        (lambda: r.k.cast("double").round(-2), "TG102", "(x / 100).round() * 100"),
        (lambda: r.k.round(-1), "TG102", "multiples of 10 are tg.floor(x + 5, 10)"),
        (lambda: r.k.cast("double").round(-3), "TG102", "(x / 1000).round() * 1000"),
        (lambda: r.k.round(-19), "TG102", "write x.round(2)"),
        (lambda: r.time.to_local("Europe/Berln"), "TG102", 'did you mean "Europe/Berlin"?'),
        (lambda: r.time.to_local("here"), "TG102", 'zones are called "Europe/Berlin"'),
        (lambda: r.s.json("a.b"), "TG102", 'write x.json("$.a.b")'),
        (lambda: r.s.json("$.a."), "TG102", "a path is $ and steps"),
        (lambda: r.s.regexp_extract("(a)(b)", 3), "TG102", "0 is all of the match, and 1 to 2 are its groups"),
        (lambda: r.s.regexp_extract("a", 1), "TG102", "a group is written (...)"),
        (lambda: r.s.regexp_replace("(a)", "\\1"), "TG134", "regexp_extract("),
        (lambda: r.s.regexp_replace("(a)", "<$1>"), "TG134", "regexp_extract("),
        (lambda: r.s.like("a\\"), "TG134", "write it twice"),
        (lambda: r.s.like("a\\\\\\"), "TG134", "write it twice"),
        (lambda: tg_.str(r.k), "TG131", '.cast("string")'),
        (lambda: tg_.least(r.k, 2), "TG131", "did you mean tg.min(x, y)?"),
        (lambda: tg_.greatest(r.k, 2), "TG131", "did you mean tg.max(x, y)?"),
        (lambda: r.k.greatest(2), "TG131", "tg.max(r.x, y)"),
        (lambda: tg_.dt, "TG131", "r.time.hour()"),
        (lambda: tg_.pi, "TG131", "math.pi"),
        (lambda: r.k.round(r.k), "TG102", "tg.when(condition, x.round(2), ...)"),
        (lambda: r.k.cast("double").shift_left(2), "TG102", '.cast("bigint")'),
        (lambda: r.k.shift_left(-1), "TG102", "write x.shift_left(2)"),
        (lambda: r.k.cast("double").bit_and(2), "TG102", '.cast("bigint")'),
        (lambda: tg.days_between(r.k, r.time), "TG102", "cast it"),
        (lambda: tg_.count() // 2, "TG115", "give it a name in agg()"),
        (lambda: 2 << tg_.count(), "TG115", "give it a name in agg()"),
        (lambda: r.k & 3, "TG102", "x.bit_and(y)"),
        (lambda: 3 | r.k, "TG102", "x.bit_or(y)"),
        (lambda: (r.k > 1) | r.k, "TG102", "(a > 1) | (b > 2)"),
        (lambda: ~r.k, "TG102", "x.bit_not()"),
        (lambda: r.k << 2, "TG114", "x.shift_left(2)"),
        (lambda: 2 >> r.k, "TG114", "x.shift_right(2)"),
        (lambda: r.k // 2.5, "TG102", "tg.floor(x / y)"),
        (lambda: r.k * Decimal("0.5") // 2, "TG102", "tg.floor(x / y)"),
        (lambda: r.k.cast("double").div(2), "TG102", "(x / y).trunc()"),
        (lambda: r.k.try_mod(2.5), "TG102", "x - y * tg.floor(x / y)"),
        (lambda: True ^ (r.k < 3), "TG114", "a != b"),
        (lambda: tg_.parquet("in", dealy="5m"), "TG114", "did you mean delay=?"),
        (lambda: tg_.source([], delays="5m"), "TG114", "did you mean delay=?"),
        (lambda: tg_.parquet("in", perbatch=1), "TG114", "did you mean per_batch=?"),
        (lambda: tg_.csv("in", foo=1), "TG114", "there are per_batch, pattern, archive, delete, delay, "),
        (lambda: tg_.program(Out=r).run(R=[]), "TG114", 'program.run({"Orders": rows'),
        (lambda: tg_.program(Out=r).run(), "TG114", 'program.run({"Orders": rows'),
        (lambda: tg_.csv("in", sep=";"), "TG114", "pl.scan_csv("),
        (lambda: tg_.timeline({}, by="k"), "TG114", "partition_by=..."),
        (lambda: tg_.program(Out=r).timeline({"R": []}), "TG402", "tg.timeline({"),
        (lambda: tg_.program(Out=r).session().push(r, []), "TG402", "it has R"),
        (lambda: tg_.program(Out=r).run({"R": []}).Out, "TG131", 'write results["Out"]'),
        (lambda: tg_.program(Out=r).run({"R": []}).keys(), "TG131", "list(results)"),
        (lambda: tg_.program(Out=r).run({"R": []})["Out"].head(), "TG131", ".polars().head"),
        (lambda: tg_.program(Out=r).run({"R": []})["Out"].to_polars(), "TG131", "did you mean polars?"),
        (lambda: tg_.program(Out=r).run({"R": []})["Out"][0], "TG402", ".polars()[0]"),
        (lambda: tg_.callback(), "TG114", "tg.callback(function)"),
        (lambda: tg_.program(Out=r).session(source={}), "TG114", "did you mean sources=?"),
        (lambda: tg_.program(Out=r).explain(zone=True), "TG114", "did you mean zones=?"),
        (lambda: tg_.program(Out=r).start(None, foo=1), "TG114", "trigger"),
        (lambda: tg_.program(Out=r).start(None, triger=1), "TG114", "did you mean trigger=?"),
        (lambda: tg_.program(Out=r).start(None, sources={}), "TG114", 'checkpoint="a directory"'),
        (lambda: tg_.program(Out=r).run({"R": []})["out"], "TG402", "it has Out"),
        (lambda: tg_.program(Out=r).run({"R": []}).rows("out"), "TG402", "it has Out"),
        (lambda: r.time + r.time, "TG102", "instants have no sum: add a duration"),
        (lambda: -r.time, "TG102", "an instant has no negative"),
        (lambda: r.time.between(r.time, tg.minutes(5)), "TG102", "t - u <= tg.minutes(5)"),
        (lambda: r.time * 2.0 * r.w, "TG102", ""),
        (lambda: r.w - r.time, "TG102", "subtracted from an instant"),
        (lambda: r.k + tg.minutes(10), "TG102", "a whole number of them"),
        (lambda: r.k < r.w, "TG102", '.cast("bigint") of the duration'),
        (lambda: r.w * r.w, "TG102", "whole numbers"),
        (lambda: tg_.hop(r.time, "1h"), "TG131", 'r.windows(tg.hopping("1h", every="10m"), by="key")'),
        (lambda: tg_.CUMULATE(r.time), "TG131", 'tg.cumulating("1d", every="1h")'),
        (lambda: r.rolling("time", period="1h"), "TG101", "windows that overlap are r.windows("),
        (lambda: r.k.rolling_mean("1h"), "TG131", "windows that overlap are r.windows("),
        (lambda: r.group_by_dynamic("time"), "TG101", "tg.floor(r.time, unit)"),
        (lambda: tg_.n_unique(r.k), "TG131", "tg.count_distinct"),
        (lambda: tg_.date(r.time), "TG131", "to_date()"),
        (lambda: tg_.if_else(r.k > 1, 1, 2), "TG131", "tg.when("),
        (
            lambda: tg_.situation(r, r.k > 1),
            "TG114",
            "tg.situation(condition, at_least=..., at_most=..., between=..., name=...)",
        ),
        (lambda: r.partition_by("k").derive(tg.situation(r.k > 1)), "TG114", "derive(Name=tg.situation(condition))"),
        (lambda: r.partition_by("k").derive(Low=r.k > 1), "TG114", "Low=tg.situation(condition)"),
        (lambda: found.Low.start, "TG101", "A.ts"),
        (lambda: found.Low.end, "TG101", "A.te"),
        (lambda: found.Low.duration, "TG101", "A.te - A.ts"),
        # What comes to mind after other libraries of patterns.
        (lambda: tg_.stream("S", "t timestamp", progress="t", delay="5m"), "TG114", 'tg.source(None, delay="10m")'),
        (lambda: r.lag("s"), "TG101", "the row before is"),
        (lambda: r.pattern("s"), "TG101", "tg.match(A.before(B)"),
        (lambda: found.Low >> found.High, "TG114", "A.before(B)"),
        (lambda: ~found.Low, "TG114", "anti_join"),
        (lambda: found.Low & found.High, "TG114", "A.before(B)"),
        (lambda: r.partition_by("k").derive(A=tg_.situation(r.k > 1, for_="5m")), "TG115", "at_least='5m'"),
        (lambda: r.partition_by("k").derive(A=tg_.situation(r.k > 1, for_=tg.minutes(5))), "TG115", "at_least='5m'"),
        (lambda: r.partition_by("k").derive(A=tg_.situation(r.k > 1, top=r.k)), "TG115", "top=tg.max(...)"),
        (lambda: tg_.stream("S", "t timestamp, WATERMARK FOR t AS t - x", progress="t"), "TG111", 'delay="10m"'),
        (lambda: r.followed_by(r), "TG101", "a.time < b.time"),
        (lambda: r.before(r), "TG101", "as_intervals(...)"),
        (lambda: r.match(), "TG101", "tg.situation(condition)"),
        (lambda: tg_.pattern(), "TG131", "tg.situation(condition)"),
        (lambda: r.as_("a").join(r.as_("b"), within="5m"), "TG114", "b.time <= a.time"),
        (lambda: r.as_("a").anti_join(r.as_("b"), within="5m"), "TG114", "b.time <= a.time"),
        (lambda: found.Low.intersect(found.High), "TG101", "did you mean intersects(...)?"),
        (lambda: r.intersect(r), "TG101", "semi_join"),
        (lambda: found.Low.overlaps(found.High).within("5m"), "TG131", 'within="5m"'),
        (lambda: tg.situation(r.k > 1).at_least("5m"), "TG131", "tg.situation(condition, at_least=...)"),
        (lambda: tg.situation(r.k > 1).before(3), "TG131", "derive(A="),
        (lambda: tg_.program(A=found), "TG114", "derived.match(...)"),
        (lambda: tg_.program(A=r.k > 1), "TG114", "where(...)"),
        (lambda: tg_.program(A=r.partition_by("k")), "TG114", "derive(A="),
        (lambda: tg_.program(A=r.group_by("k")), "TG114", "agg(...)"),
        (lambda: tg.tumbling("time", "5m"), "TG102", "r.time"),
        (lambda: tg.floor("time", "5m"), "TG102", "r.time"),
        (lambda: stays.as_intervals(start="begun", end="ended", by="k"), "TG117", 'temporal="begun"'),
        (lambda: r.as_intervals(start="s", end="time", by="k"), "TG117", "name an instant"),
        (lambda: stays.as_intervals(start="begun", end="ended", points="no"), "TG114", "leave it out"),
        (lambda: stays.as_intervals(start="begun", end="ended", name="A b"), "TG114", 'name="A"'),
        (
            lambda: tg_.query(tg.result("R", "k bigint, time bigint", progress="time"), r, name=""),
            "TG114",
            "can be seen",
        ),
        (lambda: tg_.parquet_sink("out", compact="no"), "TG401", "compact=True merges small files"),
        (lambda: tg_.callback("print"), "TG401", "give a function"),
        (lambda: tg_.callback(lambda table: None), "TG401", "def seen(table, batch)"),
        (lambda: tg_.program(Out=r).session(on_batch=lambda: None), "TG401", "takes the report of a batch"),
        (lambda: tg_.program(Out=r).session(clock=lambda zone: None), "TG401", "returns a datetime"),
        (lambda: tg_.program(Out=r).run([1]), "TG401", 'inputs={"Name": rows}'),
    ],
)
def test_wrong_calls_fail_at_their_line_with_a_suggestion(wrong: Callable[[], object], code: str, hint: str) -> None:
    with pytest.raises(tg.QueryError) as raised:
        wrong()
    assert raised.value.code == code
    assert hint in raised.value.hint
    assert raised.value.site is not None
    assert raised.value.site.file == __file__
    assert raised.value.site.line == wrong.__code__.co_firstlineno


def test_keys_in_another_order_are_no_matter_of_names() -> None:
    with pytest.raises(tg.QueryError, match="TG108 Other is partitioned by s, k, and Low by k, s") as caught:
        tg.match(two_keys.Low.before(swapped.Other), within="5m")
    assert caught.value.hint == "partition all situations by the same keys, in the same order"


def test_texts_beside_an_attribute_and_texts_that_are_said_to_be_constants_stay() -> None:
    for value, written in [
        (tg.coalesce("none", r.s), "coalesce('none', s)"),
        (tg.coalesce(tg.lit("a"), "b"), "coalesce('a', 'b')"),
        (tg.concat("Dear ", r.s, "!"), "'Dear ' || s || '!'"),
        (tg.concat_ws(", ", "Dear", r.s), "concat_ws(', ', 'Dear', s)"),
        (tg.max(r.s, "a"), "greatest(s, 'a')"),
        (tg.min("a", tg.lit("b")), "least('a', 'b')"),
        (tg.when(r.k > 1, "large", "small"), "if(k > 1, 'large', 'small')"),
    ]:
        assert repr(value) == written


def test_what_stands_for_a_relation_is_named_with_its_article() -> None:
    with pytest.raises(tg.QueryError, match="TG114 A is an Expression, not a relation"):
        tg_.program(A=r.k > 1)
    with pytest.raises(tg.QueryError, match="TG114 a program has queries, not an Intervals"):
        tg_.program(found.Low)


def test_several_relations_of_instants_may_come_from_one_function() -> None:
    def relations(s: Any) -> Any:
        return s.begun < s.ended, s.ended <= s.begun + tg.hours(1)

    schema = "begun timestamp, ended timestamp, k bigint"
    together = tg.stream("S", schema, progress="ended", relations=relations)
    one_by_one = tg.stream(
        "S",
        schema,
        progress="ended",
        relations=[lambda s: s.begun < s.ended, lambda s: s.ended <= s.begun + tg.hours(1)],
    )
    assert tg.program(Out=together).definition.inputs == tg.program(Out=one_by_one).definition.inputs


def test_in_over_several_lines_is_known_without_its_text() -> None:
    def wrong() -> object:
        # fmt: off
        return (
            r.k
            not in
            (1, 2)
        )
        # fmt: on

    with pytest.raises(tg.QueryError) as raised:
        wrong()
    assert "is_in" in raised.value.hint


def test_unknown_methods_are_absent_for_those_who_ask() -> None:
    assert not hasattr(r.k, "foo")
    assert getattr(r.k, "foo", 5) == 5
    assert not hasattr(r.k, "__array__")
    for one in (tg_, r.group_by(r.k)):
        assert not hasattr(one, "foo")
        assert getattr(one, "foo", 5) == 5
        assert not hasattr(one, "__array__")
    with pytest.raises(ImportError):
        from tidegate import cout  # type: ignore[attr-defined]  # noqa: F401  # wrong on purpose
    with pytest.raises(AttributeError, match="foo"):
        r.k.foo()


def test_a_type_error_inside_a_call_stays_what_it_is() -> None:
    def broken(_: object) -> Any:
        return len(5)  # type: ignore[arg-type]  # wrong on purpose

    with pytest.raises(TypeError, match="len"):
        r.where(broken)


def test_signatures_and_docstrings_are_those_of_the_functions() -> None:
    assert list(inspect.signature(tg.stream).parameters) == [
        "name",
        "schema",
        "progress",
        "relations",
        "temporal",
        "begins",
    ]
    assert tg.stream.__doc__ is not None
    assert list(inspect.signature(tg.Relation.where).parameters) == ["self", "conditions"]


def hinted(hint: str, begins: str, **names: Any) -> Any:
    """What the code in a hint makes, from the call with which it begins to its last bracket."""
    return eval(hint[hint.index(begins) : hint.rindex(")") + 1], {"tg": tg}, names)  # noqa: S307  # the code of a hint of ours


def test_the_hint_on_the_row_before_is_code_that_finds_it_in_its_partition() -> None:
    rows = tg.stream("Rows", "key bigint, time timestamp, x bigint", progress="time")
    with pytest.raises(tg.QueryError) as raised:
        tg_.shift(rows.x)
    named = hinted(raised.value.hint, "r.over(", r=rows)
    program = tg.program(Change=named.select("key", "time", change=named.x - named.before))
    given = [(1, 0, 10), (2, 1, 100), (1, 2, 13), (2, 5, 99), (1, 6, 20)]
    found = program.run({"Rows": [(k, f"2026-03-02T10:0{minute}Z", x) for k, minute, x in given]}).rows("Change")
    assert [(row["key"], row["change"]) for row in sorted(found, key=lambda row: row["time"])] == [
        (1, None),
        (2, None),
        (1, 3),
        (2, -1),
        (1, 7),
    ]


def test_the_hint_on_ranks_is_code_that_finds_the_largest_of_a_window() -> None:
    rows = tg.stream("Rows", "k bigint, time timestamp, x bigint", progress="time")
    with pytest.raises(tg.QueryError) as raised:
        tg_.nlargest()
    windows = rows.with_(end=tg.tumbling(rows.time, "1h"))
    top = hinted(raised.value.hint, "r.top_k(", r=windows)
    given = [(k, f"2026-03-02T{hour}:00Z", k * 10) for hour in (10, 11) for k in range(5)]
    found = tg.program(Top=top).run({"Rows": given}).rows("Top")
    assert sorted((row["end"].hour, row["x"]) for row in found) == [(h, x) for h in (11, 12) for x in (20, 30, 40)]


ALL = ("bigint", "boolean", "double", "string", "timestamp", "date", "interval day to second", "decimal(9,2)")


def test_hints_of_casts_can_be_written_as_they_stand() -> None:
    hints: dict[tuple[str, str], str] = {}
    for of in ALL:
        x: Any = tg.stream("X", f"time timestamp, x {of}", progress="time").x
        for to in ALL:
            try:
                x.cast(to)
            except tg.QueryError as error:
                hints[of, to] = error.hint
                if to != "boolean":
                    x.cast("bigint").cast(to)
    for (_, to), hint in hints.items():
        assert ("compare it: x != 0" if to == "boolean" else 'take .cast("bigint") first') in hint
    assert {("boolean", "bigint"), ("date", "timestamp"), ("string", "double"), ("double", "string")}.isdisjoint(hints)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: r.s > 3, '.cast("bigint")'),
        (lambda: r.time > 5, '.cast("bigint")'),
        (lambda: r.w > 5, '.cast("bigint")'),
        (lambda: r.s.concat(r.k), '.cast("string")'),
        (lambda: r.s == (r.k > 1), 's == "true"'),
        (lambda: r.s == r.w, '.cast("bigint").cast("duration")'),
        (lambda: tg.avg(r.w), '.cast("bigint")'),
    ],
)
def test_hints_name_casts_as_users_write_them(wrong: Callable[[], object], hint: str) -> None:
    with pytest.raises(tg.QueryError) as raised:
        wrong()
    assert raised.value.code == "TG102"
    assert hint in raised.value.hint
    assert "cast_" not in raised.value.hint


def test_results_say_which_streams_they_have() -> None:
    results = tg.program(Out=r).run({"R": []})
    assert list(results) == ["Out"]
    assert "Out" in results
    assert "out" not in results


def test_progress_of_a_session_names_its_attribute() -> None:
    with tg.program(Out=r).session() as session:
        with pytest.raises(tg.QueryError, match="TG403") as raised:
            session.advance("R", "soon")
        assert "R.time: 'soon' is no instant" in raised.value.message
        with pytest.raises(tg.QueryError, match="TG114"):
            session.push("R")  # type: ignore[call-arg]  # wrong on purpose


def test_progress_on_one_attribute_needs_no_name() -> None:
    two = tg.stream("Two", "a timestamp, b timestamp", progress=("a", "b"))
    with tg.program(Out=r, Both=two).session({"Two": tg.source(None, arrival="b")}) as session:  # sources by position
        session.advance("R", "2026-03-02T12:00Z")
        session.advance("Two", "2026-03-02T12:00Z")
        told = session.step().progress
        assert told["Out"]["time"] == 1_772_452_800_000_000
    with tg.program(Both=two).session() as session, pytest.raises(tg.QueryError, match=r"TG403 .* a or b") as raised:
        session.advance("Two", "2026-03-02")
    assert raised.value.hint == """write advance("Two", {"a": '2026-03-02'})"""


@pytest.mark.parametrize(
    ("stated", "hint"),
    [
        (["begun <= ended"], "write relations=lambda s: s.begun <= s.ended"),
        ("ended < begun", "write relations=lambda s: s.ended < s.begun"),
        (lambda s: "x", "write relations=lambda s: s.start <= s.end"),
    ],
)
def test_relations_as_text_are_told_what_goes_there(stated: Any, hint: str) -> None:
    with pytest.raises(tg.QueryError, match=r"TG114 .* is text") as raised:
        tg.stream("S", "begun timestamp, ended timestamp", progress="ended", relations=stated)
    assert raised.value.hint == hint


def test_a_condition_as_text_is_written_as_one_of_attributes() -> None:
    wrong: Callable[[], object]
    for wrong in (lambda: r.where("x = 5"), lambda: tg_.situation("x = 5")):
        with pytest.raises(tg.QueryError, match="TG114 'x = 5' is no condition") as raised:
            wrong()
        assert raised.value.hint.endswith("write relation.x == 5")
        assert raised.value.site is not None


@pytest.mark.parametrize(
    ("limit", "code", "hint"),
    [
        ({"at_least": "1 minut"}, "TG104", "did you mean minute"),
        ({"at_most": 2.5}, "TG160", '"5s"'),
        ({"at_most": True}, "TG160", '"5s"'),
        ({"between": ("4s", ["30s"])}, "TG160", '"5s"'),
    ],
)
def test_durations_of_a_situation_are_checked_where_it_is_written(limit: Any, code: str, hint: str) -> None:
    with pytest.raises(tg.QueryError, match=code) as raised:
        tg_.situation(r.k > 1, **limit)
    assert hint in raised.value.hint
    assert raised.value.site is not None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda k, s: k == s, "== takes"),
        (lambda k, s: k > s, "> takes"),
        (lambda k, s: k + s, "+ takes"),
        (lambda k, s: -s, "- takes"),
        (lambda k, s: k // s, "// takes"),
        (lambda k, s: k.div(s), "div takes"),
        (lambda k, s: k.try_div(s), "try_div takes"),
        (lambda k, s: k.same_as(s), "same_as takes"),
    ],
)
def test_an_operation_is_called_as_it_was_written(wrong: Callable[[Any, Any], object], said: str) -> None:
    r = tg.stream("R", "k bigint, s string, t timestamp", progress="t")
    with pytest.raises(tg.QueryError) as raised:
        wrong(r.k, r.s)
    assert raised.value.message.startswith(said)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda tie: r.over(by="k", order="time", tie=tie, n=tg.row_number()),
        lambda tie: r.partition_by("k", tie=tie),
        lambda tie: r.sequences("A B", by="k", tie=tie),
        lambda tie: other.asof_join(r.as_("r"), by="k", tie=tie),
    ],
)
@pytest.mark.parametrize("tie", [("s", "w"), ["s"]])
def test_one_attribute_orders_rows_of_an_instant(wrong: Callable[[object], object], tie: object) -> None:
    with pytest.raises(tg.QueryError, match=r"TG114 tie=.* is not one attribute") as refused:
        wrong(tie)
    assert "make it of several, r.with_(n=" in refused.value.hint


def test_every_aggregate_takes_a_filter() -> None:
    functions = [one for one in vars(aggregates).values() if inspect.isfunction(one) and hasattr(one, "__wrapped__")]
    own = [one for one in functions if one.__module__ == aggregates.__name__ and not one.__name__.startswith("_")]
    assert len(own) >= 21
    assert [one.__name__ for one in own if "filter" not in inspect.signature(one).parameters] == []


def test_count_if_with_a_filter_counts_rows_for_which_both_are_true() -> None:
    values = ((0, "a"), (2, "a"), (3, "a"), (2, "b"), (None, "a"), (2, None))
    rows = [(dt.datetime(2026, 3, 2, hour), k, s, None) for hour, (k, s) in enumerate(values, 1)]
    counted = r.group_by(day=tg.ceil(r.time, "1d")).agg(n=tg.count_if(r.k > 1, filter=r.s == "a"))
    assert [row["n"] for row in tg.program(Out=counted).run({"R": rows})["Out"]] == [2]


@pytest.mark.parametrize(
    "asked",
    [
        lambda x: x.contains("5"),
        lambda x: x.starts_with("5"),
        lambda x: x.ends_with("5"),
        lambda x: x.position("5"),
        lambda x: x.replace("5", "6"),
        lambda x: x.levenshtein("5"),
        lambda x: x.like("5%"),
        lambda x: x.regexp_like("5"),
        lambda x: x.regexp_extract("(5)"),
        lambda x: x.regexp_replace("5", "6"),
        lambda x: x.concat("5"),
        lambda x: tg.concat("5", x),
        lambda x: tg.concat_ws("-", "5", x),
        lambda x: x.json("$.a"),
    ],
)
@pytest.mark.parametrize("type_", ["date", "timestamp", "duration", "bigint", "boolean"])
def test_what_takes_texts_reads_none_as_a_date_beside_other_values(asked: Callable[[Any], Any], type_: str) -> None:
    """The text was refused as none, as if a date were asked for."""
    rows = tg.stream("Values", f"t timestamp, x {type_}", progress="t")
    with pytest.raises(tg.QueryError, match=f"TG102 (?s:.*)takes (?s:.*)string(?s:.*){type_}"):
        asked(rows.x)
    text = rows.x.cast("bigint").cast("string") if type_ == "duration" else rows.x.cast("string")
    assert asked(text) is not None
    if type_ == "date":  # how many days they are apart
        with pytest.raises(tg.QueryError, match=r"TG102 (?s:.*)takes (?s:.*)string(?s:.*)bigint"):
            asked(rows.x - rows.x)
