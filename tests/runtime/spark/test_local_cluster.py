"""A small cluster of executors in processes of their own: the same results as in one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

#: In a process of its own, as there is one Spark session in each.
RUN = """
import sys
from pathlib import Path
from tests.runtime.spark.test_situations import expected, on_spark, results, write
from tidegate.runtime.engines.spark.setup.session import spark_session

folder = Path(sys.argv[1])
spark = spark_session("cluster", config={
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executorEnv.PYTHONPATH": sys.argv[2],
})
assert spark.sparkContext.master.startswith("local-cluster")
for keyed in (True, False):
    files = write(folder / f"in {keyed}", keyed=keyed)
    reports = on_spark(spark, files, folder / str(keyed), {"driver_bytes": 0}, keyed=keyed, per_batch=3)
    places = {place for report in reports for place in report.places.values()}
    assert places == ({"sharded"} if keyed else {"driver"}), places
    assert not any(report.interleaved for report in reports)
    assert results(folder / str(keyed) / "out") == expected(files, keyed=keyed)
spark.stop()
print("equal")
"""


@pytest.mark.long
@pytest.mark.spark
def test_executors_of_a_cluster_find_the_same_with_and_without_a_key(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path), str(ROOT)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.endswith("equal\n"), done.stderr[-3000:]


#: An executor is killed after each of the first batches, while workers of both hold operators.
LOST = """
import os
import signal
import sys
from pathlib import Path
from tests.runtime.spark.test_situations import expected, program, results, source, write
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.setup.session import spark_session

folder = Path(sys.argv[1])
spark = spark_session("cluster", config={
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executorEnv.PYTHONPATH": sys.argv[2],
})


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_below(pid):
    while pid > 1 and pid != os.getpid():
        pid = parent(pid)
    return pid == os.getpid()


def executors():
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"CoarseGrainedExecutorBackend" in path.read_bytes() and is_below(int(path.parent.name)):
                found.append(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return sorted(found)


killed = []


def kill_one(report):
    if len(killed) < 2:
        killed.append(next(pid for pid in executors() if pid not in killed))
        os.kill(killed[-1], signal.SIGKILL)


files = write(folder / "in")
query = start(
    spark,
    program().facts,
    sources={"R": source(files, 1)},
    sinks={name: parquet_sink(folder / "out" / name) for name in ("Found", "Sums", "Alone")},
    checkpoint=folder / "checkpoint",
    driver_bytes=0,
    options=RunOptions(on_batch=kill_one),
)
query.awaitTermination()
assert len(killed) == 2
assert {place for report in query.reports for place in report.places.values()} == {"sharded"}
assert results(folder / "out") == expected(files)
spark.stop()
print("equal")
"""


@pytest.mark.long
@pytest.mark.spark
def test_executors_that_are_killed_cost_what_their_workers_held(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOST, str(tmp_path), str(ROOT)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.endswith("equal\n"), done.stderr[-3000:]
