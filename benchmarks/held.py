"""How much memory a query takes beyond its process's base, beside its live state: a process of its own for each.

python benchmarks/held.py ENGINE QUERY FILES FEW [HEAP] prints what was measured as JSON; FEW are files to warm up with,
HEAP is that of the JVM, 2g unless told.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import queries
from benchmarks.comparing import same
from benchmarks.data import Data
from benchmarks.embedded import source
from benchmarks.figures import HELD, Figure, memory_figures
from benchmarks.memory import Peak, gained, resident
from tidegate.runtime.connectors.sinks import DiscardSink, Sink
from tidegate.runtime.engines.embedded.session import Session


def measure(data: Data, engine: str) -> tuple[list[Figure], bool]:
    """Peaks beside what they may be, per query, and whether results were right."""
    figures, equal = [], True
    for name in HELD:
        files = data.wide if name == "wide join" else data.large if engine == "Spark" else data.files
        few = data.wide_few if name == "wide join" else data.few
        command = [sys.executable, __file__, engine, name, str(files), str(few)]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        made = memory_figures(name, engine, found["live"], found["more"])
        equal = equal and found["equal"]
        figures += made
        for figure in made:
            print(figure.line(), flush=True)
    return figures, equal


def _embedded(name: str, files: Path, few: Path) -> dict[str, Any]:
    """Of the four queries results are discarded: they are compared where speed is measured."""
    _run_embedded(name, few)
    base = resident("VmRSS")
    live, result = _run_embedded(name, files)
    more = gained(base)
    return {"live": live, "more": more, "equal": result is None or same(name, result, _expected(name, files))}


def _run_embedded(name: str, files: Path) -> tuple[int, pl.DataFrame | None]:
    """The greatest live state in bytes, and the result of a query with little of it."""
    facts = queries.program(name).facts
    (stream,) = facts.streams
    sinks: dict[str, Sink] = {} if name == "wide join" else {stream: DiscardSink()}
    live = 0
    with Session(facts, sources={"Events": source(files)}, sinks=sinks) as session:
        while session.waiting_files():
            live = max(live, sum(session.step().live_bytes.values()))
        return live, None if sinks else pl.DataFrame(session.table(stream))


def _spark(name: str, files: Path, few: Path, heap: str = "2g") -> dict[str, Any]:
    """Of driver, JVM and workers together, in a session as users have it, sampled."""
    from benchmarks.on_spark import tidegate
    from tidegate.runtime.engines.spark.setup.session import spark_session

    spark = spark_session("tidegate-memory", config={"spark.driver.memory": heap})
    with tempfile.TemporaryDirectory() as work:
        tidegate(spark, name, few, work)
        with Peak() as peak:
            _, result, live = tidegate(spark, name, files, work)
    spark.stop()
    return {"live": live, "more": peak.more, "equal": same(name, result, _expected(name, files))}


def _expected(name: str, files: Path) -> pl.DataFrame:
    return queries.batch_polars(name, pl.scan_parquet(f"{files}/*.parquet"))


if __name__ == "__main__":
    _measure_one = _spark if sys.argv[1] == "Spark" else _embedded
    print(json.dumps(_measure_one(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), *sys.argv[5:])))
