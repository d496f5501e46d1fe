"""Compiling kernels: kept on disk where numba has a place for it, else made anew in each process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba as nb


def compiled(*signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` with its cache, or without one for functions that lie in a wheel or archive, or where nothing can be written."""

    def compile_(function: Callable[..., Any]) -> Any:
        njit: Any = nb.njit
        try:
            return njit(*signature, cache=True, **options)(function)
        except RuntimeError as problem:
            if "cannot cache" not in str(problem):
                raise
            return njit(*signature, **options)(function)

    return compile_
