"""A program that runs for a long time, with files arriving, dirty rows and small batches: does anything grow?

    python tools/soak.py --minutes 120            # in this process
    python tools/soak.py --minutes 120 --spark    # on Spark, with its JVM
    python tools/soak.py --minutes 120 --keep     # with files that stay, and all rejected rows kept

Every batch brings a file of orders and one of payments; some rows have no time, some come late, some do not parse. Four
queries read them: payments per quarter of an hour, orders that are not paid in time, joined pairs, and all large
payments. Results go to directories that are compacted, files that are read are deleted, and rejected rows are kept up
to a size. With `--keep` the files stay, and so do all rejected rows: what is known of each then grows by its few bytes,
and nothing else may.

Prints a line a minute, and at the end of each measure its mean and slope over the second half of the time: memory,
files of checkpoint, results and quarantine, bytes of the newest manifest and of the checkpoint without the quarantine,
open descriptors of all processes, CPU and time a batch. Exit status 1 if one has grown by more than its limit over that
half, or if rows do not add up.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tidegate as tg  # noqa: E402  # found from wherever this is started
from tools.processes import cpu_seconds, family, open_descriptors, resident_bytes  # noqa: E402

#: Rows of a file, and how many seconds of the streams' time it is about.
ROWS, SECONDS = 40, 60
BEGIN = 1_772_409_600  # 2026-03-02
#: Which part of the rows is dirty, in each of three ways.
DIRTY = 0.03
#: So few samples say nothing of a slope.
FEWEST = 8
#: How much each measure may grow over the second half: a part of its mean, and as many units beside.
LIMITS = {
    "memory": (0.05, 16.0),
    "checkpoint": (0.10, 12.0),
    "results": (0.10, 40.0),
    "quarantine": (0.10, 8.0),
    "manifest": (0.10, 8.0),
    "stored": (0.20, 256.0),
    "descriptors": (0.0, 3.0),
    "CPU": (0.20, 1.0),
    "time": (0.50, 5.0),
}
#: On Spark: connections and workers come and go.
DESCRIPTORS_ON_SPARK = (0.05, 8.0)
#: What each measure may grow by beside, for each batch, where files and rejected rows stay: what is known of the two
#: files that it has read, in memory and in the log, and a file for so many rejected rows.
KEPT = {"memory": 2 / 1024, "stored": 0.5, "quarantine": 2 * ROWS * 3 * DIRTY / (1 << 16)}
UNITS = {
    "memory": "MiB",
    "checkpoint": "files",
    "results": "files",
    "quarantine": "files",
    "manifest": "KiB",
    "stored": "KiB",
    "CPU": "ms a batch",
    "time": "ms a batch",
}


@dataclass(slots=True)
class Samples:
    """What was measured, and when, in seconds since the start."""

    at: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, at: float, **measured: float) -> None:
        self.at.append(at)
        for name, value in measured.items():
            self.values.setdefault(name, []).append(value)

    def second_half(self, name: str) -> tuple[float, float]:
        """The mean of a measure and how much it grew, by its slope, over the second half of the time."""
        first = next(number for number, at in enumerate(self.at) if at >= self.at[-1] / 2)
        at, values = self.at[first:], self.values[name][first:]
        mean = sum(values) / len(values)
        return mean, slope(at, values) * (at[-1] - at[0])


def slope(at: Sequence[float], values: Sequence[float]) -> float:
    """By least squares, a second."""
    middle, mean = sum(at) / len(at), sum(values) / len(values)
    spread = sum((x - middle) ** 2 for x in at)
    return sum((x - middle) * (y - mean) for x, y in zip(at, values, strict=True)) / spread if spread else 0.0


def verdicts(samples: Samples, *, spark: bool = False, keep: bool = False) -> Iterator[tuple[bool, str]]:
    """Whether each measure stays within its limit, as a line."""
    limits = LIMITS | ({"descriptors": DESCRIPTORS_ON_SPARK} if spark else {})
    growing: Mapping[str, float] = KEPT if keep else {}
    for name, (part, more) in limits.items():
        mean, grown = samples.second_half(name)
        hours = (samples.at[-1] / 2) / 3600
        allowed = part * abs(mean) + more
        if name in growing:
            allowed += growing[name] * samples.second_half("batches")[1]
        text = f"{name:<12} mean {mean:10.1f}  slope {grown / hours if hours else 0.0:+10.1f} an hour"
        unit = UNITS.get(name, "")
        yield grown <= allowed, f"{text}  grew {grown:+.1f} in the second half, at most {allowed:.1f} {unit}".rstrip()


def program() -> tg.Program:
    orders = tg.stream("Orders", "order_id bigint, customer string, ordered timestamp", progress="ordered")
    payments = tg.stream("Payments", "order_id bigint, amount double, paid timestamp", progress="paid")
    o, p = orders.as_("o"), payments.as_("p")
    soon = (o.ordered <= p.paid) & (p.paid <= o.ordered + tg.minutes(10))
    return tg.program(
        PerQuarter=payments.group_by(end=tg.tumbling(payments.paid, "15m")).agg(
            n=tg.count(), amount=tg.sum(payments.amount)
        ),
        Unpaid=o.anti_join(p, p.order_id == o.order_id, o.ordered <= p.paid, p.paid <= o.ordered + tg.minutes(10)),
        Paid=o.join(p, p.order_id == o.order_id).where(soon).select(o.order_id, o.customer, o.ordered, p.paid),
        Large=payments.where(payments.amount > 90.0).select("order_id", "paid"),
    )


class Writer:
    """Puts the files of one batch after the other where a program reads them."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.number, self.rows = place, 0, 0
        self._random = random.Random(seed)
        for name in ("Orders", "Payments"):
            (place / name).mkdir(parents=True)

    def write(self) -> None:
        first = BEGIN + self.number * SECONDS
        orders = [self._row(first, {"customer": f"c{self._random.randrange(500)}"}, "ordered") for _ in range(ROWS)]
        payments = [self._row(first + 30, {"amount": self._random.random() * 100}, "paid") for _ in range(ROWS)]
        for name, rows in (("Orders", orders), ("Payments", payments)):
            hidden = self.place / name / f".{self.number:08d}.json"
            hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
            hidden.rename(self.place / name / f"{self.number:08d}.json")
            self.rows += len(rows)
        self.number += 1

    def _row(self, first: int, rest: dict[str, Any], time_: str) -> dict[str, Any]:
        order = self.number * ROWS + self._random.randrange(ROWS)
        instant = _text(first + self._random.randrange(SECONDS))
        row = {"order_id": order, **rest, time_: instant}
        dirty = self._random.random()
        if dirty < DIRTY:
            row[time_] = None
        elif dirty < 2 * DIRTY:
            row["order_id"] = "many"
        elif dirty < 3 * DIRTY:
            row[time_] = _text(first - 86_400)
        return row


def _text(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@contextmanager
def running(
    place: Path, writer: Writer, spark: bool, keep: bool
) -> Iterator[tuple[Callable[[], None], Callable[[], Any], Callable[[], float]]]:
    """A program that runs: what makes it take a batch of files in, what says how its rows were counted, and its
    memory.
    """
    sources = {name: tg.json(place / "in" / name, delay="5m", delete=not keep) for name in ("Orders", "Payments")}
    rejected = None if keep else "256 KiB"
    one = program()
    sinks = {name: tg.parquet_sink(place / "out" / name, compact=True) for name in one.facts.streams}
    if not spark:
        with one.session(sources=sources, sinks=sinks, checkpoint=place / "state", quarantine_keep=rejected) as session:

            def step() -> None:
                writer.write()
                session.step()

            yield step, lambda: session.counts, memory
        return
    from tidegate.runtime.engines.spark.setup.session import spark_session
    from tidegate.runtime.state.checkpoint import inspect
    from tidegate.runtime.state.store.local import LocalStore

    session_ = spark_session("soak")
    query = one.start(
        session_,
        sources=sources,
        sinks=sinks,
        checkpoint=place / "state",
        trigger="0 seconds",
        quarantine_keep=rejected,
    )

    def batch() -> None:
        writer.write()
        query.processAllAvailable()

    def counts() -> Any:
        manifest = inspect(LocalStore(place / "state")).manifest
        return {} if manifest is None else manifest.counts

    try:
        yield batch, counts, lambda: memory(session_)
    finally:
        query.stop()
        session_.stop()


def memory(session: Any = None) -> float:
    """Memory of these processes in MiB: what is resident, and of the JVM of a Spark session what lives.

    What a JVM has taken says nothing of what it needs: it takes as much as it may before it looks what is free.
    """
    jvm = None if session is None else int(session._jvm.ProcessHandle.current().pid())
    taken = resident_bytes(pid for pid in family(os.getpid()) if pid != jvm)
    if session is not None:
        session._jvm.System.gc()
        beans = session._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        taken += beans.getHeapMemoryUsage().getUsed() + beans.getNonHeapMemoryUsage().getUsed()
    return taken / (1 << 20)


def files(place: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(place))


def kibibytes(place: Path) -> float:
    """The size of all files; what goes meanwhile is left out."""
    found = 0
    for directory, _, names in os.walk(place):
        for name in names:
            with suppress(FileNotFoundError):
                found += os.stat(os.path.join(directory, name)).st_size
    return found / 1024


def manifest_kibibytes(place: Path) -> float:
    """The size of the newest manifest."""
    while True:
        with suppress(FileNotFoundError):  # of one that goes now there is a newer one
            return max((place / "manifests").glob("*.json")).stat().st_size / 1024


def soak(
    place: Path, minutes: float, *, spark: bool, every: float, seed: int, pause: float = 0.0, keep: bool = False
) -> Samples:
    """Runs for so long, with a pause of so many seconds after each batch; `AssertionError` if rows do not add up."""
    samples, writer = Samples(), Writer(place / "in", seed)
    with running(place, writer, spark, keep) as (step, counts, live):
        step()  # the first loads what is only needed once
        began = looked = time.monotonic()
        said, cpu, taken, batches = 0.0, cpu_seconds(family(os.getpid())), 0.0, 0
        while looked - began < minutes * 60:
            start = time.monotonic()
            step()
            now = time.monotonic()
            taken, batches = taken + now - start, batches + 1
            time.sleep(pause)
            if now - looked < every:
                continue
            used, looked = cpu_seconds(family(os.getpid())), now
            quarantine = files(place / "state" / "quarantine")
            samples.add(
                now - began,
                memory=live(),
                checkpoint=files(place / "state") - quarantine,
                results=files(place / "out"),
                quarantine=quarantine,
                manifest=manifest_kibibytes(place / "state"),
                stored=kibibytes(place / "state") - kibibytes(place / "state" / "quarantine"),
                descriptors=open_descriptors(family(os.getpid())),
                batches=writer.number,
                CPU=1000 * (used - cpu) / batches,
                time=1000 * taken / batches,
            )
            cpu, taken, batches = cpu_seconds(family(os.getpid())), 0.0, 0  # without what was measured
            if now - began >= said:
                said += 60
                line = "  ".join(f"{name} {values[-1]:.1f}" for name, values in samples.values.items())
                print(f"{(now - began) / 60:6.1f} min  {writer.number} batches  {line}", flush=True)
        total = sum(one.rows_in for one in counts().values())
        assert total == writer.rows, f"{total} rows were counted, {writer.rows} were written"
        if keep:
            rejected = sum(sum(one.rejected.values()) for one in counts().values())
            kept = sum(batch.num_rows for batch in tg.read_quarantine(place / "state"))
            assert kept == rejected, f"{kept} rejected rows are kept, {rejected} were counted"
    return samples


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=120)
    options.add_argument("--spark", action="store_true", help="on Spark instead of in this process")
    options.add_argument("--keep", action="store_true", help="files that are read and all rejected rows stay")
    options.add_argument("--every", type=float, default=5.0, metavar="SECONDS", help="between two samples")
    options.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="after each batch (default: none)")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--place", type=Path, help="an empty directory to run in, which stays; else a temporary one")
    given = options.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="soak-") as temporary:
        place = given.place or Path(temporary)
        samples = soak(
            place,
            given.minutes,
            spark=given.spark,
            every=given.every,
            seed=given.seed,
            pause=given.pause,
            keep=given.keep,
        )
    if len(samples.at) < FEWEST:
        print(f"{len(samples.at)} samples are too few: give more --minutes, or a shorter --every")
        return 1
    fine = True
    for within, text in verdicts(samples, spark=given.spark, keep=given.keep):
        fine = fine and within
        print(f"{'ok   ' if within else 'GROWS'} {text}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
