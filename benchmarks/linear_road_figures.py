"""Linear Road in `make bench`: what a row costs at the peak, and, where it is asked for, how many roads are answered in
time. Each run is a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import LINEAR_ROAD, PEAK_MINUTES, SEARCH_MINUTES, Figure, declared

#: Seconds of the peak that are fed, of a search for the number of roads, and of a short one.
SECONDS, BUDGET, SHORT_BUDGET = 60, 7200, 60 * SEARCH_MINUTES
#: What a search on each engine needs.
SEARCHES: Mapping[str, Sequence[str]] = {"embedded": (), "spark": ("--driver-bytes", "8000000000")}

#: With how many roads a short search begins: few enough to be answered. It may have no time for another trial.
FIRST: Mapping[str, int] = {"embedded": 128, "spark": 32}
#: What a short search feeds at its own times: two minutes, after half of the time to warm up.
PEAK = ("--before", "last", "--start", "7050", "--seconds", str(60 * PEAK_MINUTES), "--warm", "150")


def measure() -> tuple[list[Figure], bool]:
    """Microseconds of one core a row, and whether the answers were right."""
    figures, right = [], True
    for roads, length in LINEAR_ROAD:
        (made,) = _in_process(
            "linear_road.py", "--roads", str(roads), "--together", str(length), "--seconds", str(SECONDS)
        )
        right = right and made["right"]
        name = f"Linear Road, {roads} roads at the peak, {length} s a batch, one core: a row"
        detail = f"{made['rows']:,} rows, longest batch {made['longest']:.2f} s"
        figures.append(declared(name, 1e6 * made["seconds"] / made["rows"], detail))
        print(figures[-1].line(), flush=True)
    return figures, right


def rating(engine: str) -> tuple[list[Figure], bool]:
    """The greatest number of roads that was answered in time within the budget; no three hours, and so no rating."""
    name = f"Linear Road around the peak, {_named(engine)}: answered in time"
    return _searched(name, engine, BUDGET, "--before", "last")


def peak(engine: str) -> tuple[list[Figure], bool]:
    """The same within some minutes: of two minutes around the peak, with as many trials as there is time for."""
    name = f"Linear Road, {PEAK_MINUTES} min around the peak, a search of {SEARCH_MINUTES} min, {_named(engine)}"
    return _searched(f"{name}: answered in time", engine, SHORT_BUDGET, *PEAK, "--first", str(FIRST[engine]))


def _searched(name: str, engine: str, budget: int, *arguments: str) -> tuple[list[Figure], bool]:
    asked = ("--engine", engine, "--budget", str(budget), *arguments, *SEARCHES[engine])
    found = _in_process("linear_road_rating.py", *asked)
    detail = "more were not tried" if found["bad"] is None else f"{found['bad']} were not"
    if (passed := found["passes"]) is not None:
        detail += f"; {passed['mean']:,.0f} rows/s in the mean, {passed['peak']:,} at the peak; {passed['limit']}"
    figure = declared(name, found["good"], detail)
    print(figure.line(), flush=True)
    return [figure], True


def _named(engine: str) -> str:
    return "Spark" if engine == "spark" else engine


def _in_process(script: str, *arguments: str) -> Any:
    """What a script writes, whatever it thinks of that."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [sys.executable, str(Path(__file__).with_name(script)), *arguments, "--json", str(file)]
        subprocess.run(command, check=False)
        return json.loads(file.read_text(encoding="utf-8"))
