"""Errors on their way from Spark's Python workers to the driver: as summaries, since Spark would pass on their text
only. And from the driver to whoever waits for a query: without what Spark says of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pyspark.sql import SparkSession

from tidegate.algebra.diagnostics.tracebacks import shows_all
from tidegate.algebra.errors import InternalError, Problem, QueryError, Site, TidegateError
from tidegate.algebra.evaluation import EvaluationError
from tidegate.runtime.state.errors import StateError

#: Its loggers tell of a query that ended with an error, with all frames of Python and of the JVM.
_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_KINDS: Mapping[str, type[TidegateError]] = MappingProxyType(
    {kind.__name__: kind for kind in (TidegateError, QueryError, EvaluationError, StateError, InternalError)}
)


def failure_line(error: TidegateError) -> str:
    """The summary of a task that failed."""
    kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _KINDS)
    return json.dumps({"failed": kind, "problems": [problem.to_dict() for problem in error.problems]})


def read_summaries(lines: Iterable[str]) -> list[dict[str, Any]]:
    """What the tasks of a job did; raises the error of the first that failed."""
    summaries = [json.loads(line) for line in lines]
    for summary in summaries:
        if "failed" in summary:
            problems = tuple(map(_problem, summary["problems"]))
            raise _KINDS[summary["failed"]](problems[0].code, problems[0].message, problems=problems)
    return summaries


def _problem(plain: Mapping[str, Any]) -> Problem:
    site = None if plain["site"] is None else Site(**plain["site"])
    return Problem(plain["code"], plain["message"], site, tuple(plain["because"]), plain["hint"], plain["query"])


def cause_of(error: TidegateError, failure: BaseException) -> BaseException | None:
    """What to raise an error from in the place of Spark's failure: its own cause, unless all is shown. Spark's text is
    the same error once more, among a hundred lines of frames."""
    return failure if shows_all(error) else error.__cause__


def hushed(spark: SparkSession, error: BaseException | None) -> Callable[[], None]:
    """Keeps Spark from logging that a query ended with an error that whoever waits for the query is told; gives what
    lets it speak again, once the query has ended."""
    if not isinstance(error, TidegateError) or shows_all(error):
        return nothing
    log4j = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # a session in this process has one
    before = log4j.LogManager.getLogger(_STREAMING).getLevel()
    if before.equals(log4j.Level.OFF):  # another query has ended so, and nobody has waited for that yet
        return nothing
    log4j.core.config.Configurator.setLevel(_STREAMING, log4j.Level.OFF)
    return lambda: log4j.core.config.Configurator.setLevel(_STREAMING, before)


def nothing() -> None:
    """What lets Spark speak that was not hushed."""
