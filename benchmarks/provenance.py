"""Of which code, and on how busy a machine, figures were measured."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Folders on which figures depend.
MEASURED = ("algebra", "analysis", "contexts", "runtime", "tidegate", "benchmarks", "examples")


def code(root: Path = ROOT) -> str:
    """The commit as `git describe` says it; where files were changed since, with a digest of the sources as well."""
    described = _git(root, "describe", "--always", "--abbrev=12", "--tags")
    if not _git(root, "status", "--porcelain", "--", *MEASURED):
        return described
    digest = hashlib.sha256()
    for folder in MEASURED:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{described} with changes {digest.hexdigest()[:12]}"


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(
            f"figures need the commit that they are of: git {' '.join(arguments)} fails: {error}"
        ) from error
    return done.stdout.strip()


def load() -> float:
    """Processes that wanted a core in the last minute, on average, divided by the cores."""
    return os.getloadavg()[0] / len(os.sched_getaffinity(0))


def ticks() -> tuple[int, int]:
    """Time of all cores since the machine started, and how much of it the host gave to others; in ticks of the
    kernel.
    """
    first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    times = [int(field) for field in first.split()[1:9]]
    return sum(times), times[7]


def stolen(before: tuple[int, int], after: tuple[int, int]) -> float:
    """The share of the cores' time between two calls of `ticks` that the host gave to others."""
    return (after[1] - before[1]) / max(after[0] - before[0], 1)
