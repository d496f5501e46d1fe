"""Frames of calls: which are the library's, which a user's, and what is shown of a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from types import FrameType, TracebackType


def keeps_all() -> bool:
    """Whether the user asks to see all frames: `TIDEGATE_TRACEBACK=full` in the environment."""
    return os.environ.get("TIDEGATE_TRACEBACK") == "full"


def is_ours(frame: FrameType) -> bool:
    """Whether a frame is the library's."""
    module = module_of(frame)
    return module == "tidegate" or module.startswith("tidegate.")


def is_between(frame: FrameType) -> bool:
    """Whether a frame is of what calls the library, or stands between its frames, and no user wrote."""
    module = module_of(frame)
    return module == "contextlib" or module.startswith(("pyspark.", "py4j."))


def is_shell(frame: FrameType) -> bool:
    """Whether a frame is that of the shell which runs the cells of a notebook."""
    return module_of(frame).startswith("IPython.")


def module_of(frame: FrameType) -> str:
    """The name of a frame's module; empty where it has none."""
    spec = frame.f_globals.get("__spec__")  # it knows the name of what `python -m` runs
    name = frame.f_globals.get("__name__", "") if spec is None else spec.name
    return name if isinstance(name, str) else ""


def cell_name(file: str) -> str | None:
    """The name that a notebook shows beside a cell ("In[3]"), for the file that it makes of it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return None if named is None else str(named[1])


def of_user(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of the library, of what it calls itself by, and of the shell of a notebook; all
    of it where the user asks for that.
    """
    if keeps_all():
        return trace
    frames = []
    while trace is not None:
        if not is_ours(trace.tb_frame) and not is_between(trace.tb_frame) and not is_shell(trace.tb_frame):
            frames.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for entry in reversed(frames):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def rendered(error: BaseException) -> list[str]:
    """The lines that a notebook shows of an error: it asks the error itself. Files made of cells have the cells'
    names.
    """
    summary = traceback.TracebackException(type(error), error, of_user(error.__traceback__))
    current: traceback.TracebackException | None = summary
    while current is not None:
        for frame in current.stack:
            frame.filename = cell_name(frame.filename) or frame.filename
        current = current.__cause__ or current.__context__
    return "".join(summary.format()).splitlines()
