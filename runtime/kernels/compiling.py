"""Compiles kernels. The machine code is cached on disk where numba can write, else compiled in each process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba as nb


def compiled(*signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` with a cache. Functions in a wheel or archive, and folders that cannot be written, have none."""

    def compile_(function: Callable[..., Any]) -> Any:
        njit: Any = nb.njit
        try:
            return njit(*signature, cache=True, **options)(function)
        except RuntimeError as problem:
            if "cannot cache" not in str(problem):
                raise
            return njit(*signature, **options)(function)

    return compile_
