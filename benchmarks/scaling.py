"""How far a batch on Spark scales beyond this machine's cores, by arithmetic over what one core has measured.

One core runs a batch that is cut for 4 to 64 cores, its tasks one after the other. On so many cores it would take: what
is around Spark's jobs, of each job what Spark takes beside the tasks, and its longest task. A batch that one core does
as it likes best is what that is compared with. The serial share is what is around the jobs, of that batch.

python benchmarks/scaling.py [--rows 20000000]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import PAIRS, SCALED_TO, Figure, declared, print_table
from benchmarks.files import write_files
from benchmarks.situations import events, program
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.setup.session import spark_session

#: Rows of a batch, its files, and its keys. The first batch compiles and is not counted.
ROWS, FILES, KEYS, BATCHES = 20_000_000, 64, 1000, 2
MS = 1000


@dataclass(frozen=True, slots=True)
class Job:
    """A job of Spark's: its name, its seconds, and those of its tasks."""

    name: str
    seconds: float
    tasks: list[float]


@dataclass(frozen=True, slots=True)
class Batch:
    """The last batch of a run: its seconds, and its jobs."""

    seconds: float
    jobs: list[Job]

    @property
    def around(self) -> float:
        """Seconds in which no job ran."""
        return self.seconds - sum(job.seconds for job in self.jobs)

    def on_cores(self) -> float:
        """Seconds on a core for each task."""
        jobs = sum(job.seconds - sum(job.tasks) + max(job.tasks) for job in self.jobs)
        return self.around + jobs


def main() -> int:
    """Prints the figures; the exit status is 0."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--times", type=int, default=PAIRS)
    options.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--tasks", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        print(json.dumps(asdict(run_one(chosen.one, chosen.tasks))))
    else:
        print_table(measure(chosen.rows, chosen.times))
    return 0


def measure(rows: int = ROWS, times: int = PAIRS) -> list[Figure]:
    """The speed-up for each number of cores, and the serial share of the batch that is cut for most."""
    figures = []
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        write_files(folder / "files", events("Q1", BATCHES * rows, KEYS), BATCHES * FILES)
        found: dict[int, list[Batch]] = {tasks: [] for tasks in (1, *SCALED_TO)}
        for _ in range(times):
            for tasks, batches in found.items():
                batches.append(_measured(folder, tasks))
    one = statistics.median(batch.seconds for batch in found[1])
    figures.append(declared("Q1, Spark, one core, a batch of 20M rows", one * MS))
    for tasks in SCALED_TO:
        ratios = [alone.seconds / batch.on_cores() for alone, batch in zip(found[1], found[tasks], strict=True)]
        batch = sorted(found[tasks], key=Batch.on_cores)[len(ratios) // 2]
        parts = ", ".join(
            f"{job.name}: {job.seconds - sum(job.tasks):.2f} s + {max(job.tasks):.2f} s" for job in batch.jobs
        )
        detail = f"worst {min(ratios):.2f} of {len(ratios)}; around jobs {batch.around:.2f} s; {parts}"
        figures.append(
            declared(f"Q1, Spark, speed-up on {tasks} cores by arithmetic", statistics.median(ratios), detail)
        )
    serial = [batch.around / alone.seconds for alone, batch in zip(found[1], found[SCALED_TO[-1]], strict=True)]
    figures.append(declared("Q1, Spark: around jobs / the batch on one core", max(serial), f"{len(serial)} runs"))
    for figure in figures:
        print(figure.line(), flush=True)
    return figures


def _measured(folder: Path, tasks: int) -> Batch:
    command = [sys.executable, __file__, "--one", str(folder), "--tasks", str(tasks)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    told = json.loads(done.stdout.splitlines()[-1])
    return Batch(told["seconds"], [Job(**job) for job in told["jobs"]])


def run_one(folder: Path, tasks: int) -> Batch:
    """A run on one core, cut for so many; with one task it does as it likes."""
    config = {
        "spark.master": "local[1]",
        "spark.driver.memory": "4g",
        "spark.default.parallelism": str(tasks),
    }
    spark = spark_session("tidegate-scaling", config=config)
    with tempfile.TemporaryDirectory() as work:
        query = start(
            spark,
            program("Q1").facts,
            sources={"Events": parquet(folder / "files", per_batch=FILES, delay=0, bounded=True)},
            sinks={"Found": parquet_sink(Path(work) / "out")},
            checkpoint=Path(work) / "checkpoint",
            driver_bytes=None if tasks == 1 else 0,
        )
        query.awaitTermination()
        last = query.reports[-1]
    found = Batch(sum(last.seconds.values()), _jobs(spark, f"tidegate batch {last.seq}:"))
    spark.stop()
    return found


def _jobs(spark: Any, named: str) -> list[Job]:
    """The jobs whose descriptions begin so, as Spark's own store of what ran has them."""
    store = spark.sparkContext._jsc.sc().statusStore()
    found = []
    jobs = store.jobsList(None)
    for number in range(jobs.size()):
        job = jobs.apply(number)
        description = job.description().getOrElse(None) or ""
        if not description.startswith(named):
            continue
        tasks: list[float] = []
        stages = job.stageIds()
        for place in range(stages.size()):
            told = store.taskList(stages.apply(place), 0, 1000)
            tasks += [told.apply(n).duration().get() / MS for n in range(told.size())]
        seconds = (job.completionTime().get().getTime() - job.submissionTime().get().getTime()) / MS
        found.append(Job(description.removeprefix(named).split()[0], seconds, tasks))
    return found


if __name__ == "__main__":
    sys.exit(main())
