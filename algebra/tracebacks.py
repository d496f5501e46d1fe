"""Tracebacks of errors that users can mend: their own frames alone, since nothing inside the library is theirs to mend.

`TIDEGATE_TRACEBACK=full` in the environment shows all frames, as errors of ours (`InternalError`) always do.
"""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType

from tidegate.algebra.errors import QueryError, cell_name, is_ours, is_shell

_BEFORE = sys.excepthook


def of_user(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of the library, and of the shell of a notebook; all of it where the user asks for that,
    or nothing else is there.
    """
    if os.environ.get("TIDEGATE_TRACEBACK") == "full":
        return trace
    frames = []
    current = trace
    while current is not None:
        if not is_ours(current.tb_frame) and not is_shell(current.tb_frame):
            frames.append(current)
        current = current.tb_next
    kept: TracebackType | None = None
    for one in reversed(frames):
        kept = TracebackType(kept, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return kept or trace


def rendered(error: QueryError) -> list[str]:
    """The lines that a notebook shows of an error: it asks the error itself. Files made of cells have the cells' names."""
    told = traceback.TracebackException(type(error), error, of_user(error.__traceback__))
    for frame in told.stack:
        frame.filename = cell_name(frame.filename) or frame.filename
    return "".join(told.format()).splitlines()


def install() -> None:
    """Errors of queries that end a program are shown so; every other goes to the hook that was there before."""
    global _BEFORE
    if sys.excepthook is not _show:
        _BEFORE, sys.excepthook = sys.excepthook, _show


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, QueryError):
        trace = of_user(trace)
        error = error.with_traceback(trace)
    _BEFORE(kind, error, trace)
