"""Whether garbage collection stalls where it can free nothing, or folds what many keys have: CPU of each batch of a
state that only grows, and memory. And whether a batch stalls where keys or panes of windows come and go, or where
results and rejected rows are merged.

A process of its own for each run:

python benchmarks/stalls.py SHAPE ROWS BATCH MODE FOLDER prints what was measured as JSON; SHAPE is a key of SHAPES
or WINDOWS, or one of MERGED, ROWS those that are live in the end, or keys, BATCH the rows of a batch, MODE the garbage
collection; with FOLDER "-" there is no checkpoint. Python's own collection of garbage looks no more at what is loaded,
as under `tidegate start`.
"""

from __future__ import annotations

import gc
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import MERGED, MERGED_ROWS, PAIRS, PASSING, STALLED, Figure, compared, declared
from benchmarks.memory import gained, resident
from tidegate.runtime.batch.garbage import GarbageCollection
from tidegate.runtime.connectors.sinks import DiscardSink, ParquetSink, Sink
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

COLUMNS = "id bigint, amount bigint, t bigint"
visits = tg.stream("Visits", "id string, amount bigint, t bigint", progress="t")
orders, payments, deliveries, prices = (
    tg.stream(name, COLUMNS, progress="t") for name in ("Orders", "Payments", "Deliveries", "Prices")
)
#: Longer than any run: by time alone no row goes.
LONG = 1 << 40
#: The first batches, in which caches are filled, are left out.
WARM = 5
#: Batches of windows, and the first ones of these, in which the state gets as large as it stays. Of others too, as they
#: load what merges.
PASSED, FILLED = 200, 70
#: Batches with results or rejected rows: more than sixteen times sixteen, so that what was merged is merged again.
MERGING = 300
#: Prices that come for each key, and for each order.
PRICES, PER_ORDER = 3, 10


def part_payments() -> tg.Program:
    """Orders that are not paid whole: the kill rule looks at every order and payment, of which each is a part only."""
    o, p = orders.as_("o"), payments.as_("p")
    late = o.anti_join(p, o.id == p.id, o.amount <= p.amount, o.t <= p.t, p.t <= o.t + LONG)
    return tg.program(Unpaid=late.select(id=o.id, t=o.t))


def undelivered() -> tg.Program:
    """Orders, paid at once, and their deliveries, of which none comes: the partner rule finds a partner for every
    row.
    """
    o, p, d = orders.as_("o"), payments.as_("p"), deliveries.as_("d")
    pairs = d.join(p, p.id == d.id, p.t <= d.t, d.t <= p.t + LONG)
    both = pairs.join(o, o.id == p.id, o.t <= p.t, p.t <= o.t + 5)
    return tg.program(Delivered=both.select(id=o.id, ordered=o.t, delivered=d.t))


def latest_price() -> tg.Program:
    """Of the prices of each key, but for the last ones, one is needed for ever."""
    o, p = orders.as_("o"), prices.as_("p")
    asked = o.left_join(p, o.id == p.id, p.t <= o.t).group_by(o.id, o.t)
    return tg.program(Priced=asked.agg(price=tg.last(p.amount, by=p.t)))


SHAPES: dict[str, Callable[[], tg.Program]] = dict(
    zip(STALLED, (part_payments, undelivered, latest_price), strict=True)
)


def sessions(keys: int, size: int) -> tg.Program:
    """Each key comes once; so many are live."""
    return tg.program(
        Sessions=visits.windows(tg.session(keys // size), by="id").agg(n=tg.count(), total=tg.sum(visits.amount))
    )


def hopping(_keys: int, _size: int) -> tg.Program:
    """Blocks of 60 panes, of all keys at once."""
    return tg.program(
        Windows=orders.windows(tg.hopping(60, every=1), by="id").agg(n=tg.count(), most=tg.max(orders.amount))
    )


WINDOWS: dict[str, Callable[[int, int], tg.Program]] = dict(zip(PASSING, (sessions, hopping), strict=True))


def measure() -> tuple[list[Figure], bool]:
    """Longest batch beside the median, CPU and memory with the default garbage collection beside none, in PAIRS
    pairs.
    """
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for shape, sizes in STALLED.items():
            for rows, size in sizes:
                pairs = []
                for _ in range(PAIRS):
                    made = [process(shape, rows, size, mode, f"{folder}/{mode}") for mode in ("off", "amortised")]
                    pairs.append((made[0], made[1]))
                    for mode in ("off", "amortised"):
                        shutil.rmtree(f"{folder}/{mode}")
                figures += _figures(f"{shape}, {rows:,} live rows", pairs)
        for shape, sizes in PASSING.items():
            for keys, size in sizes:
                ratios = []
                for _ in range(PAIRS):
                    cpu = process(shape, keys, size, "amortised", f"{folder}/state")["cpu"][FILLED:]
                    ratios.append(max(cpu) / statistics.median(cpu))
                    shutil.rmtree(f"{folder}/state")
                figures.append(compared(f"{shape}, {keys:,} keys: longest batch / median", ratios))
                print(figures[-1].line(), flush=True)
        for shape in MERGED:
            for size in MERGED_ROWS:
                ratios = []
                for _ in range(PAIRS):
                    cpu = process(shape, 0, size, "amortised", f"{folder}/state")["cpu"][FILLED:]
                    ratios.append(max(cpu) / statistics.median(cpu))
                    shutil.rmtree(f"{folder}/state")
                figures.append(compared(f"{shape}, {size:,} a batch: longest batch / median", ratios))
                print(figures[-1].line(), flush=True)
    return figures, True


def _figures(label: str, pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> list[Figure]:
    default = [made["cpu"][WARM:] for _, made in pairs]
    longest = compared(f"{label}: longest batch / median", [max(cpu) / statistics.median(cpu) for cpu in default])
    slopes = ", ".join(f"{slope(cpu):+.2f}" for cpu in default)
    made = max((made for _, made in pairs), key=lambda made: float(made["more"]))
    found = [
        replace(longest, detail=f"{longest.detail}; slopes {slopes} ms a hundred batches"),
        compared(
            f"{label}: CPU a batch, default / off",
            [statistics.mean(made["cpu"][WARM:]) / statistics.mean(off["cpu"][WARM:]) for off, made in pairs],
        ),
        declared(
            f"{label}: peak memory / (2 x live state + 1 GiB)",
            made["more"] / (2 * made["live"] + (1 << 30)),
            f"{made['more'] >> 20:,} MiB, live {made['live'] >> 20:,} MiB",
        ),
    ]
    for figure in found:
        print(figure.line(), flush=True)
    return found


def slope(cpu: list[float]) -> float:
    """By how many milliseconds batches grow in a hundred of them, by least squares."""
    return 100_000 * float(np.polyfit(range(len(cpu)), cpu, 1)[0])


def process(shape: str, rows: int, size: int, mode: str, folder: str) -> dict[str, Any]:
    command = [sys.executable, __file__, shape, str(rows), str(size), mode, folder]
    made: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return made


def run(shape: str, rows: int, size: int, mode: GarbageCollection, folder: str) -> dict[str, Any]:
    """CPU seconds of each batch, the greatest live state in bytes, and memory beyond that of the process before."""
    if shape in MERGED:
        return _merging(shape, size, folder)
    program = WINDOWS[shape](rows, size) if shape in WINDOWS else SHAPES[shape]()
    (result,) = program.facts.streams
    store = MemoryStore() if folder == "-" else LocalStore(folder)
    cpu, live = [], 0
    with Session(
        program.facts, store, sinks={result: DiscardSink()}, options=RunOptions(collect_garbage=mode)
    ) as session:
        _leave_loaded_alone()
        base = resident("VmRSS")
        names = {stream.name for stream in program.facts.program.inputs}
        for given in _batches(names, rows, size):
            for name, frame in given.items():
                session.push(name, frame)
            for name in names:
                session.advance(name, {"t": given["Orders" if "Orders" in given else name]["t"][-1]})
            begun = time.process_time()
            report = session.step()
            cpu.append(time.process_time() - begun)
            live = max(live, sum(report.live_bytes.values()))
        return {"cpu": cpu, "live": live, "more": gained(base), "rows": sum(report.live_rows.values())}


def _leave_loaded_alone() -> None:
    gc.collect()
    gc.freeze()


def _merging(shape: str, size: int, folder: str) -> dict[str, Any]:
    """So many results a batch, in a directory that is compacted; or as many rows, of which half have no instant."""
    program = tg.program(Found=orders.select("id", "amount", "t"))
    rejects = shape == MERGED[1]
    sink: Sink = DiscardSink() if rejects else ParquetSink(f"{folder}/out", compact=True)
    cpu = []
    with Session(program.facts, LocalStore(f"{folder}/checkpoint"), sinks={"Found": sink}) as session:
        _leave_loaded_alone()
        for number in range(MERGING):
            t = np.arange(number * size, (number + 1) * size)
            rows = pl.DataFrame({"id": t % 100, "amount": t, "t": t})
            if rejects:
                rows = rows.with_columns(t=pl.when(pl.col("id") % 2 == 0).then("t"))
            session.push("Orders", rows)
            session.advance("Orders", {"t": int(t[-1])})
            begun = time.process_time()
            session.step()
            cpu.append(time.process_time() - begun)
        kept = session.quarantine().read_all().num_rows
    assert kept == (MERGING * size // 2 if rejects else 0)
    return {"cpu": cpu}


def _batches(names: Collection[str], rows: int, size: int) -> Iterator[dict[str, pl.DataFrame]]:
    """The batches of the streams that a shape reads."""
    if "Payments" in names:
        return _given(rows, size)
    if "Prices" in names:
        return _asked(rows, size)
    return _visits(size) if "Visits" in names else _panes(rows, size)


def _visits(size: int) -> Iterator[dict[str, pl.DataFrame]]:
    """A batch a tick, of keys that never came before."""
    for t in range(PASSED):
        amount = np.arange(t * size, (t + 1) * size)
        yield {"Visits": pl.DataFrame({"id": [f"user-{n}" for n in amount], "amount": amount, "t": np.full(size, t)})}


def _panes(keys: int, size: int) -> Iterator[dict[str, pl.DataFrame]]:
    """A batch a tick, of any keys."""
    rng = np.random.default_rng(5)
    for t in range(PASSED):
        rows = {"id": rng.integers(0, keys, size), "amount": rng.integers(0, 100, size), "t": np.full(size, t)}
        yield {"Orders": pl.DataFrame(rows)}


def _given(rows: int, size: int) -> Iterator[dict[str, pl.DataFrame]]:
    """As many orders as payments, which follow within a few ticks."""
    rng = np.random.default_rng(5)
    half = size // 2
    for first in range(0, rows // 2, half):
        t = np.arange(first, first + half)
        ordered = pl.DataFrame({"id": t, "amount": rng.integers(10, 100, half), "t": t})
        yield {
            "Orders": ordered,
            "Payments": ordered.with_columns(amount=pl.lit(1), t=t + 2).with_columns(pl.col("amount").cast(pl.Int64)),
        }


def _asked(keys: int, size: int) -> Iterator[dict[str, pl.DataFrame]]:
    """Prices of so many keys, in any order, and orders for some of them."""
    rng = np.random.default_rng(5)
    for first in range(0, PRICES * keys, size):
        t = np.arange(first, first + size)
        rows = pl.DataFrame({"id": rng.integers(0, keys, size), "amount": rng.integers(10, 100, size), "t": t})
        later = np.arange(first + PER_ORDER - 1, first + size, PER_ORDER)
        yield {"Prices": rows, "Orders": rows[: len(later)].with_columns(t=pl.Series(later))}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])))  # type: ignore[arg-type]
