"""A run on the executors of a small cluster of its own that loses workers, daemons and executors again and again.

    python -m tests.runtime.spark.lost_workers PLACE ROOT

It reads the files below PLACE twice with the program of `SCENARIO`: undisturbed into `quiet`, and with the losses that
are listed here into `losing`. `watched_tasks` tells what its tasks have read.
"""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

import tidegate as tg
from tests.runtime.faults.on_files import run_on_spark
from tests.runtime.faults.scenarios import NAMES, ONCE, Scenario, e, f, names
from tests.runtime.spark.watched_tasks import BEGUN, DONE, Loss, Lost, Watch
from tidegate.runtime.engines.spark import executor
from tidegate.runtime.engines.spark.eval import portions
from tidegate.runtime.engines.spark.setup.session import spark_session
from tools.kill_loop import python_workers
from tools.processes import command_line, descendants

FILES = 10

#: In the middle of tasks of every kind: as one begins, with a file half done, and before anything is told of it.
IN_TASKS = (
    Loss("ingest_files", 2, "store-file-written"),
    Loss("ingest_files", 5, DONE),
    Loss("ingest_files", 8, BEGUN, "daemon"),
    Loss("evaluate_ordered", 2, "store-file-synced"),
    Loss("evaluate_ordered", 4, DONE),
    Loss("evaluate_ordered", 6, "store-file-written", "executor"),
    Loss("evaluate_shards", 3, "store-file-written"),
    Loss("evaluate_shards", 9, DONE, "daemon"),
    Loss("rewrite_segments", 1, "store-file-written"),
)
#: After batches, by their number.
BETWEEN: Mapping[int, Lost] = {3: "worker", 6: "executor", 8: "daemon"}
#: What each run loses.
RUNS: Mapping[str, tuple[Sequence[Loss], Mapping[int, Lost]]] = {"quiet": ((), {}), "losing": (IN_TASKS, BETWEEN)}


def program() -> tg.Program:
    """Operators with state, a join by key and a grouping of what it finds, and rows with those of a static table."""
    periods = e.partition_by("k", tie="v").derive(
        A=tg.situation(e.v > 4, n=tg.count(), most=tg.max(e.v)), B=tg.situation(e.v < 8, n=tg.count())
    )
    high, low = periods.A, periods.B
    early = tg.match(high.overlaps(low) | high.during(low), within=80)
    a, b, n = e.as_("a"), f.as_("b"), names.as_("n")
    near = tg.result_of("Near", a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 15).select(k=a.k, s=a.t, t=b.t))
    named = a.join(n, a.k == n.k)
    return tg.program(
        Early=early.select("k", s=high.ts, u=low.ts, n=high.n, t="detected"),
        Long=low,
        Counted=near.group_by(k=near.k, w=tg.ceil(near.t, 10)).agg(n=tg.count()),
        Named=named.group_by(name=n.name, w=tg.ceil(a.t, 10)).agg(total=tg.sum(a.v)),
    )


def scenario() -> Scenario:
    return Scenario(program(), (), {"N": NAMES}, ONCE)


def lose(what: Lost) -> None:
    """Kills, of what this process has started, the workers that wait for a task, their daemons, or an executor."""
    if what == "executor":
        backends = [pid for pid in descendants(os.getpid()) if b"CoarseGrainedExecutorBackend" in command_line(pid)]
        os.kill(backends[0], signal.SIGKILL)
        return
    kind = "a worker" if what == "worker" else "the daemon"
    found = [pid for pid, is_ in python_workers(os.getpid()) if is_ == kind]
    assert found
    for pid in found:
        os.kill(pid, signal.SIGKILL)


def main(place: Path, root: str) -> None:
    one = scenario()
    spark = spark_session(
        "lost-workers",
        config={"spark.master": "local-cluster[2,1,1024]", "spark.executorEnv.PYTHONPATH": root},
    )
    for name, (losses, between) in RUNS.items():
        (place / name).mkdir()
        (place / name / "in").symlink_to(place / "in")

        def after(report: object, between: Mapping[int, Lost] = between) -> None:
            if (what := between.get(report.seq)) is not None:  # type: ignore[attr-defined]  # a report
                lose(what)

        watch = Watch(place / name / "notes", losses)
        # Both runs have the same tasks, whatever these take.
        with patch.object(portions, "WORTH", math.inf), patch.object(executor, "run_tasks", watch.run_tasks):
            run_on_spark(one, place / name, spark, on_batch=after)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
