"""Result streams that relations read, by name: each name is one stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidegate.algebra.errors import QueryError

if TYPE_CHECKING:
    from tidegate.algebra.dsl.sources import Result


def add_results(known: dict[str, Result], more: Mapping[str, Result]) -> None:
    """Adds result streams to those that are read already; `QueryError` TG121 for two of one name by other queries."""
    for name, result in more.items():
        before = known.setdefault(name, result)
        if before is result or result._fed_by is None:
            continue
        if before._fed_by is None:
            known[name] = result
        elif not _are_one(before, result):
            raise QueryError(
                "TG121",
                f"{name} is the result of two queries",
                hint="give each a name of its own; of a model of contexts read the one with all its queries everywhere",
            )


def _are_one(first: Result, second: Result) -> bool:
    """Whether the same query feeds both, of the same results."""
    if first is second or first._fed_by is None or second._fed_by is None:
        return True
    common = first._fed_reads.keys() & second._fed_reads.keys()
    return first._fed_by.node == second._fed_by.node and all(
        _are_one(first._fed_reads[name], second._fed_reads[name]) for name in common
    )
