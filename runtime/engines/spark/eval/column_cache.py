"""A cache of Spark's columns: each costs calls to the JVM, and every batch needs the same ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from types import MappingProxyType
from typing import Any, TypeVar, TypeVarTuple

from pyspark import SparkContext
from pyspark.sql import Column

from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term
from tidegate.runtime.engines.spark.eval.terms import compile_term

Ts = TypeVarTuple("Ts")
R = TypeVar("R")

#: Results kept of each function; those with progress values in them are never asked for again, and go first.
KEPT = 1 << 12


def kept(function: Callable[[*Ts], R]) -> Callable[[*Ts], R]:
    """Keeps what a function makes of its (hashable) arguments, for as long as it is the same JVM."""

    @lru_cache(maxsize=KEPT)
    def made(_: object, *args: Any) -> R:
        return function(*args)

    @wraps(function)
    def looked_up(*args: *Ts) -> R:
        return made(SparkContext._gateway, *args)

    return looked_up


def kept_term(term: Term, schema: Schema, columns: Mapping[str, str] = MappingProxyType({})) -> Column:
    """As `compile_term`."""
    return _term(term, schema, tuple(columns.items()))


@kept
def _term(term: Term, schema: Schema, columns: tuple[tuple[str, str], ...]) -> Column:
    return compile_term(term, schema, dict(columns))
