"""Sections of the benchmarks at another commit and here, in turn: what a change has made quicker or slower.

The other commit is checked out beside this tree. Both sides run at least three times, A B A B A B, each run in a
process of its own. For every figure that both have, the ratios of the pairs are printed: this tree's value by the
other's, the median with the least and the greatest. Nothing else should run meanwhile.

python benchmarks/beside.py COMMIT --only embedded floor [--times 3] [--rows 1000000]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import PAIRS

ROOT = Path(__file__).resolve().parent.parent
#: Values of the figures of a run by their names.
Values = Mapping[str, float]


def main() -> int:
    """Prints a line for each figure; the exit status is 0. A side whose results are not equal ends it with an error."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("commit")
    options.add_argument("--only", nargs="+", required=True, metavar="SECTION")
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--times", type=int, default=PAIRS)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as work:
        other = Path(work) / "other"
        _git("worktree", "add", "--detach", str(other), chosen.commit)
        try:
            theirs, ours = measured((other, ROOT), Path(work), chosen.only, chosen.rows, chosen.times)
        finally:
            _git("worktree", "remove", "--force", str(other))
    for line in lines(theirs, ours):
        print(line)
    return 0


def measured(
    sides: Sequence[Path], work: Path, sections: Sequence[str], rows: int, times: int
) -> tuple[list[Values], ...]:
    """What the runs of each side have found, all sides in turn."""
    for side in sides:
        if (kernels := side / "tools" / "compile_kernels.py").exists():
            subprocess.run([sys.executable, str(kernels)], check=True, cwd=side)
    found: tuple[list[Values], ...] = tuple([] for _ in sides)
    for number in range(times):
        for side, runs in zip(sides, found, strict=True):
            file = work / f"{side.name} {number}.json"
            command = [sys.executable, "benchmarks/run.py", "--rows", str(rows), "--resume", str(file), "--only"]
            environment = {**os.environ, "PYTHONPATH": str(side)}
            subprocess.run([*command, *sections], check=True, cwd=side, env=environment, stdout=subprocess.DEVNULL)
            runs.append(values(json.loads(file.read_text(encoding="utf-8"))))
    return found


def values(saved: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a run as it was saved."""
    return {name: value for section in saved["sections"].values() for name, value, *_ in section["figures"]}


def lines(theirs: Sequence[Values], ours: Sequence[Values]) -> Iterator[str]:
    """A line for each figure of both sides, and one for each of which a side knows nothing."""
    yield f"{'figure':<70}{'other':>16}{'here':>16}  here / other"
    for name in {**theirs[0], **ours[0]}:
        pairs = [(one[name], two[name]) for one, two in zip(theirs, ours, strict=True) if name in one and name in two]
        if not pairs:
            yield f"{name:<70}  on one side alone"
            continue
        other, here = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratios = [two / one for one, two in pairs if one]
        told = (
            f"{statistics.median(ratios):.2f} (least {min(ratios):.2f}, greatest {max(ratios):.2f})" if ratios else ""
        )
        yield f"{name:<70}{other:>16,.2f}{here:>16,.2f}  {told}".rstrip()


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
