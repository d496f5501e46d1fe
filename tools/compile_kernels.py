"""Compiles all kernels beside their sources, so that processes that run tests do not do it, each by itself.

    python tools/compile_kernels.py

What is compiled already is only loaded.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tidegate.runtime.cli.kernels import compile_all  # noqa: E402  # found from wherever this is started


def main() -> int:
    """As `tidegate compile`, without a word."""
    compile_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
