"""One increment of gigabytes on Spark, and what the driver holds meanwhile: the exit status is 1 beyond its limits.

python benchmarks/large.py [--gigabytes 2.2] [--places rule sharded catalyst]

The rule that chooses the place of an increment is left alone, and must keep it out of the driver, unless a place is
named.

Orders and payments, one pair a tick, are joined by customer and order and aggregated per customer, with one window over
everything: so the last batch has one increment over all rows. The expected result follows from how the rows are made.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from tidegate.runtime.plan.sharding import DRIVER_BYTES, SHARD_BYTES
from tools.processes import descendants

#: `shard_bytes` for a place; none for what the rule chooses.
PLACES = {"rule": SHARD_BYTES, "sharded": 1 << 40, "catalyst": 0}
#: The most that the driver's Python may grow by. Its share of two gigabytes is 64 MiB, which it holds more than once
#: while it works.
DRIVER_MOST = 2 * DRIVER_BYTES
#: The most that the JVM may have beyond its heap. In a local session it does the executors' work too.
JVM_MOST = 1 << 30
CUSTOMERS = 1000
#: A payment counts if it comes within so many ticks; half of them do.
SOON = 1000
#: Bytes of an order and its payment in segments, roughly; a benchmark that comes out smaller fails.
PAIR_BYTES = 88
READINGS = range(4)


def program(end: int) -> tg.Program:
    doubles = "".join(f", x{i} double" for i in READINGS)
    orders = tg.stream("Orders", f"customer bigint, id bigint, t bigint, amount bigint{doubles}", progress="t")
    payments = tg.stream("Payments", f"customer bigint, id bigint, t bigint{doubles}", progress="t")
    o, p = orders.as_("o"), payments.as_("p")
    paid = o.join(p, o.customer == p.customer, o.id == p.id, o.t <= p.t, p.t <= o.t + SOON)
    greatest = {f"o{i}": tg.max(o[f"x{i}"]) for i in READINGS} | {f"p{i}": tg.max(p[f"x{i}"]) for i in READINGS}
    by_customer = paid.group_by(customer=o.customer, end=tg.ceil(p.t, end))
    return tg.program(Paid=by_customer.agg(n=tg.count(), total=tg.sum(o.amount), **greatest))


def write(folder: Path, pairs: int, files: int) -> None:
    """Files of orders and payments, and the expected result, aggregated file by file as the rows are made."""
    random = np.random.default_rng(3)
    found = []
    for name in ("Orders", "Payments"):
        (folder / name).mkdir()
    for number in range(files):
        t = np.arange(pairs * number // files, pairs * (number + 1) // files)
        shared = {
            "customer": t * 7919 % CUSTOMERS,
            "id": (t.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view("i8"),
        }
        delay = random.integers(0, 2 * SOON, t.size)
        amount = random.integers(0, 1_000_000, t.size)
        ours, theirs = ({f"x{i}": random.random(t.size) for i in READINGS} for _ in range(2))
        orders = pl.DataFrame({**shared, "t": t, "amount": amount, **ours})
        payments = pl.DataFrame({**shared, "t": t + delay, **theirs}).sample(fraction=1, shuffle=True, seed=number)
        for name, rows in (("Orders", orders), ("Payments", payments)):
            path = folder / name / f"{number:04d}.parquet"
            rows.write_parquet(path)
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # Spark takes the oldest files first
        columns = {f"o{i}": ours[f"x{i}"] for i in READINGS} | {f"p{i}": theirs[f"x{i}"] for i in READINGS}
        pair = pl.DataFrame({"customer": shared["customer"], "amount": amount, **columns}).filter(delay <= SOON)
        found.append(
            pair.group_by("customer").agg(
                pl.len().alias("n"), pl.col("amount").sum().alias("total"), pl.col(*columns).max()
            )
        )
    whole = pl.concat(found).group_by("customer")
    sums, tops = pl.col("n", "total").sum(), pl.exclude("customer", "n", "total").max()
    whole.agg(sums, tops).write_parquet(folder / "expected.parquet")


def measure(folder: Path, place: str, pairs: int) -> dict[str, Any]:
    """Runs the program in this process; figures of its largest increment and of the driver's memory."""
    from tidegate.runtime.connectors.sinks import parquet_sink
    from tidegate.runtime.connectors.sources import parquet
    from tidegate.runtime.engines.spark.engine import start
    from tidegate.runtime.engines.spark.setup.session import spark_session

    spark = spark_session("tidegate-large")
    java = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    heap = int(spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory())  # type: ignore[union-attr]
    before = _peak("self")
    with tempfile.TemporaryDirectory(dir=folder) as work:
        began = time.perf_counter()
        query = start(
            spark,
            program(_end(pairs)).facts,
            sources={
                name: parquet(folder / name, per_batch=1, delay={"t": 2 * SOON}, bounded=True)
                for name in ("Orders", "Payments")
            },
            sinks={"Paid": parquet_sink(f"{work}/out")},
            checkpoint=f"{work}/checkpoint",
            shard_bytes=PLACES[place],
        )
        query.awaitTermination()
        taken = time.perf_counter() - began
        peak, workers = _peak("self"), [_peak(pid) for pid in descendants(java)]
        expected = pl.read_parquet(folder / "expected.parquet").sort("customer")
        found = pl.read_parquet(f"{work}/out/*.parquet").select(expected.columns).sort("customer")
        expected = expected.cast({"n": pl.Int64})
        largest = max(query.reports, key=lambda report: report.read.get("Paid", (0, 0))[1])
        figures = {
            "batches": len(query.reports),
            "place": largest.places["Paid"],
            "rows": largest.read["Paid"][0],
            "bytes": largest.read["Paid"][1],
            "increment": largest.seconds["increments"],
            "seconds": taken,
            "collect": max(report.seconds["collect"] for report in query.reports),
            "driver before": before,
            "driver": peak,
            "JVM": _peak(java),
            "heap": heap,
            "worker": max(workers, default=0),
            "equal": found.equals(expected),
        }
    spark.stop()
    return figures


def _end(pairs: int) -> int:
    """The end of the one window."""
    return pairs + 4 * SOON


def _peak(pid: int | str) -> int:
    """The most memory that a process ever had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def faults(made: dict[str, Any], place: str, gigabytes: float) -> list[str]:
    """What is not as it has to be of a run."""
    grown, beyond = made["driver"] - made["driver before"], made["JVM"] - made["heap"]
    wrong = made["place"] == "driver" if place == "rule" else made["place"] != place
    checks = {
        "RESULTS DIFFER": not made["equal"],
        f"the increment was evaluated {made['place']}": wrong,
        f"the increment read {made['bytes'] / 1e9:.2f} GB only": made["bytes"] < 0.9e9 * gigabytes,
        f"the driver's Python grew by {grown >> 20:,} MiB, {DRIVER_MOST >> 20} at most": grown > DRIVER_MOST,
        f"the JVM had {beyond >> 20:,} MiB beyond its heap, {JVM_MOST >> 20} at most": beyond > JVM_MOST,
    }
    return [what for what, failed in checks.items() if failed]


def line(made: dict[str, Any]) -> str:
    memory = {name: f"{made[name] / 2**20:,.0f}" for name in ("driver", "driver before", "JVM", "heap", "worker")}
    return (
        f"  {made['place']:<10}{made['rows']:>13,}{made['bytes'] / 1e9:>7.2f}{made['increment']:>9.1f} s"
        f"{made['seconds']:>9.1f} s   Python driver {memory['driver']} ({memory['driver before']} at the start), "
        f"JVM {memory['JVM']} (heap {memory['heap']}), a Python worker {memory['worker']}; "
        f"longest collect {made['collect']:.1f} s"
    )


def main() -> int:
    """Prints a line per place, and what was wrong; the exit status is 1 if anything was."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--gigabytes", type=float, default=2.2, help="of relevant segments, about")
    options.add_argument("--files", type=int, default=4, help="of each stream, one a batch")
    options.add_argument("--places", nargs="+", choices=PLACES, default=["rule"])
    options.add_argument("--measure", nargs=2, metavar=("PLACE", "FOLDER"), help=argparse.SUPPRESS)
    chosen = options.parse_args()
    pairs = int(chosen.gigabytes * 1e9) // PAIR_BYTES
    if chosen.measure:
        print(json.dumps(measure(Path(chosen.measure[1]), chosen.measure[0], pairs)))
        return 0
    right = True
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), pairs, chosen.files)
        print(
            f"Spark, {pairs:,} orders and as many payments, {chosen.files} batches, one increment over all "
            "rows in the last"
        )
        print(f"  {'place':<10}{'rows':>13}{'GB':>7}{'increment':>11}{'whole run':>11}   most memory, MiB", flush=True)
        for place in chosen.places:  # a process each, since what a process had most cannot be set back
            command = [sys.executable, __file__, "--gigabytes", str(chosen.gigabytes), "--measure", place, folder]
            made = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            print(line(made), flush=True)
            wrong = faults(made, place, chosen.gigabytes)
            for what in wrong:
                print(f"  FAILED: {what}")
            right = right and not wrong
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
