"""Errors of the state layer, with their codes."""

from __future__ import annotations

import errno
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


@contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Report an `OSError` inside as a `StateError` that says what was being done and what to do."""
    try:
        yield
    except OSError as error:
        match error.errno:
            case errno.ENOSPC | errno.EDQUOT:
                hint = "free some space, then start the run again: it continues from the last commit"
            case errno.EROFS | errno.EACCES | errno.EPERM:
                hint = "make the directory writable for this user, then start the run again"
            case _:
                hint = "when the file system works again, start the run again: it continues from the last commit"
        raise StateError(STORAGE, f"{doing}: {error}", hint=hint) from error
