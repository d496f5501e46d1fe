"""A run never reads what it writes: places at, above or below each other are refused at the start, also through
links.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.runtime.state.test_foreign import content
from tidegate.algebra.errors import QueryError
from tidegate.runtime.cli.commands import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

e = tg.stream("E", "k bigint, t bigint", progress="t")
names = tg.table("N", "k bigint, name string")
a, n = e.as_("a"), names.as_("n")
PROGRAM = tg.program(A=e.select(e.k, e.t), B=a.join(n, a.k == n.k).select(a.t, n.name))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Inputs, and links to them from elsewhere."""
    for name, table in (("in", {"k": [1], "t": [1]}), ("names", {"k": [1], "name": ["one"]})):
        (tmp_path / "data" / name).mkdir(parents=True)
        pq.write_table(pa.table(table), tmp_path / "data" / name / "1.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    return tmp_path


def run(place: Path, spark: Any = None, **given: Any) -> None:
    """`state`, `a` and `b` say where; the rest where it is in most cases."""
    options = {
        "sources": {"E": given.get("e", tg.parquet(place / "data/in", bounded=True))},
        "statics": {"N": given.get("n", tg.parquet(place / "data/names"))},
        "sinks": {key.upper(): tg.parquet_sink(place / given[key]) for key in ("a", "b") if key in given},
        "checkpoint": place / given.get("state", "state"),
    }
    if spark is not None:
        PROGRAM.start(spark, **options).awaitTermination()
        return
    with PROGRAM.session(**options) as session:
        session.process()


def tops() -> Iterator[str]:
    for input_ in ("in", "names"):
        for top in ("data", "link"):
            yield f"{top}/{input_}"
            yield f"{top}/{input_}/deep/er"


@pytest.mark.parametrize("where", [*tops(), "data", "link", "."])
@pytest.mark.parametrize("role", ["state", "a"])
def test_at_above_or_below_an_input(place: Path, role: str, where: str) -> None:
    before = content(place)
    with pytest.raises(QueryError, match="TG409") as caught:
        run(place, **{role: where})
    inputs = [str(place / "data" / name) for name in ("in", "names")]
    assert any(path in caught.value.message for path in inputs)
    assert str(place / where) in caught.value.message
    assert caught.value.hint
    assert content(place) == before
    assert not (place / "data" / "in" / "deep").exists()


@pytest.mark.parametrize("where", ["state", "state/out", ".", "state/../state/results"])
def test_results_at_above_or_below_the_checkpoint(place: Path, where: str) -> None:
    (place / "elsewhere").symlink_to(place)
    for top in ("", "elsewhere/"):
        with pytest.raises(QueryError, match="TG409"):
            run(place / top, a=where, e=tg.source([], bounded=True), n=[(1, "one")])
    assert not (place / "state").exists()


def test_two_results_in_one_directory(place: Path) -> None:
    (place / "out").mkdir()
    (place / "same").symlink_to(place / "out")
    for other in ("out", "same", "out/../out"):
        with pytest.raises(QueryError, match=r"TG409 the results of B .*the results of A"):
            run(place, a="out", b=other)


def test_what_lies_side_by_side_is_legal(place: Path) -> None:
    """Names that begin alike; results of one program as the input of another; results in another's directory."""
    run(place, a="data/in2", b="data/in2/b", state="data/in-state")
    after = tg.program(C=e.select(e.t))
    again = tg.parquet(place / "data" / "in2", bounded=True)
    with after.session(sources={"E": again}, checkpoint=place / "data" / "state2") as session:
        session.process()
        assert session.table("C").arrow().num_rows == 1
    kept = tg.parquet(place / "data" / "in-state" / "results", bounded=True)
    with pytest.raises(QueryError, match="TG413"):
        after.session(sources={"E": kept}, checkpoint=place / "data" / "state3")


def test_results_of_the_command_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = place / "query.tps"
    query.write_text("FROM E PARTITION BY k DEFINE A AS k > 0 PATTERN A meets A WITHIN 10 RETURN first(A.k) AS k\n")
    command = ["run", "--query", str(query), "--time", "t", "--name", "1"]
    for given, out in [("data/in", "data/in"), ("link/in", "data/in/deep"), ("data/in/1.parquet", "link/in")]:
        before = content(place)
        assert main([*command, "--input", f"E={place / given}", "--out", str(place / out)]) == 1
        assert "TG409" in capsys.readouterr().err
        assert content(place) == before
    (place / "out").mkdir()
    (place / "out" / "1.parquet").symlink_to(place / "data/in/1.parquet")
    before = content(place)
    assert main([*command, "--input", f"E={place / 'data/names'}", "--out", str(place / "out")]) == 1
    assert "TG511" in capsys.readouterr().err
    assert content(place) == before


@pytest.mark.spark
def test_inputs_that_spark_reads(place: Path, spark: SparkSession) -> None:
    """Files, DataFrames that watch a directory or a pattern of ones, and those that have read it."""
    watching = spark.readStream.schema("k bigint, t bigint").parquet(str(place / "data/in"))
    pattern = spark.readStream.schema("k bigint, t bigint").parquet(str(place / "link/i[n]"))
    table = spark.read.parquet(str(place / "data/names"))
    for given, where in [
        ({}, "link/in/deep"),
        ({"e": watching}, "link/in/deep"),
        ({"e": watching.where("k > 0")}, "data"),
        ({"e": pattern}, "data/in"),
        ({"e": watching, "n": table}, "link/names"),
    ]:
        for role in ("state", "a"):
            before = content(place)
            with pytest.raises(QueryError, match="TG409"):
                run(place, spark, **given, **{role: where})
            assert content(place) == before


@pytest.mark.spark
def test_files_that_spark_reads_stay(place: Path, spark: SparkSession) -> None:
    """Those of a DataFrame, streaming or read, are in no directory that files leave, and in no archive."""
    other = tg.stream("F", "k bigint, t bigint", progress="t")
    both = tg.program(A=e.select(e.k, e.t), B=other.select(other.k, other.t))
    watching = tg.source(spark.readStream.schema("k bigint, t bigint").parquet(str(place / "data/in")))
    before = content(place)
    leaving: list[tuple[dict[str, Any], str]] = [({"delete": True}, "link"), ({"archive": place / "kept"}, "data/in")]
    for options, where in leaving:
        with pytest.raises(QueryError, match=r"TG425 .*F reads"):
            both.start(
                spark, sources={"E": tg.parquet(place / where, **options), "F": watching}, checkpoint=place / "state"
            )
    table = spark.read.parquet(str(place / "data/names"))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"delete": True}, "TG425"),
        ({"archive": place / "link/names/old"}, "TG423"),
    ]
    for options, code in refused:
        at = place / ("data/names" if code == "TG425" else "data/in")
        with pytest.raises(QueryError, match=rf"{code} .*N"):
            run(place, spark, e=tg.parquet(at, bounded=True, **options), n=table)
    assert content(place) == before
