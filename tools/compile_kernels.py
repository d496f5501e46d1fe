"""Compiles all kernels beside their sources, so that processes that run tests do not do it, each by itself.

    python tools/compile_kernels.py

What is compiled already is only loaded. All of it goes where a source has changed: numba looks at the file of a
function alone, and would go on with what it has compiled into callers that stand in other files.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tidegate.runtime.cli.kernels import compile_all  # noqa: E402  # found from wherever this is started

#: Where kernels stand, and beside them what they were compiled from.
KERNELS = ROOT / "runtime" / "kernels"


def main() -> int:
    """As `tidegate compile`, without a word."""
    forget_stale(KERNELS)
    compile_all()
    return 0


def forget_stale(kernels: Path) -> bool:
    """Removes what was compiled from other sources than are there now; whether there was any."""
    sources, mark = digest(kernels), kernels / "__pycache__" / "compiled-from.txt"
    if mark.exists() and mark.read_text(encoding="ascii") == sources:
        return False
    stale = [path for ending in ("nbi", "nbc") for path in kernels.rglob(f"__pycache__/*.{ending}")]
    for path in stale:
        path.unlink(missing_ok=True)
    mark.parent.mkdir(exist_ok=True)
    mark.write_text(sources, encoding="ascii")
    return bool(stale)


def digest(kernels: Path) -> str:
    """Tells the sources of kernels apart from all others."""
    found = hashlib.sha256()
    for path in sorted(kernels.rglob("*.py")):
        found.update(f"{path.relative_to(kernels)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
