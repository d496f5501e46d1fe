"""A wheel on Python's path, as `spark-submit --py-files` puts it there: nothing may look for its own files on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import polars as pl
import pytest

import tidegate as tg

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = """
import numpy as np
import pyarrow as pa
import tidegate as tg

events = tg.stream("E", "k bigint, t bigint, x boolean", progress="t")
found = tg.read_query("FROM E PARTITION BY k DEFINE A AS x, B AS NOT x PATTERN A meets B WITHIN 200", events)
n = 40_000
rows = pa.table({"k": np.arange(n) % 7, "t": np.arange(n), "x": (np.arange(n) // 70) % 2 == 0})
print(".whl" in tg.__file__, len(tg.program(Found=found).run({"E": rows})["Found"]))
"""


ON_SPARK = """
import sys

from pyspark.sql import SparkSession

import tidegate as tg

spark = SparkSession.builder.getOrCreate()
events = tg.stream("E", "k bigint, t bigint, x bigint", progress="t")
e, f = events.as_("e"), events.as_("f")
pairs = e.join(f, e.k == f.k, e.t < f.t, f.t <= e.t + 10)
query = tg.program(Pairs=pairs.select(e.k, e.t, later=f.t)).start(
    spark, sources={"E": tg.parquet(sys.argv[1], bounded=True)}, checkpoint=sys.argv[2], driver_bytes=0, shard_bytes=0
)
query.awaitTermination()
places = sorted({place for report in query.reports for place in report.places.values()})
print(".whl" in tg.__file__, spark.sparkContext.master[:13], places, len(query.table("Pairs")))
spark.stop()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    tree = place / "tree"
    tree.mkdir()
    for name in ("algebra", "analysis", "contexts", "runtime", "tidegate"):
        shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, tree / name)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(place), "."]
    subprocess.run(build, cwd=tree, check=True, capture_output=True)
    (built,) = place.glob("*.whl")
    return built


@pytest.mark.long
def test_a_program_runs_from_a_wheel(tmp_path: Path, wheel: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    told = []
    for path in (ROOT, wheel):
        environment = os.environ | {"PYTHONPATH": str(path)}
        ran = subprocess.run(
            [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        told.append(ran.stdout.split() or [ran.stderr])
    assert told == [["False", "2002"], ["True", "2002"]]
    assert tg.__version__ in wheel.name


def without_tidegate(place: Path) -> Path:
    """A Python that has everything installed that this one has, but for Tidegate."""
    venv.create(place, with_pip=False, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "tidegate" not in entry.name and not (packages / entry.name).exists():
            (packages / entry.name).symlink_to(entry)
    return place / "bin" / "python"


@pytest.mark.long
@pytest.mark.spark
def test_executors_of_a_cluster_find_all_in_the_wheel_that_was_submitted(tmp_path: Path, wheel: Path) -> None:
    import pyspark

    from tidegate.runtime.engines.spark.setup.java import ensure_java

    ensure_java()
    python = without_tidegate(tmp_path / "python")
    (tmp_path / "program.py").write_text(ON_SPARK)
    (tmp_path / "in").mkdir()
    frame = pl.DataFrame({"k": [n % 50 for n in range(5_000)], "t": [*range(5_000)], "x": [0] * 5_000})
    frame.with_columns(t=pl.col("t") // 50).write_parquet(tmp_path / "in" / "1.parquet")
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [*submit, "--py-files", str(wheel), "program.py", "in", str(tmp_path / "state")],
        cwd=tmp_path,
        env=environment | {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.stdout.split("\n")[-2:-1] == [f"True local-cluster ['catalyst'] {50 * (90 * 10 + 45)}"], ran.stderr[
        -3000:
    ]
