"""Compiles kernels. The machine code is cached on disk where numba can write, else compiled in each process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numba as nb
from numba.core.options import DefaultOptions

#: Without them the code does the same and takes longer: it is not an option that Numba documents.
_UNCOUNTED: Final = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def compiled(*signature: Any, borrows: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` with a cache. Functions in a wheel or archive, and folders that cannot be written, have none.

    A function that `borrows` makes no arrays. Numba then does not count the references to those it is given, which
    it does for each call inside, also where that is inlined: two thirds of the time of a search for matches.
    """
    if borrows:
        options |= _UNCOUNTED

    def compile_(function: Callable[..., Any]) -> Any:
        njit: Any = nb.njit
        try:
            return njit(*signature, cache=True, **options)(function)
        except RuntimeError as problem:
            if "cannot cache" not in str(problem):
                raise
            return njit(*signature, **options)(function)

    return compile_
