"""`make bench`: every figure that the docs quote, beside its target, in one run on generated data; results are
compared.

All figures of one run belong together: on a noisy machine read ratios, not absolute times. A missed target is printed;
the exit status is 1 where results differ. `--resume FILE` keeps each section's figures, and goes on after the last
one that is there, with the same code only: sections of different commits are no run. `--write PAGE` puts the table into
a page of the docs, with the commit and how busy the machine was; the exit status is 1 too where the page lacks figures.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import (
    background,
    contexts,
    contexts_spark,
    counted,
    durable,
    embedded,
    flat,
    flat_files,
    floors,
    groups,
    held,
    iseq,
    kernels,
    linear_road_figures,
    live_rows,
    look_back,
    look_back_spark,
    on_spark,
    provenance,
    queries,
    scaling,
    sequences,
    sequences_spark,
    situations,
    situations_spark,
    skew,
    spark_batches,
    speedup,
    stalls,
    start_up,
    threads,
    tuning,
    windows,
)
from benchmarks.data import Data
from benchmarks.figures import DECLARED, UNMEASURED, Figure, declared, lacking, machine, print_table, write_table
from benchmarks.state import freed_state, static_tables
from tidegate.algebra.program import ProgramDef
from tidegate.analysis.pipeline import analyse
from tidegate.runtime.engines.embedded.session import Session

Measured = tuple[list[Figure], bool]


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a section found, and how busy the machine was: when its run began, and by the host while it ran."""

    figures: list[Figure]
    equal: bool
    load: float
    stolen: float


def main() -> int:
    """Measures, and prints one table at the end; the exit status says whether results were equal, and a page whole."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--keys", type=int, default=1000)
    options.add_argument("--batches", type=int, default=100)
    options.add_argument(
        "--spark-batches", type=int, default=300, help="of the long run on Spark whose cost is to be flat"
    )
    options.add_argument("--no-spark", action="store_true")
    options.add_argument("--ratings", action="store_true", help=f"{' and '.join(HOURS)}, too, which take hours")
    options.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=f"of {', '.join(SECTIONS)}")
    options.add_argument("--resume", type=Path, metavar="FILE")
    options.add_argument("--write", type=Path, metavar="PAGE", help="which must have the table's markers")
    chosen = options.parse_args()
    size = {name: getattr(chosen, name) for name in ("rows", "keys", "batches", "spark_batches")}
    code, load = provenance.code(), provenance.load()
    done = _load(chosen.resume, size, code)
    wanted = sections(chosen.only, spark=not chosen.no_spark, hours=chosen.ratings)
    with tempfile.TemporaryDirectory() as folder, Data(Path(folder), **size) as data:
        print(
            f"{chosen.rows:,} rows, {chosen.keys:,} keys, in {chosen.batches} files; code {code}; load {load:.2f}",
            flush=True,
        )
        for name in wanted:
            if name not in done:
                before, began = provenance.ticks(), time.monotonic()
                figures, equal = SECTIONS[name](data)
                print(f"section {name}: {time.monotonic() - began:.0f} s", flush=True)
                if provenance.code() != code:
                    raise SystemExit(f"the code has changed while {name} ran: its figures are of no commit")
                done[name] = Measurement(figures, equal, load, provenance.stolen(before, provenance.ticks()))
                _save(chosen.resume, size, code, done)
    figures = [figure for section in done.values() for figure in section.figures]
    equal = all(section.equal for section in done.values())
    figures.sort(key=lambda figure: list(DECLARED).index(figure.name))
    print_table(figures)
    print(busy(code, list(done.values())))
    print("results: equal" if equal else "results: DIFFERENT")
    if chosen.write is not None and equal:
        heading = f"{chosen.rows:,} rows on {machine()}. {busy(code, list(done.values()))} All results were equal."
        write_table(chosen.write, figures, heading)
        if missing := lacking(figures):
            print(f"{chosen.write} says of {len(missing)} figures {UNMEASURED!r}: {'; '.join(missing)}")
            return 1
    return 0 if equal else 1


def sections(only: Sequence[str] | None, *, spark: bool, hours: bool) -> list[str]:
    """What is measured: all, or those that are named; with Spark or without, and with what takes hours or without."""
    usual = [name for name in SECTIONS if hours or name not in HOURS]
    return [name for name in only or usual if spark or not name.startswith("spark")]


def busy(code: str, sections: Sequence[Measurement]) -> str:
    """Of which code the sections are, and how busy the machine was."""
    if not sections:
        return f"Code: {code}."
    loads, stolen = [section.load for section in sections], max(section.stolen for section in sections)
    return (
        f"All sections are of the code {code}. Before the run the load was {max(loads):.2f} a core; the host took "
        f"{100 * stolen:.0f} % of the cores at most while a section ran."
    )


def analysis_times(_: Data) -> Measured:
    """Analysis alone, and all that stands between a program and its first batch: analysis, plan and session."""
    figures = []
    for name, program in (
        ("a query over six streams", queries.typical()),
        ("a chain of 30 streams", queries.chain(30)),
    ):
        figures.append(declared(f"analysis of {name}", 1000 * median(partial(analyse, program.definition))))
        figures.append(declared(f"opening of {name}", 1000 * median(partial(_opened, program.definition))))
        print(figures[-2].line(), figures[-1].line(), sep="\n", flush=True)
    figures.append(
        declared("opening of a chain of 50 streams", 1000 * median(lambda: _opened(queries.chain(50).definition)))
    )
    figures.append(
        declared("explanation of a pattern of 16 situations", 1000 * median(lambda: str(queries.pattern(16).explain())))
    )
    print(figures[-2].line(), figures[-1].line(), sep="\n", flush=True)
    half, whole = (1000 * median(partial(_explained, length)) for length in (50, 100))
    title = "explanation of a chain of 100 streams"
    figures += [declared(title, whole), declared(f"{title}: time / half as many streams", whole / half)]
    print(figures[-2].line(), figures[-1].line(), sep="\n", flush=True)
    return figures, True


def _state(rows: int, batches: int) -> Measured:
    figures, equal = freed_state(rows, batches)
    return [*figures, *static_tables()], equal


def _opened(definition: ProgramDef) -> None:
    with Session(analyse(definition)):
        pass


def _explained(length: int) -> None:
    str(queries.chain(length).explain())


def median(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of a call, median of several."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


#: Sections that are measured if they are asked for.
HOURS = ("rating", "spark-rating")
#: What is measured, in this order: the floor of the embedded engine before a JVM runs beside it.
SECTIONS: dict[str, Callable[[Data], Measured]] = {
    "start": lambda _: (start_up.measure(), True),
    "analysis": analysis_times,
    "embedded": lambda data: embedded.measure(data.files, data.few, data.rows),
    "groups": lambda _: groups.measure(),
    "memory": lambda data: held.measure(data, "embedded"),
    "floor": lambda _: ([floors.embedded(), floors.one_pattern()], True),
    "durable": lambda _: (durable.measure(), True),
    "live rows": lambda _: (live_rows.measure(), True),
    "background": lambda _: (background.measure(), True),
    "tuning": lambda _: (tuning.measure(), True),
    "flat": lambda _: (flat.measure(), True),
    "flat-checkpoint": lambda data: (flat.checkpointed(data.folder / "checkpoints"), True),
    "flat-files": lambda data: (
        flat_files.embedded(data.folder / "files")
        + flat_files.archived(data.folder / "archived files")
        + flat_files.backlog(data.folder / "waiting files"),
        True,
    ),
    "state": lambda data: _state(min(data.rows, 200_000), data.batches),
    "stalls": lambda _: stalls.measure(),
    "sequences": lambda _: sequences.measure_all(),
    "contexts": lambda _: contexts.measure(),
    "linear road": lambda _: linear_road_figures.measure(),
    "peak": lambda _: linear_road_figures.peak("embedded"),
    "rating": lambda _: linear_road_figures.rating("embedded"),
    "counted": lambda _: counted.measure(),
    "interval sequences": lambda _: (iseq.figures(), True),
    "look-back": lambda data: look_back.measure(data.rows),
    "windows": lambda _: (windows.measure(), True),
    "situations": lambda data: situations.measure(data.rows),
    "search": lambda _: (kernels.measure(), True),
    "threads": lambda data: threads.measure(data.rows),
    "spark": lambda data: on_spark.measure(data),
    "spark-look-back": lambda data: look_back_spark.measure(data.spark, data.rows),
    "spark-contexts": lambda data: contexts_spark.measure(data.spark),
    "spark-peak": lambda _: linear_road_figures.peak("spark"),
    "spark-rating": lambda _: linear_road_figures.rating("spark"),
    "spark-flat": lambda data: (flat.on_spark(data.spark, data.folder / "streaming", data.spark_batches), True),
    "spark-flat-files": lambda data: (flat_files.on_spark(data.spark, data.folder / "streaming files"), True),
    "spark-floor": lambda data: ([floors.on_spark(data.spark), floors.one_pattern_on_spark(data.spark)], True),
    "spark-situations": lambda data: situations_spark.measure(data.spark),
    "spark-batches": lambda data: spark_batches.measure(data.spark),
    "spark-sequences": lambda data: sequences_spark.measure(data.spark),
    "spark-executors": lambda data: speedup.measure(4 * data.rows),
    "spark-scaling": lambda _: (scaling.measure(), True),
    "spark-skew": lambda _: (skew.measure(), True),
    "spark-memory": lambda data: held.measure(data, "Spark"),
}


def _load(file: Path | None, size: dict[str, int], code: str) -> dict[str, Measurement]:
    """What an earlier run of the same size and code has measured. `SystemExit` where it is of another one."""
    if file is None or not file.exists():
        return {}
    saved: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if saved["size"] != size:
        raise SystemExit(f"{file} is of another run: {saved['size']}")
    if saved.get("code") != code:
        raise SystemExit(
            f"{file} is of the code {saved.get('code', '(unknown)')}, this is {code}: "
            "figures of one page are of one commit; remove the file and run all sections again"
        )
    return {
        name: replace(Measurement(**found), figures=[declared(*one) for one in found["figures"]])
        for name, found in saved["sections"].items()
    }


def _save(file: Path | None, size: dict[str, int], code: str, done: dict[str, Measurement]) -> None:
    if file is not None:
        sections = {
            name: {**asdict(found), "figures": [(one.name, one.value, one.detail) for one in found.figures]}
            for name, found in done.items()
        }
        saved = json.dumps({"size": size, "code": code, "sections": sections}, indent=1)
        temporary = file.with_suffix(".tmp")
        temporary.write_text(saved, encoding="utf-8")
        temporary.replace(file)


if __name__ == "__main__":
    sys.exit(main())
