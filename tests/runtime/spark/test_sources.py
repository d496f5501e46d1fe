"""What Spark writes and offers as input: the same rows as embedded, or a clear refusal."""

from __future__ import annotations

import datetime as dt
import os
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import tidegate as tg
from tidegate.runtime.engines.spark.engine import _trigger
from tidegate.runtime.state.errors import StateError

pytestmark = pytest.mark.spark

instants = tg.stream("E", "k bigint, t timestamp", progress="t")


def far_instants(spark: SparkSession) -> DataFrame:
    """Spark's own default for timestamps is INT96; the last two are beyond ±MAX_INSTANT, the last wraps in 64 bits."""
    return spark.sql(
        "select 1L k, timestamp'2020-01-01 00:00:00.123456Z' t union all select 2L, timestamp'9999-12-31 00:00:00Z' "
        "union all select 3L, timestamp'1500-01-01 00:00:00Z' union all select 4L, null "
        "union all select 5L, timestamp_micros(3000000000000000000L) "
        "union all select 6L, timestamp_micros(-3000000000000000000L)"
    )


FAR = {
    1: dt.datetime(2020, 1, 1, 0, 0, 0, 123456, tzinfo=dt.UTC),
    2: dt.datetime(9999, 12, 31, tzinfo=dt.UTC),
    3: dt.datetime(1500, 1, 1, tzinfo=dt.UTC),
}
REASONS = ["null", "out of range", "out of range"]


def outcome(session: Any) -> tuple[dict[int, dt.datetime], list[str]]:
    return {row["k"]: row["t"] for row in session.results("Out")}, sorted(
        row["reason"] for row in session.quarantine_rows()
    )


@pytest.mark.parametrize("kind", ["files embedded", "files on Spark", "batch DataFrame"])
def test_instants_that_spark_wrote_as_int96_are_exact_or_out_of_range(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    program = tg.program(Out=instants.select("k", "t"))
    rows = far_instants(spark)
    directory = str(tmp_path / "in")
    rows.coalesce(1).write.option("compression", "none").parquet(directory)
    if kind == "files embedded":
        with program.session(sources={"E": tg.parquet(directory, bounded=True)}) as session:
            session.step()
            assert outcome(session) == (FAR, REASONS)
        return
    source = tg.parquet(directory, bounded=True) if kind == "files on Spark" else rows
    query = program.start(spark, sources={"E": source}, checkpoint=tmp_path / "checkpoint", driver_bytes=0)
    query.awaitTermination()
    with program.session(checkpoint=tmp_path / "checkpoint") as session:
        assert outcome(session) == (FAR, REASONS)


def test_a_missing_column_of_a_dataframe_is_refused_before_the_query_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    program = tg.program(Out=instants)
    batch = spark.sql("select 1L k, 2 other")
    streaming = spark.readStream.format("rate").load().selectExpr("value k", "timestamp T")
    for number, source in enumerate((batch, streaming, tg.source(streaming, progress_columns={"t": "said"}))):
        with pytest.raises(tg.QueryError, match="TG312 E: input lacks 't'") as found:
            program.start(spark, sources={"E": source}, checkpoint=tmp_path / str(number))
        assert found.value.hint == ("its columns are k, other" if number == 0 else "its columns are k, T")
    with pytest.raises(tg.QueryError, match="TG312 E: no row has 't'"):
        program.start(spark, sources={"E": [{"k": 1}]}, checkpoint=tmp_path / "rows")


@pytest.fixture
def logged(spark: SparkSession) -> Iterator[Callable[[], str]]:
    """What Spark has logged meanwhile."""
    jvm: Any = spark._jvm
    log4j, writer = jvm.org.apache.logging.log4j, jvm.java.io.StringWriter()
    layout = log4j.core.layout.PatternLayout.createDefaultLayout()
    appender = log4j.core.appender.WriterAppender.createAppender(layout, None, writer, "told", False, True)
    appender.start()
    root = log4j.LogManager.getContext(False).getConfiguration().getRootLogger()
    root.addAppender(appender, None, None)
    yield writer.toString
    root.removeAppender("told")


@pytest.mark.parametrize("wait", [tg.RunningQuery.awaitTermination, tg.RunningQuery.processAllAvailable])
def test_of_an_error_in_the_stream_the_users_part_is_shown(
    spark: SparkSession,
    tmp_path: Path,
    logged: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
    wait: Callable[[tg.RunningQuery], object],
) -> None:
    program = tg.program(Out=instants)
    sources = {"E": tg.source([(7, None)], policy="fail")}
    for name in ("first", "second"):
        query = program.start(spark, sources=sources, checkpoint=tmp_path / name)
        with pytest.raises(tg.QueryError, match="TG410") as found:
            wait(query)
        shown = traceback.format_exception(found.value)
        assert "pyspark" not in "".join(shown)
        assert "tidegate/runtime" not in "".join(shown)
        assert logged() == ""
    monkeypatch.setenv("TIDEGATE_TRACEBACK", "full")
    query = program.start(spark, sources=sources, checkpoint=tmp_path / "full")
    with pytest.raises(tg.QueryError, match="TG410") as found:
        wait(query)
    assert isinstance(found.value.__cause__, StreamingQueryException)
    query.stop()
    assert "terminated with error" in logged()


@pytest.mark.parametrize("driver_bytes", [0, 1 << 20])
def test_an_error_in_the_stream_is_raised_as_itself(spark: SparkSession, tmp_path: Path, driver_bytes: int) -> None:
    program = tg.program(Out=instants)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "broken.parquet").write_text("no Parquet")
    query = program.start(
        spark, sources={"E": tg.parquet(tmp_path / "in")}, checkpoint=tmp_path / "broken", driver_bytes=driver_bytes
    )
    with pytest.raises(tg.QueryError, match=r"^TG412 .*broken\.parquet") as found:
        query.awaitTermination()
    assert not isinstance(found.value.__cause__, StreamingQueryException)  # the same once more
    assert found.value.hint is not None
    assert found.value.hint.endswith('repeated without it; on_bad_file="quarantine" sets such files aside')
    assert query.exception() is found.value

    rows = tg.source([(1, "2026-03-02"), (7, None), (None, "now")], policy="fail")
    query = program.start(spark, sources={"E": rows}, checkpoint=tmp_path / "failing", driver_bytes=driver_bytes)
    with pytest.raises(tg.QueryError, match=r"TG410 E: rows were rejected \(1 null, 1 unparseable, of 3\)") as found:
        query.processAllAvailable()
    assert found.value.problems[0].because[0].endswith('rows.parquet: t is null: {"k": 7, "t": null}')
    assert found.value.problems[0].because[0].startswith("row 1 of ")


def test_triggers_and_garbage_collection_are_checked_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    program = tg.program(Out=instants)
    sources = {"E": [(1, "2026-03-02")]}
    for wrong in (
        {"trigger": "once"},
        {"trigger": "-1 second"},
        {"trigger": {"every": "1 second"}},
        {"collect_garbage": "exactly"},
    ):
        with pytest.raises(tg.QueryError, match="TG401"):
            program.start(spark, sources=sources, checkpoint=tmp_path / "wrong", **wrong)
    assert not (tmp_path / "wrong").exists()
    program.start(spark, sources=sources, checkpoint=tmp_path / "camel", trigger="availableNow").awaitTermination()
    query = program.start(
        spark, sources=sources, checkpoint=tmp_path / "timed", trigger="interval 1 second", name="out"
    )
    query.processAllAvailable()
    for name, code in (("out", "TG401 a query with name='out' is running"), ("", "TG114"), (3, "TG114")):
        with pytest.raises(tg.QueryError, match=code):
            program.start(spark, sources=sources, checkpoint=tmp_path / "wrong", name=name)  # type: ignore[arg-type]
    assert not (tmp_path / "wrong").exists()
    assert repr(query).splitlines()[0] == f"query 'out' of Out in {tmp_path}/timed, running, after batch 1"
    query.stop()
    assert repr(query).splitlines()[0] == f"query 'out' of Out in {tmp_path}/timed, ended, after batch 1"
    html = query._repr_html_()
    assert html.startswith(f"<div><p>query &#x27;out&#x27; of Out in {tmp_path}/timed, ended, after batch 1</p>")
    assert [re.sub("<.*?>", " ", row).split() for row in html.split("</tr>")[:-1]][1:] == [
        ["out", "Out", "complete"],
        ["kept", "E", "0", "rows"],
    ]
    assert ">in</td>" in html
    assert ">1 row, accepted</td>" in html
    for name in ("camel", "timed"):
        with program.session(checkpoint=tmp_path / name) as session:
            assert [row["k"] for row in session.results("Out")] == [1]


def test_the_time_between_batches_is_written_like_every_duration(spark: SparkSession) -> None:
    for written in ("5 secs", "PT5S", "interval 5 seconds", dt.timedelta(seconds=5), {"processingTime": "5s"}):
        assert _trigger(spark, written) == {"processingTime": "5000000 microseconds"}


def test_where_spark_read_a_streaming_dataframe_a_session_only_reads(spark: SparkSession, tmp_path: Path) -> None:
    program = tg.program(Out=instants.select("k", "t"))
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"k": [1], "t": ["2026-03-02"]}), tmp_path / "in" / "1.parquet")
    streaming = spark.readStream.schema("k bigint, t string").parquet(str(tmp_path / "in"))
    source = tg.source(streaming, delay="0s")

    def on_spark() -> list[int]:
        query = program.start(spark, sources={"E": source}, checkpoint=tmp_path / "state")
        query.awaitTermination()
        return [report.counts["E"].accepted for report in query.reports]

    assert on_spark() == [1]
    with program.session(checkpoint=tmp_path / "state") as session:
        for write in (
            lambda: session.push("E", [(2, "2026-03-03")]),
            lambda: session.advance("E", {"t": "2026-03-03"}),
            lambda: session.finish("E"),
            session.finish,
            session.step,
        ):
            with pytest.raises(StateError, match="TG506 source 'E' was read so far by 'spark "):
                write()
        assert session.results("Out") == []
    pq.write_table(pa.table({"k": [2], "t": ["2026-03-03"]}), tmp_path / "in" / "2.parquet")
    assert on_spark() == [1]
    with program.session(checkpoint=tmp_path / "state") as session:
        assert [row["k"] for row in session.results("Out")] == [1]


def test_a_static_table_may_be_a_batch_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    names = tg.table("N", "k bigint, day date, name string")
    e, n = instants.as_("e"), names.as_("n")
    program = tg.program(Out=e.join(n, n.k == e.k).select(t=e.t, day=n.day, name=n.name))
    frame = spark.sql("select null unused, 'one' name, 1 k, date'2026-03-02' day union all select null, 'two', 2, null")
    events = spark.sql("select 1L k, timestamp'2026-03-02 12:00:00Z' t")
    row = {"t": dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC), "day": dt.date(2026, 3, 2), "name": "one"}
    assert program.run({"E": events, "N": frame}).rows("Out") == [row]
    query = program.start(spark, sources={"E": events}, statics={"N": frame}, checkpoint=tmp_path / "state")
    query.awaitTermination()
    other_order = frame.orderBy("k", ascending=False)
    with program.session(statics={"N": other_order}, checkpoint=tmp_path / "state") as session:
        assert session.results("Out") == [row]

    streaming = spark.readStream.format("rate").load().selectExpr("value k", "date'2026-03-02' day", "'one' name")
    with pytest.raises(tg.QueryError, match="TG311 table N: a streaming DataFrame"):
        program.start(spark, sources={"E": events}, statics={"N": streaming}, checkpoint=tmp_path / "other")
    with pytest.raises(tg.QueryError, match="TG311 E: a streaming DataFrame"):
        tg.program(Out=instants).run({"E": streaming})


def read(spark: SparkSession, place: Path, rows: Any) -> list[str]:
    events = tg.stream("E", "k bigint, t bigint", progress="t")
    program = tg.program(All=events)
    program.start(spark, sources={"E": rows}, checkpoint=place).awaitTermination()
    with program.session(checkpoint=place) as session:
        return sorted(map(str, session.results("All")))


@pytest.mark.long
def test_a_batch_dataframe_goes_on_whatever_its_order_and_another_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [(None, 5, {"a": 1}), (2, 6, {}), (2, 6, None)]
    frame = spark.createDataFrame(rows, "k long, t long, m map<string, int>").repartition(2)
    first = read(spark, tmp_path / "state", frame)
    assert len(first) == 3
    other_way = spark.createDataFrame(rows[::-1], frame.schema).coalesce(1)
    for same in (frame, other_way, tg.source(None)):
        assert read(spark, tmp_path / "state", same) == first
    for other, then, now in (
        (frame.union(frame.limit(1)), "3 rows of k bigint, t bigint", "4 rows of k bigint, t bigint"),
        (frame.where("k is null"), "3 rows", "1 row of"),
        (frame.selectExpr("t k", "k t"), "with other values", "3 rows"),
        (frame.selectExpr("cast(k as int)", "t"), "3 rows of k bigint", "3 rows of k int"),
        ([(None, 5), (2, 6), (2, 6)], "3 rows", "3 rows"),
    ):
        with pytest.raises(StateError, match="TG506 E: the checkpoint was begun with another frame") as refused:
            read(spark, tmp_path / "state", other)
        before, after = refused.value.problems[0].because
        assert then in before
        assert now in after
    empty = spark.createDataFrame([], frame.schema)
    assert [read(spark, tmp_path / "empty", empty) for _ in range(2)] == [[], []]


def test_a_frame_is_the_same_for_a_session_after_spark(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(1, 5), (2, 6)]
    first = read(spark, tmp_path, rows)
    program = tg.program(All=tg.stream("E", "k bigint, t bigint", progress="t"))
    with program.session(sources={"E": rows}, checkpoint=tmp_path) as session:
        session.step()
        assert sorted(map(str, session.results("All"))) == first
    with pytest.raises(StateError, match="TG506"):
        program.session(sources={"E": rows[:1]}, checkpoint=tmp_path)


def test_of_rows_with_one_key_that_of_the_oldest_file_counts(spark: SparkSession, tmp_path: Path) -> None:
    """As embedded: by age, then by path, whatever order Spark offers files in."""
    events = tg.stream("E", "k bigint, t bigint, v bigint", progress="t")
    program = tg.program(Out=events)
    ages = {"c": 3, "a": 1, "b": 1, "d": 2}  # those of one age go by their names
    for first in ("a", "d"):
        directory = tmp_path / first
        directory.mkdir()
        for name, age in ages.items():
            if first == "a" or name in "cd":
                path = directory / f"{name}.parquet"
                pq.write_table(pa.table({"k": [1], "t": [5], "v": [ord(name)]}), path)
                os.utime(path, (1_600_000_000 + age, 1_600_000_000 + age))
        source = tg.parquet(directory, bounded=True, key=("k", "t"))
        for driver_bytes in (0, 64 << 20):
            place = tmp_path / f"{first}{driver_bytes}"
            program.start(spark, sources={"E": source}, checkpoint=place, driver_bytes=driver_bytes).awaitTermination()
            with program.session(sources={"E": source}, checkpoint=place) as session:
                assert [row["v"] for row in session.results("Out")] == [ord(first)]
        with program.session(sources={"E": source}) as session:
            session.step()
            assert [row["v"] for row in session.results("Out")] == [ord(first)]


#: Patterns, escapes and separators, in paths and in addresses. (A colon beside a pattern is beyond Hadoop.)
ODD = "a #1?%20[x]{y,z}*\\é;b"


def test_names_of_files_and_directories_are_taken_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    """In input, checkpoint and output, also where Spark takes a path without a scheme to be of another file system."""
    user = spark.newSession()
    user.conf.set("fs.defaultFS", "hdfs://127.0.0.1:9")
    folder, table = tmp_path / f"in {ODD}", tg.table("N", "k bigint, name string")
    folder.mkdir()
    for number, name in enumerate([f"{ODD}.csv", "x\ny.csv", "*.csv", "%zz.csv"]):
        (folder / name).write_text(f"k,t\n{number},2026-03-02T12:0{number}Z\n")
        os.utime(folder / name, (1_600_000_000 + number, 1_600_000_000 + number))
    for left_out in ("_k=1", ".k=1"):
        (folder / f"{left_out}.csv").write_text("half a ")
        (folder / left_out).mkdir()
        (folder / left_out / "a.csv").write_text("k,t\n8,2026-03-02T12:08Z\n")
    (tmp_path / "in a").mkdir()
    (tmp_path / "in a" / "b.csv").write_text("k,t\n9,2026-03-02T12:09Z\n")  # what a pattern would find as well
    e, n = instants.as_("e"), table.as_("n")
    program = tg.program(Out=e.join(n, e.k == n.k).group_by(e.t, n.name).agg(k=tg.max(e.k)))
    given: dict[str, Any] = {
        "statics": {"N": [(k, f"name {k}") for k in range(10)]},
        "checkpoint": tmp_path / f"state {ODD}",
        "sinks": {"Out": tg.parquet_sink(tmp_path / f"out {ODD}")},
        "sources": {"E": tg.csv(folder, per_batch=2)},
    }
    noon = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)
    for minutes in (2, 30):  # after the second call nothing is new but the call
        limits: dict[str, Any] = {"driver_bytes": 0, "shard_bytes": 0}
        query = program.start(
            user, **given, **limits, clock=lambda: noon, advance={"E": {"t": noon + dt.timedelta(minutes=minutes)}}
        )
        query.awaitTermination()
        assert {place for report in query.reports for place in report.places.values()} == {"catalyst"}
    with program.session(**given) as session:
        assert session.step().counts["E"].rows_in == 0
        assert sorted((row["k"], row["name"]) for row in session.results("Out")) == [(k, f"name {k}") for k in range(4)]
        assert session.counts["E"].rows_in == 4
