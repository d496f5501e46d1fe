"""Hints on options, as a TOML file of settings has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from tidegate.algebra.errors import Problem, QueryError, Site
from tidegate.runtime.connectors.sources import SourceKeywords

_OF_FILES: Final = ("per_batch", "pattern", "archive", "delete")
#: Names of options that TOML files have; a hint on a program, which is Python, has others.
_OPTIONS: Final = "|".join((*SourceKeywords.__annotations__, *_OF_FILES, "compact", "every", "quarantine_keep"))
_NAMED: Final = r'(\[[^\]]*\]|\{[^}]*\}|"[^"]*"|\'[^\']*\'|true|false|\d+)'
#: What is written otherwise, in the order in which it is changed.
_CHANGES: Final = (
    (r",? or a datetime\.timedelta", ""),
    (r"; or call advance\([^)]*\)", ""),  # there is nobody to call it
    (r'\S+ \(in TOML (\w+ = "none")\)', r"\1"),
    (r"or None for", 'or "none" for'),
    (r'sources=\{"(\w+)": tg\.(parquet|csv|json)\(([^)]*)\)\}', r"[sources.\1] and \2 = \3"),
    (r"tg\.(parquet|csv|json)\(\.\.\.\)", r'\1 = "..."'),
    (r"tg\.(parquet|csv|json)\(([^()]*)\)", r"\1 = \2"),
    (r"\bTrue\b", "true"),
    (r"\bFalse\b", "false"),
    (r'=\(("[^()]*")\)', r"=[\1]"),  # a tuple of names
    (r'([{,] ?)"(\w+)": ', r"\1\2 = "),
    (rf"\b({_OPTIONS})={_NAMED}", r"\1 = \2"),
    (rf"\b({_OPTIONS})=(?![\w\"'])", r"\1"),
)


def in_toml(hint: str) -> str:
    """A hint with its options as TOML writes them; it has no `None`, for which it says "none"."""
    for pattern, instead in _CHANGES:
        hint = re.sub(pattern, instead, hint)
    return hint


def as_written(problem: Problem, site: Site | None) -> Problem:
    """A problem with what stands at a place of a user's, whose hint is in the words of that file."""
    is_toml = site is not None and site.file.endswith(".toml")
    return replace(problem, hint=in_toml(problem.hint)) if is_toml else problem


@contextmanager
def errors_in_toml() -> Iterator[None]:
    """Raises a `QueryError` with its hints as TOML has them."""
    try:
        yield
    except QueryError as error:
        said = [replace(problem, hint=in_toml(problem.hint)) for problem in error.problems]
        raise type(error).of(said) from error.__cause__
