"""Compiles all kernels beside their sources, so that processes that run tests do not do it, each by itself.

    python tools/compile_kernels.py

What is compiled already is only loaded.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tidegate.runtime import kernels  # noqa: E402  # found from wherever this is started


def main() -> int:
    """Imports every module with kernels, which compiles them."""
    for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}."):
        importlib.import_module(module.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
