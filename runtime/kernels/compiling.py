"""Compiles kernels, for arguments of the types here. The machine code is cached on disk where numba can write, else
compiled in each process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numba as nb
from numba.core.options import DefaultOptions

#: Without them the code does the same and takes longer: it is not an option that Numba documents.
_UNCOUNTED: Final = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}

#: Arrays that a kernel only reads: any array of these values will do.
INTS, TABLE, CUBE = (nb.types.Array(nb.int64, dimensions, "C", readonly=True) for dimensions in (1, 2, 3))
NUMBERS, SYMBOLS, DOUBLES, FLAGS, BYTES, BITS = (
    nb.types.Array(values, 1, "C", readonly=True)
    for values in (nb.int32, nb.int16, nb.float64, nb.boolean, nb.uint8, nb.uint64)
)
#: Arrays that it may write.
OUT, OUT_TABLE, OUT_CUBE = nb.int64[::1], nb.int64[:, ::1], nb.int64[:, :, ::1]
OUT_NUMBERS, OUT_DOUBLES, OUT_FLAGS, OUT_BITS = nb.int32[::1], nb.float64[::1], nb.boolean[::1], nb.uint64[::1]


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
