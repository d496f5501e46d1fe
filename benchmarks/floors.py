"""What a batch of a few rows costs: five queries, on Spark (the whole trigger) and embedded (targets: 350 ms and 10 ms).

python benchmarks/floors.py
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks import queries
from benchmarks.run import write_files
from tidegate.runtime.embedded.session import Session
from tidegate.runtime.sinks import parquet_sink
from tidegate.runtime.sources import parquet
from tidegate.runtime.spark.engine import start
from tidegate.runtime.spark.session import spark_session

BATCHES, ROWS = 40, 50
events = queries.events


def program() -> tg.Program:
    """A window, a join with two groupings above it, a non-event, and a selection of the join."""
    a, b = events.as_("a"), events.as_("b")
    near = (a.key == b.key, a.time <= b.time, b.time <= a.time + tg.seconds(2))
    pairs = a.join(b, *near).select(key=a.key, time=b.time, one=a.value, other=b.value)
    return tg.program(
        Windows=events.group_by(events.key, end=tg.ceil(events.time, "1s")).agg(n=tg.count(), top=tg.max(events.value)),
        ByKey=pairs.group_by(key=pairs.key, end=tg.ceil(pairs.time, "1s")).agg(n=tg.count()),
        All=pairs.group_by(end=tg.ceil(pairs.time, "1s")).agg(n=tg.count(), top=tg.max(pairs.one)),
        Alone=a.anti_join(b, a.key == b.key, a.time < b.time, b.time <= a.time + tg.seconds(1)).select(
            key=a.key, time=a.time
        ),
        High=pairs.where(pairs.one > 0.9),
    )


def main() -> int:
    """Prints the median of each; the exit status says whether both targets are met."""
    spark = spark_session("tidegate-floors")
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "in"
        files.mkdir()
        write_files(files, queries.rows(BATCHES * ROWS, 20), BATCHES)
        source = parquet(files, per_batch=1, delay="1s", bounded=True)
        with Session(program().facts, sources={"Events": source}) as session:
            here = [1000 * sum(report.seconds.values()) for report in session.process()]
        facts = program().facts
        sinks = {name: parquet_sink(Path(folder) / "out" / name) for name in facts.streams}
        query = start(spark, facts, sources={"Events": source}, sinks=sinks, checkpoint=Path(folder) / "checkpoint")
        query.awaitTermination()
        there = [p["durationMs"]["triggerExecution"] for p in query.recentProgress if p["numInputRows"]]
    spark.stop()
    embedded, on_spark = statistics.median(here[5:]), statistics.median(there[5:])
    print(
        f"{BATCHES} batches of {ROWS} rows, five queries: embedded {embedded:.1f} ms, Spark {on_spark:.0f} ms a batch (medians)"
    )
    return 0 if embedded <= 10 and on_spark <= 350 else 1


if __name__ == "__main__":
    sys.exit(main())
