"""The session that Tidegate starts: its settings hold, and Python stages and micro-batches run on it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidegate.runtime.engines.spark.setup.session import query_settings, session_settings, socket_settings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def workers_python(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The executable and the Tidegate that a worker runs."""
    import pyarrow

    import tidegate

    for _ in batches:
        yield pyarrow.record_batch({"python": [sys.executable], "tidegate": [tidegate.__file__]})


def test_tests_on_spark_run_in_one_process(request: pytest.FixtureRequest) -> None:
    """xdist keeps tests together whose names end alike."""
    assert "PYTEST_XDIST_WORKER" not in os.environ or request.node.nodeid.endswith("@spark")


def test_the_settings_hold(spark: SparkSession) -> None:
    wanted = session_settings(cores=2, local=True)
    assert {key: spark.conf.get(key, None) for key in wanted if key.startswith("spark.sql.")} == {
        key: value for key, value in wanted.items() if key.startswith("spark.sql.")
    }
    assert spark.conf.get("spark.ui.enabled") == "false"


def test_workers_and_the_jvm_talk_through_files_of_this_user(spark: SparkSession) -> None:
    """Through TCP each task would wait for an acknowledgement."""
    directory = Path(socket_settings()["spark.python.unix.domain.socket.dir"])
    assert spark.sparkContext.getConf().get("spark.python.unix.domain.socket.dir") == str(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert any(stat.S_ISSOCK(path.stat().st_mode) for path in directory.iterdir())


def test_a_directory_with_a_long_path_has_no_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far = tmp_path / ("x" * 100)
    far.mkdir()
    made: list[Path] = []

    def in_far(*, prefix: str, dir: str) -> str:  # mkdtemp's name
        made.append(far / f"{prefix}{len(made)}")
        made[-1].mkdir()
        return str(made[-1])

    monkeypatch.setattr("tempfile.mkdtemp", in_far)
    assert socket_settings.__wrapped__() == {}
    assert len(made) == 2


def test_every_setting_of_the_sessions_beside_the_users_is_in_the_manual() -> None:
    page = Path(__file__).parents[3] / "docs" / "explanation" / "how-it-runs.md"
    listed = {line.split("`")[1] for line in page.read_text().splitlines() if line.startswith("| `spark.")}
    assert set(query_settings(cores=2)) <= listed


def test_a_session_that_runs_is_returned(spark: SparkSession) -> None:
    from tidegate.runtime.engines.spark.setup.session import spark_session

    assert spark_session("another", master="local[2]", config={"spark.sql.shuffle.partitions": "2"}) is spark


def test_workers_run_this_python_and_import_tidegate(spark: SparkSession) -> None:
    import tidegate

    rows = spark.range(1).mapInArrow(workers_python, "python string, tidegate string").collect()
    assert {(row.python, Path(row.tidegate).resolve()) for row in rows} == {
        (sys.executable, Path(tidegate.__file__).resolve())
    }


def test_a_streaming_query_runs_python_in_its_batches(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1000).write.parquet(str(tmp_path / "in"))
    seen: list[int] = []

    def batch(frame: DataFrame, _: int) -> None:
        def small(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow.compute as pc

            for part in batches:
                yield part.filter(pc.less(part.column(0), 10))

        seen.append(frame.mapInArrow(small, "id long").count())

    query = (
        spark.readStream.schema("id long")
        .parquet(str(tmp_path / "in"))
        .writeStream.foreachBatch(batch)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    assert seen == [10]
