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
