"""Errors of the state layer, with their codes."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tidegate.algebra.errors import TidegateError

LOCATION: Final = "TG500"  # a location or path that no store can serve
PROGRAM: Final = "TG501"  # the checkpoint belongs to another program
FORMAT: Final = "TG502"  # written in another format version
WRITER: Final = "TG503"  # another writer holds or took the checkpoint
MANIFEST: Final = "TG504"  # manifest or meta.json damaged or missing
DATA: Final = "TG505"  # a file that a manifest names is damaged or missing
REPLAY: Final = "TG506"  # positions or Spark's ids do not continue this checkpoint
INTENT: Final = "TG507"  # intent file damaged
OUTPUT: Final = "TG508"  # an output can not be published exactly once
STORAGE: Final = "TG509"  # the file system refused an operation
MEMORY: Final = "TG510"  # this process has no more memory; says nothing of the files
FOREIGN: Final = "TG511"  # a link, or somebody else's file, in the place of a file or directory of a checkpoint


class StateError(TidegateError):
    """A checkpoint, its files or its file system can not be used as asked; nothing was half-done."""


def linked(where: str, path: str) -> StateError:
    """A link stands where a file or directory of ours belongs: what is behind it is somebody else's."""
    return StateError(
        FOREIGN,
        f"{where}/{path} is a link",
        hint="no link in a directory of Tidegate's is followed: remove it, or put what it leads to in its place "
        "(the directory that you name may be a link itself)",
    )


#: How libraries say that memory was refused where they have no error of its own for it: Arrow's reader of Parquet
#: raises an `OSError` without a number, Polars panics, and a thread gets no stack.
_REFUSED: Final = re.compile(
    r"bad_alloc|[mrc]alloc of size|out of memory|cannot allocate|memory allocation|allocation failed|capacity overflow"
    r"|unable to allocate|can't start new thread|failed to spawn|resource temporarily unavailable",
    re.IGNORECASE,
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was refused. Errors of Tidegate say by their code what they are, and a warning
    that is raised as an error may show a user's row that speaks of memory.
    """
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, TidegateError | Warning):
        return False
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ENOMEM
    return _REFUSED.search(str(error)) is not None


def is_damage(error: BaseException) -> bool:
    """Whether Arrow says of a file that its content is at fault: also by an `OSError`, to which only the file system
    gives a number.
    """
    return not is_out_of_memory(error) and not (isinstance(error, OSError) and error.errno is not None)


def out_of_memory(doing: str, error: BaseException) -> StateError:
    """What was being done when memory was refused. No file is damaged by that, and no batch is half-done."""
    said = str(error) or type(error).__name__
    return StateError(
        MEMORY,
        f"out of memory while {doing}: {said:.200}",
        hint="give the process more memory, or let a batch need less: a lower per_batch= of the sources, narrower "
        "bounds and windows, fewer threads; then run the batch or start the run again: it goes on from the last commit",
    )


@contextmanager
def memory_errors(doing: str) -> Iterator[None]:
    """Report refused memory as TG510, whichever library says it, and let every other error pass."""
    try:
        yield
    except BaseException as error:  # Polars' panics are no `Exception`
        if not is_out_of_memory(error):
            raise
        raise out_of_memory(doing, error) from error


@contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Report an `OSError` inside as a `StateError` that says what was being done and what to do; refused memory as
    TG510.
    """
    try:
        yield
    except (OSError, MemoryError) as error:
        if is_out_of_memory(error) or not isinstance(error, OSError):
            raise out_of_memory(doing, error) from error
        match error.errno:
            case errno.ENOSPC | errno.EDQUOT:
                hint = "free some space, then start the run again: it continues from the last commit"
            case errno.EROFS | errno.EACCES | errno.EPERM:
                hint = "make the directory writable for this user, then start the run again"
            case _:
                hint = "when the file system works again, start the run again: it continues from the last commit"
        raise StateError(STORAGE, f"{doing}: {error}", hint=hint) from error
