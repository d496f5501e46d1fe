"""Tasks of the Spark engine that note what they read, and in which a worker or its executor is lost at a named place.

The driver makes its jobs of watched tasks. Each attempt at one notes its reads in a file of its own, line by line, so
that what a killed attempt has read is known too.
"""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TextIO
from unittest.mock import patch

import polars as pl
from pyspark.sql import SparkSession

from tidegate.runtime.batch.executor import Rewrite
from tidegate.runtime.engines.spark.eval.ordered_shards import OrderedJob
from tidegate.runtime.engines.spark.eval.portions import PortionJob
from tidegate.runtime.engines.spark.tasks.running import Tasks, Work, run_tasks
from tidegate.runtime.engines.spark.workers import IngestContext, WriteTarget
from tidegate.runtime.state.failpoints import FAILPOINTS
from tools.processes import command_line

Lost = Literal["worker", "daemon", "executor"]
BEGUN: Final = "task-begun"
DONE: Final = "task-done"
_LOST: Final = "lost"
_READS: Final = "reads"


@dataclass(frozen=True, slots=True)
class Loss:
    """A process that is killed in a task: a worker, the daemon that makes workers with it, or their executor.

    The task does `work` in the job of that number which does such work, or in a later one that gets to the place first.
    `place` is a failpoint of the worker's store, or `BEGUN` or `DONE`: nothing is told to the driver yet.
    """

    work: str
    job: int
    place: str
    lost: Lost = "worker"

    @property
    def name(self) -> str:
        return f"{self.work} {self.job} {self.place} {self.lost}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a task, as its notes tell: what it was to do, who did it, what it read, and whether it got to its
    end.
    """

    seq: int
    work: str
    queries: tuple[str, ...]
    number: int
    pid: int
    executor: int
    began: float
    read: tuple[str, ...] = ()
    done: bool = False

    @property
    def task(self) -> tuple[int, str, tuple[str, ...], int]:
        return self.seq, self.work, self.queries, self.number

    def of(self, area: str) -> list[str]:
        """What it read of an area of the checkpoint."""
        return [path for path in self.read if path.startswith(f"{area}/")]


@dataclass(slots=True)
class Watch:
    """The driver's side: makes watched tasks of tasks, and says which of them loses a process."""

    folder: Path
    losses: Sequence[Loss] = ()
    jobs: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for name in (_LOST, _READS):
            (self.folder / name).mkdir(parents=True)

    def run_tasks(self, spark: SparkSession, given: Sequence[Tasks]) -> list[dict[str, Any]]:
        return run_tasks(spark, [self._watched(tasks) for tasks in given])

    def _watched(self, tasks: Tasks) -> Tasks:
        name = _function(tasks.work)
        self.jobs[name] += 1
        left = (loss for loss in self.losses if loss.work == name and loss.job <= self.jobs[name])
        loss = next((loss for loss in left if not (self.folder / _LOST / loss.name).exists()), None)
        work = partial(watched, str(self.folder), os.getpid(), loss, tasks.work)
        return Tasks(work, [[number, own] for number, own in enumerate(tasks.own)])


def losses(folder: Path) -> set[str]:
    """The names of what was lost."""
    return {path.name for path in (folder / _LOST).iterdir()}


def attempts(folder: Path) -> list[Attempt]:
    """All attempts at tasks, in the order in which they began."""
    return sorted(map(_attempt, (folder / _READS).iterdir()), key=lambda one: one.began)


def _attempt(path: Path) -> Attempt:
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    done = lines[-1:] == [DONE]
    known = json.loads(head)
    known["queries"] = tuple(known["queries"])
    return Attempt(**known, read=tuple(lines[: len(lines) - done]), done=done)


# --- in a worker


def watched(folder: str, driver: int, loss: Loss | None, work: Work, given: Any) -> Iterator[str]:
    """A task that notes what it reads, and loses what `loss` says."""
    number, own = given
    target = _target(work)
    store = target.held.store

    def lose() -> None:
        assert loss is not None
        _kill_once(Path(folder), driver, loss)

    notes = Path(folder) / _READS / uuid.uuid4().hex
    with ExitStack() as stack:
        # A line at a time: what a killed process has noted stays.
        file = stack.enter_context(notes.open("w", buffering=1, encoding="utf-8"))
        executor = [*_ancestors(os.getpid()), 0][1]
        head = {"seq": target.seq, "work": _function(work), "queries": _queries(work), "number": number}
        file.write(json.dumps({**head, "pid": os.getpid(), "executor": executor, "began": time.time()}) + "\n")
        for at, name in ((store, "read_table"), (store, "read_shard"), (pl, "read_parquet")):
            stack.enter_context(patch.object(at, name, _noting(getattr(at, name), file)))
        if loss is not None and loss.place in FAILPOINTS:
            store.failpoints.arm(loss.place, lose)
            stack.callback(store.failpoints.disarm)
        if loss is not None and loss.place == BEGUN:
            lose()
        lines = list(work(own))
        if loss is not None and loss.place == DONE:
            lose()
        file.write(f"{DONE}\n")
    yield from lines


def _noting(read: Callable[..., Any], file: TextIO) -> Callable[..., Any]:
    def noted(path: Any, *given: Any, **options: Any) -> Any:
        file.write(f"{path}\n")
        return read(path, *given, **options)

    return noted


def _kill_once(folder: Path, driver: int, loss: Loss) -> None:
    """Kills it, unless another task has; nothing but what this driver has started."""
    daemon, executor, *others = [*_ancestors(os.getpid()), 0, 0]
    if loss.lost != "worker":
        if driver not in others or b"pyspark.daemon" not in command_line(daemon):
            return  # an orphan of a daemon that was lost before
        assert b"CoarseGrainedExecutorBackend" in command_line(executor)
    try:
        (folder / _LOST / loss.name).touch(exist_ok=False)
    except FileExistsError:
        return
    if loss.lost == "executor":
        os.kill(executor, signal.SIGKILL)  # this worker goes on for a moment: nobody hears of what it writes
        return
    if loss.lost == "daemon":
        os.kill(daemon, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _ancestors(pid: int) -> list[int]:
    """Who has started a process, who has started that one, and so on."""
    found: list[int] = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


# --- what a work is: a function of a module with its arguments


def _function(work: Work) -> str:
    assert isinstance(work, partial)
    return str(work.func.__name__)


def _target(work: Work) -> WriteTarget:
    assert isinstance(work, partial)
    first = work.args[0]
    target = first.target if isinstance(first, IngestContext) else first
    assert isinstance(target, WriteTarget)
    return target


def _queries(work: Work) -> list[str]:
    """The queries that a task evaluates, or the buffers whose segments it writes anew; none where it takes in files."""
    assert isinstance(work, partial)
    if isinstance(work.args[0], IngestContext):
        return []
    jobs = [job for some in work.args[1] for job in (some if isinstance(some, list) else [some])]
    if jobs and isinstance(jobs[0], Rewrite):
        return [job.buffer.id for job in jobs]
    return [(job.job if isinstance(job, OrderedJob | PortionJob) else job).query.name for job in jobs]
