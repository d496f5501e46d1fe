"""Errors on their way from Spark's Python workers to the driver: as summaries, since Spark would pass on their text only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from tidegate.algebra.errors import InternalError, Problem, QueryError, Site, TidegateError
from tidegate.algebra.evaluation import EvaluationError
from tidegate.runtime.state.errors import StateError

_KINDS: Mapping[str, type[TidegateError]] = MappingProxyType(
    {kind.__name__: kind for kind in (TidegateError, QueryError, EvaluationError, StateError, InternalError)}
)


def failure_line(error: TidegateError) -> str:
    """The summary of a task that failed."""
    kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _KINDS)
    return json.dumps({"failed": kind, "problems": [problem.to_dict() for problem in error.problems]})


def read_summaries(lines: Iterable[Any]) -> list[dict[str, Any]]:
    """What the tasks of a job did, from their rows; raises the error of the first that failed."""
    summaries = [json.loads(line.summary) for line in lines]
    for summary in summaries:
        if "failed" in summary:
            problems = tuple(map(_problem, summary["problems"]))
            raise _KINDS[summary["failed"]](problems[0].code, problems[0].message, problems=problems)
    return summaries


def _problem(plain: Mapping[str, Any]) -> Problem:
    site = None if plain["site"] is None else Site(**plain["site"])
    return Problem(plain["code"], plain["message"], site, tuple(plain["because"]), plain["hint"], plain["query"])
