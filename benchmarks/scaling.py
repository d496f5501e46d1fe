"""How far a batch on Spark scales beyond this machine's cores, by arithmetic over what one core has measured.

One core runs a batch that is cut for 4 to 64 cores, its tasks one after the other. On so many cores it would take: what
is around Spark's jobs, of each job what Spark takes beside the tasks, and its longest task. A batch that one core does
as it likes best is what that is compared with. The serial share is what is around the jobs, of that batch. It is the
eleventh batch of a run, after ten small ones.

What the driver takes of all CPU time is measured on a cluster with one executor, whose processes are its own: of the
driver are this process and its JVM.

python benchmarks/scaling.py [--rows 20000000]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import PAIRS, SCALED_TO, Figure, declared, print_table
from benchmarks.situations import events, program
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.setup.session import spark_session
from tools.processes import cpu_seconds, family

#: Rows of the batch that counts, its files, and its keys.
ROWS, FILES, KEYS = 20_000_000, 64, 1000
#: Batches before it, and rows of each of their files: the JVM, the driver and the workers do all of it some times.
WARM, FEW = 10, 2000
MS = 1000
#: MiB of an executor.
MEMORY = 2048
ROOT = Path(__file__).resolve().parent.parent


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
    if chosen.one and chosen.tasks:
        print(json.dumps(asdict(run_one(chosen.one, chosen.tasks))))
    elif chosen.one:
        print(json.dumps(run_apart(chosen.one)))
    else:
        print_table(measure(chosen.rows, chosen.times))
    return 0


def measure(rows: int = ROWS, times: int = PAIRS) -> list[Figure]:
    """The speed-up for each number of cores, and the serial share of the batch that is cut for most."""
    figures = []
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        _write(folder / "files", rows)
        found: dict[int, list[Batch]] = {tasks: [] for tasks in (1, *SCALED_TO)}
        cpu: list[tuple[float, float]] = []
        for _ in range(times):
            for tasks, batches in found.items():
                told = _told(folder, "--tasks", str(tasks))
                batches.append(Batch(told["seconds"], [Job(**job) for job in told["jobs"]]))
            cpu.append(_told(folder))
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
    shares = [driver / whole for driver, whole in cpu]
    detail = f"{len(cpu)} runs, the last {cpu[-1][0]:.2f} s of {cpu[-1][1]:.2f} s"
    figures.append(declared("Q1, Spark, a batch of 20M rows: CPU of the driver / of all", max(shares), detail))
    for figure in figures:
        print(figure.line(), flush=True)
    return figures


def _write(folder: Path, rows: int) -> None:
    """The files of small batches, and then those of a large one."""
    sizes = [FEW] * (WARM * FILES) + [-(-rows // FILES)] * FILES
    frame, now, begin = events("Q1", sum(sizes), KEYS), time.time(), 0
    folder.mkdir()
    for number, size in enumerate(sizes):
        path = folder / f"{number:05d}.parquet"
        frame.slice(begin, size).write_parquet(path)
        os.utime(path, (now - len(sizes) + number,) * 2)
        begin += size


def _told(folder: Path, *more: str) -> Any:
    """What a process of its own has measured."""
    command = [sys.executable, __file__, "--one", str(folder), *more]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_one(folder: Path, tasks: int) -> Batch:
    """A run on one core, cut for so many; with one task it does as it likes."""
    spark = _session("local[1]", tasks)
    last = _run(spark, folder, None if tasks == 1 else 0)[-1]
    found = Batch(sum(last.seconds.values()), jobs_named(spark, f"tidegate batch {last.seq}:"))
    spark.stop()
    return found


def run_apart(folder: Path) -> tuple[float, float]:
    """CPU seconds of the last batch, those of the driver and all, of a run on an executor, cut for most cores."""
    executor = {"spark.executorEnv.PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    spark = _session(f"local-cluster[1,1,{MEMORY}]", SCALED_TO[-1], executor)
    jvm = int(spark._jvm.ProcessHandle.current().pid())  # type: ignore[union-attr]  # a session in this process has one
    taken: list[tuple[float, float]] = []

    def committed(_: object) -> None:
        own = time.process_time()
        taken.append((own + cpu_seconds([jvm]), own + cpu_seconds(family(jvm))))

    _run(spark, folder, 0, committed)
    spark.stop()
    before, after = taken[-2:]
    return after[0] - before[0], after[1] - before[1]


def _session(master: str, tasks: int, config: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    settings = {"spark.master": master, "spark.driver.memory": "4g", "spark.default.parallelism": str(tasks)}
    return spark_session("tidegate-scaling", config={**settings, **config})


def _run(
    spark: SparkSession, folder: Path, driver_bytes: int | None, on_batch: Callable[[BatchReport], None] | None = None
) -> list[BatchReport]:
    """The batches of a run over all files."""
    with tempfile.TemporaryDirectory() as work:
        query = start(
            spark,
            program("Q1").facts,
            sources={"Events": parquet(folder / "files", per_batch=FILES, delay=0, bounded=True)},
            sinks={"Found": parquet_sink(Path(work) / "out")},
            checkpoint=Path(work) / "checkpoint",
            driver_bytes=driver_bytes,
            options=RunOptions(on_batch=on_batch),
        )
        query.awaitTermination()
        return query.reports


def jobs_named(spark: Any, named: str) -> list[Job]:
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
