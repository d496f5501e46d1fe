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

from benchmarks.figures import LINEAR_ROAD, Figure, declared

#: Seconds of the peak that are fed, and of a search for the number of roads.
SECONDS, BUDGET = 60, 7200
#: What a search on each engine needs.
SEARCHES: Mapping[str, Sequence[str]] = {"embedded": (), "spark": ("--driver-bytes", "8000000000")}


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
    asked = ("--engine", engine, "--budget", str(BUDGET), "--before", "last", *SEARCHES[engine])
    found = _in_process("linear_road_rating.py", *asked)
    name = f"Linear Road around the peak, {'Spark' if engine == 'spark' else engine}: answered in time"
    detail = "more were not tried" if found["bad"] is None else f"{found['bad']} were not"
    figure = declared(name, found["good"], detail)
    print(figure.line(), flush=True)
    return [figure], True


def _in_process(script: str, *arguments: str) -> Any:
    """What a script writes, whatever it thinks of that."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [sys.executable, str(Path(__file__).with_name(script)), *arguments, "--json", str(file)]
        subprocess.run(command, check=False)
        return json.loads(file.read_text(encoding="utf-8"))
