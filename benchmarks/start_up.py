"""How long the README's example takes as a program of its own, from its start to its end.

Once with the compiled kernels that lie beside the library, and once where none was ever compiled.

python benchmarks/start_up.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import Figure, declared, print_table

ROOT = Path(__file__).resolve().parent.parent
TIMES, MS = 5, 1000


def example() -> str:
    """The first program of the README."""
    return (ROOT / "README.md").read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]


def measure(times: int = TIMES) -> list[Figure]:
    """Medians of several runs."""
    with tempfile.TemporaryDirectory() as work:
        script = Path(work) / "example.py"
        script.write_text(example(), encoding="utf-8")
        seconds(script, {})  # files of the library come into memory
        warm = [seconds(script, {}) for _ in range(times)]
        cold = [seconds(script, {"NUMBA_CACHE_DIR": f"{work}/kernels {number}"}) for number in range(times)]
    name = "the README's example, from start to end"
    figures = [
        declared(name, MS * statistics.median(warm), f"least {MS * min(warm):.0f}, greatest {MS * max(warm):.0f}"),
        declared(
            f"{name}, no kernel compiled",
            MS * statistics.median(cold),
            f"least {MS * min(cold):.0f}, greatest {MS * max(cold):.0f}",
        ),
    ]
    for figure in figures:
        print(figure.line(), flush=True)
    return figures


def seconds(script: Path, more: dict[str, str]) -> float:
    """Of one run."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, str(script)],
        cwd=script.parent,
        env={**os.environ, "PYTHONPATH": path, **more},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - began


def main() -> int:
    """Prints the figures; the exit status is 0."""
    print_table(measure())
    return 0


if __name__ == "__main__":
    sys.exit(main())
