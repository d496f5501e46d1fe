"""Random kills of a running program: whatever is shot, whenever, the results in the end are those of an undisturbed run.

    python tools/kill_loop.py --embedded 45 --spark 10 --workers 8 --seed 0

Each kill is a SIGKILL: of the whole process group of a run, embedded or on Spark with its JVM, or of one Python worker of
Spark. Half of them come while the run starts and recovers, half after some more batches were committed. A run that was
killed is started again on the same checkpoint until it ends; then its published files, counts and progress are compared
with those of a run that nothing disturbed, and another run begins with other rows. Prints counts; exit status 1 on the
first difference, with the directory that shows it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tidegate as tg  # noqa: E402  # found from wherever this is started
from tidegate.runtime.embedded.session import Session  # noqa: E402
from tidegate.runtime.state import LocalStore, SourceCounts, inspect  # noqa: E402

#: Files of a run, each read in a batch of its own: enough that a run is killed many times before it ends.
FILES = {"embedded": 60, "spark": 12, "workers": 12}
#: No batch takes so long; a run that shows nothing for that time hangs.
PATIENCE = 600.0
#: How long a start may take before it is shot, in seconds.
STARTING = {"embedded": 3.0, "spark": 20.0, "workers": 20.0}
NAMES = [{"k": k, "name": f"name {k}"} for k in range(4)]
DELAY = 20

events = tg.stream("E", "k bigint, t bigint, v bigint", progress="t")
names = tg.table("N", "k bigint, name string")


def program() -> tg.Program:
    """A grouping of partials, an anti-join, a query on its result, and a static join."""
    a, b, n = events.as_("a"), events.as_("b"), names.as_("n")
    alone = tg.result_of("Alone", a.anti_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 5).select(k=a.k, t=a.t, v=a.v))
    quiet = alone.as_("q")
    return tg.program(
        Counted=events.group_by(events.k, w=tg.ceil(events.t, 10)).agg(n=tg.count(), total=tg.sum(events.v)),
        Named=quiet.join(n, n.k == quiet.k).select(t=quiet.t, v=quiet.v, name=n.name),
    )


RESULTS = ("Counted", "Alone", "Named")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a finished run published, and how its rows were counted."""

    rows: dict[str, list[tuple[Any, ...]]]
    counts: dict[str, SourceCounts]
    progress: dict[str, Any]


@dataclass(slots=True)
class Tally:
    runs: int = 0
    kills: int = 0
    starting: int = 0
    restarts: int = 0
    batches: int = 0


def main() -> int:
    options = _options()
    if options.work is not None:
        work(Path(options.work), options.engine)
        return 0
    started = time.monotonic()
    for engine, wanted in (("embedded", options.embedded), ("spark", options.spark), ("workers", options.workers)):
        if wanted:
            rng = random.Random(f"{engine}/{options.seed}")
            tally = Tally()
            while tally.kills < wanted:
                failure = one_run(engine, rng, wanted, tally)
                if failure is not None:
                    print(f"{engine}: {failure}")
                    return 1
            what = "kills of Python workers" if engine == "workers" else "kills of the process group"
            print(
                f"{engine}: {tally.kills} {what} ({tally.starting} before the first new batch), {tally.restarts} restarts, "
                f"{tally.batches} batches in {tally.runs} runs, all results equal",
                flush=True,
            )
    print(f"in {time.monotonic() - started:.0f} s")
    return 0


# --- the run that is killed


def work(place: Path, engine: str) -> None:
    """Read all files that are not read yet, and end."""
    source = tg.parquet(place / "in", per_batch=1, delay=DELAY, bounded=True)
    sinks = {name: tg.parquet_sink(place / "out" / name) for name in RESULTS}
    checkpoint = place / "state"
    if engine == "embedded":
        with Session(program().facts, LocalStore(checkpoint), {"E": source}, {"N": NAMES}, sinks) as session:
            session.process()
        return
    from tidegate.runtime.spark.session import spark_session

    # A task whose worker is killed is tried again, as on a cluster.
    spark = spark_session("kill-loop", master="local[2,3]", config={"spark.sql.shuffle.partitions": "2"})
    program().start(
        spark,
        sources={"E": source},
        statics={"N": NAMES},
        sinks=sinks,
        checkpoint=checkpoint,
        driver_bytes=0,
    ).awaitTermination()
    spark.stop()


# --- the one who kills


def one_run(engine: str, rng: random.Random, wanted: int, tally: Tally) -> str | None:
    """One run from its first row to its end, killed again and again; what is wrong, if anything is."""
    place = Path(tempfile.mkdtemp(prefix=f"kill-loop-{engine}-"))
    write_files(place / "in", FILES[engine], rng)
    tally.runs += 1
    while True:
        before = committed(place)
        shoot = tally.kills < wanted
        with running(place, engine) as process:
            killed = (
                (_shoot_worker if engine == "workers" else _shoot)(process, place, engine, rng, tally) if shoot else 0
            )
            tally.kills += killed
            try:
                status = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                return f"the run hangs in {place}"
        if status == 0:
            break
        if not killed:
            return f"the run failed by itself in {place}:\n{(place / 'log').read_text()[-3000:]}"
        tally.restarts += 1
        if killed and committed(place) == before:
            tally.starting += 1
    tally.batches += committed(place)
    found, expected = answer(place), undisturbed(place)
    if found != expected:
        return f"results differ from those of an undisturbed run in {place}: {difference(found, expected)}"
    left = [path for name in RESULTS for path in (place / "out" / name).iterdir() if path.name.startswith(".")]
    if left:
        return f"left behind: {left[0]}"
    shutil.rmtree(place)
    return None


@contextlib.contextmanager
def running(place: Path, engine: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program in a process group of its own, of which nothing is left afterwards."""
    command = [sys.executable, str(Path(__file__).resolve()), "--work", str(place), "--engine", engine]
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log, cwd=place)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _shoot(process: subprocess.Popen[bytes], place: Path, engine: str, rng: random.Random, _: Tally) -> int:
    """Kill the process group at a random moment; 1 if it still ran."""
    _until_the_moment(process, place, engine, rng)
    if process.poll() is not None:
        return 0
    os.killpg(process.pid, signal.SIGKILL)
    return int(process.wait() == -signal.SIGKILL)


def _shoot_worker(process: subprocess.Popen[bytes], place: Path, engine: str, rng: random.Random, _: Tally) -> int:
    """Kill one Python worker of Spark, or their daemon, at a random moment; 1 if there was one."""
    _until_the_moment(process, place, engine, rng)
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        workers = [pid for pid in descendants(process.pid) if b"pyspark" in command_of(pid)]
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)
                return 1
        time.sleep(0.01)
    return 0


def _until_the_moment(process: subprocess.Popen[bytes], place: Path, engine: str, rng: random.Random) -> None:
    """A moment of the start, or one soon after some more batches were committed."""
    if rng.random() < 0.5:
        target, rest = None, rng.random() * STARTING[engine]
    else:
        target, rest = committed(place) + rng.randint(1, 3), rng.random() * 0.2
    deadline = time.monotonic() + PATIENCE
    while target is not None and committed(place) < target and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    end = time.monotonic() + rest
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)


def committed(place: Path) -> int:
    """Batches committed so far, by the name of the last manifest."""
    return max((int(path.stem) for path in (place / "state" / "manifests").glob("*.json")), default=0)


def descendants(pid: int) -> list[int]:
    """Processes below a process, children first."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text()
                parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def command_of(pid: int) -> bytes:
    """The command of a process; of Spark's Python workers it names `pyspark.daemon`, of the run itself this file."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
    return command if b"pyspark.daemon" in command or b"pyspark/daemon" in command else b""


# --- rows and results


def write_files(directory: Path, count: int, rng: random.Random) -> None:
    """Files with rows in disorder, some late, some without an instant."""
    directory.mkdir(parents=True)
    for number in range(count):
        instants = [number * 10 + rng.randint(0, 20) for _ in range(30)]
        instants[0] -= 60 if rng.random() < 0.3 else 0
        rows = {
            "k": [rng.randint(0, 3) for _ in instants],
            "t": [None if rng.random() < 0.02 else t for t in instants],
            "v": [rng.randint(0, 99) for _ in instants],
        }
        path = directory / f"{number:04d}.parquet"
        pq.write_table(pa.table(rows, pa.schema([(name, pa.int64()) for name in rows])), path)
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # oldest first, on both engines


def answer(place: Path) -> Answer:
    rows = {}
    for name in RESULTS:
        tables = [pq.read_table(path) for path in sorted((place / "out" / name).glob("*.parquet"))]
        rows[name] = sorted(tuple(row.values()) for table in tables for row in table.to_pylist())
    manifest = inspect(LocalStore(place / "state")).manifest
    assert manifest is not None
    return Answer(rows, dict(manifest.counts), dict(manifest.progress))


def undisturbed(place: Path) -> Answer:
    """The answer of a run over the same files that nothing disturbed."""
    again = place / "undisturbed"
    again.mkdir()
    (again / "in").symlink_to(place / "in")
    work(again, "embedded")
    return answer(again)


def difference(found: Answer, expected: Answer) -> str:
    for name in RESULTS:
        have, want = set(found.rows[name]), set(expected.rows[name])
        if found.rows[name] != expected.rows[name]:
            return (
                f"{name} has {len(found.rows[name])} rows instead of {len(expected.rows[name])}; "
                f"lost {sorted(want - have)[:3]}, more {sorted(have - want)[:3]}"
            )
    return f"{found.counts} {found.progress} instead of {expected.counts} {expected.progress}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedded", type=int, default=45, help="kills of embedded runs")
    parser.add_argument("--spark", type=int, default=10, help="kills of runs on Spark")
    parser.add_argument("--workers", type=int, default=8, help="kills of Python workers of runs on Spark")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--engine", default="embedded", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
