"""`renameat2` of Linux, which Python has no function for: it takes a name only where it is free, or exchanges two."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

NO_REPLACE: Final = 1
EXCHANGE: Final = 2
_HERE: Final = -100


def renamed(source: Path, target: Path, how: int) -> int:
    """Renames a file or directory; 0 where that is done, else the number of the error: ENOSYS or EINVAL where the
    system or the file system cannot do it so.
    """
    call: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return errno.ENOSYS
    done = call(_HERE, os.fsencode(source), _HERE, os.fsencode(target), how) == 0
    return 0 if done else ctypes.get_errno()
