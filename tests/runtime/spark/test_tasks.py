"""Jobs of plain texts on Spark: as PySpark runs them, with fewer calls to the JVM."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection  # type: ignore[import-untyped]  # it has no types
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidegate.runtime.engines.spark.tasks import jobs_of_texts
from tidegate.runtime.engines.spark.tasks.jobs_of_texts import collected
from tidegate.runtime.engines.spark.tasks.running import Tasks, tasks_as_rows

pytestmark = pytest.mark.spark


def doubled(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from (text, f"{text} again \udcff\n")


def failing(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        if text == "3":
            raise ZeroDivisionError(text)
        yield text


def importing(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        __import__(text)
        yield text if any("lately.zip" in place for place in sys.path) else "from elsewhere"


def test_each_text_is_a_task_and_their_lines_are_in_order(spark: SparkSession) -> None:
    texts = [str(number) for number in range(7)]
    expected = [line for text in texts for line in (text, f"{text} again \udcff\n")]
    for some, wanted in ((texts, expected), (texts[:1], expected[:2]), (["é" * 100_000], None)):
        found = collected(spark.sparkContext, doubled, some)
        assert found == (wanted or [some[0], f"{some[0]} again \udcff\n"])


def test_what_a_task_raises_is_told_as_by_pyspark(spark: SparkSession) -> None:
    context, texts = spark.sparkContext, [str(number) for number in range(5)]
    with pytest.raises(Exception, match="ZeroDivisionError: 3") as own:
        collected(context, failing, texts)
    with pytest.raises(Exception, match="ZeroDivisionError: 3") as theirs:
        context.parallelize(texts, len(texts)).mapPartitions(failing).collect()
    assert own.type is theirs.type


def test_what_is_large_goes_as_a_broadcast(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert collected(spark.sparkContext, doubled, ["a"]) == ["a", "a again \udcff\n"]
    monkeypatch.setattr(jobs_of_texts._KNOWN[spark.sparkContext], "most_bytes", 10)
    assert collected(spark.sparkContext, doubled, ["a"]) == ["a", "a again \udcff\n"]


def padded(_: bytes, texts: Iterable[str]) -> Iterator[str]:
    return doubled(texts)


def padded_failing(_: bytes, texts: Iterable[str]) -> Iterator[str]:
    return failing(texts)


def padded_summary(_: bytes, own: Any) -> Iterator[str]:
    yield json.dumps({"own": own})


@pytest.fixture
def broadcasts(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is broadcast in a test."""
    made: list[Any] = []

    def counted(self: SparkContext, value: Any) -> Any:
        made.append(broadcast(self, value))
        return made[-1]

    broadcast = SparkContext.broadcast
    monkeypatch.setattr(SparkContext, "broadcast", counted)
    return made


def test_the_file_of_a_broadcast_goes_with_its_job(spark: SparkSession, broadcasts: list[Any]) -> None:
    """PySpark would keep it until the JVM ends."""
    context, large = spark.sparkContext, os.urandom(2 << 20)
    before = sorted(os.listdir(context._temp_dir))
    assert collected(context, partial(padded, large), ["a", "b"])[::2] == ["a", "b"]
    with pytest.raises(Exception, match="ZeroDivisionError: 3"):
        collected(context, partial(padded_failing, large), ["1", "3"])
    with tasks_as_rows(spark, [Tasks(partial(padded_summary, large), [1, [2]])]) as rows:
        lines = [json.loads(row.summary) for frame in rows for row in frame.collect()]
    assert lines == [{"own": 1}, {"own": [2]}]
    assert len(broadcasts) == 3
    assert sorted(os.listdir(context._temp_dir)) == before


def test_what_is_small_is_no_broadcast(spark: SparkSession, broadcasts: list[Any]) -> None:
    assert collected(spark.sparkContext, partial(padded, b"few"), ["a"])[0] == "a"
    with tasks_as_rows(spark, [Tasks(partial(padded_summary, b"few"), [1])]) as rows:
        assert [json.loads(row.summary) for frame in rows for row in frame.collect()] == [{"own": 1}]
    with tasks_as_rows(spark, []) as rows:
        assert rows == []
    assert not broadcasts


def test_a_job_takes_few_calls_to_the_jvm(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    context, calls = spark.sparkContext, []
    send = ClientServerConnection.send_command

    def counted(self: Any, command: str) -> Any:
        calls.append(command)
        return send(self, command)

    collected(context, doubled, ["a", "b"])
    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    collected(context, doubled, ["a", "b"])
    own = len([call for call in calls if not call.startswith("m\n")])  # those that let go of objects come at any time
    calls.clear()
    context.parallelize(["a", "b"], 2).mapPartitions(doubled).collect()
    theirs = len([call for call in calls if not call.startswith("m\n")])
    assert own <= 10
    assert theirs > 2 * own


def test_files_that_were_added_later_are_there(spark: SparkSession, tmp_path: Path) -> None:
    import zipfile

    collected(spark.sparkContext, doubled, ["a"])
    with zipfile.ZipFile(tmp_path / "lately.zip", "w") as archive:
        archive.writestr("added_lately.py", "")
    spark.sparkContext.addPyFile(str(tmp_path / "lately.zip"))
    assert collected(spark.sparkContext, importing, ["added_lately"]) == ["added_lately"]
