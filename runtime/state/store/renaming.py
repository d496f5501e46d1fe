"""`renameat2` of Linux, which Python has no function for: it takes a name only where it is free, or exchanges two."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

NO_REPLACE: Final = 1
EXCHANGE: Final = 2
_HERE: Final = -100


def renamed(source: str | Path, target: str | Path, how: int, folder: int = _HERE) -> int:
    """Renames a file or directory; 0 where that is done, else the number of the error: ENOSYS or EINVAL where the
    system or the file system cannot do it so.

    Names are looked up in `folder`, the descriptor of an open one, or from where the process is.
    """
    call = _renameat2()
    if call is None:
        return errno.ENOSYS
    done = call(folder, os.fsencode(source), folder, os.fsencode(target), how) == 0
    return 0 if done else ctypes.get_errno()


@cache  # to look it up takes longer than to rename
def _renameat2() -> Callable[..., int] | None:
    call: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return call
