"""Paths on their way to Spark, which takes characters of patterns in them."""

from __future__ import annotations

import os
import re

#: What Hadoop takes for a pattern; a backslash before it makes it stand for itself.
_PATTERN = re.compile(r"([\\*?\[\]{}])")


def local_uri(path: str | os.PathLike[str]) -> str:
    """A path as one of local files, whatever file system Spark takes paths to be of, and wherever its JVM was
    started.
    """
    return f"file:{os.path.abspath(path)}"


def literal(path: str | os.PathLike[str]) -> str:
    """`local_uri` for a reader, which would take it as a pattern."""
    return _PATTERN.sub(r"\\\1", local_uri(path))
