"""Tidegate: temporal relational algebra over event streams, analysed before it runs, incremental on Spark and embedded.

Examples in docstrings go on from the lines with which the page of functions and classes begins, docs/reference/api.md:
`orders`, `payments` and `cars` are streams with rows for them, `program` asks which orders are not paid in time, and
`show` prints rows.
"""

import os
from typing import TYPE_CHECKING

from tidegate.algebra.diagnostics.tracebacks import trimmed
from tidegate.algebra.dsl.aggregates import (
    AggregateExpression,
    any_value,
    approx_distinct,
    approx_quantile,
    arg_max,
    arg_min,
    avg,
    bool_and,
    bool_or,
    count,
    count_distinct,
    count_if,
    first,
    last,
    max,
    median,
    min,
    mode,
    quantile,
    stddev,
    string_agg,
    sum,
    try_sum,
    variance,
)
from tidegate.algebra.dsl.checks.suggestions import function_hint
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.functions import (
    ceil,
    coalesce,
    concat,
    concat_ws,
    days,
    days_between,
    duration,
    floor,
    hours,
    lit,
    milliseconds,
    minutes,
    seconds,
    timestamp,
    tumbling,
    when,
)
from tidegate.algebra.dsl.here import unknown_name
from tidegate.algebra.dsl.over.columns import (
    OverExpression,
    lag,
    lead,
    next_different,
    nth,
    previous_different,
    row_number,
)
from tidegate.algebra.dsl.ranks.columns import Descending, RankExpression, dense_rank, desc, rank
from tidegate.algebra.dsl.relation import Relation, product
from tidegate.algebra.dsl.sequences.intervals import iseq
from tidegate.algebra.dsl.situations import Derived, Intervals, Partitioned, Situation, match, situation
from tidegate.algebra.dsl.sources import QueryHandle, Result, query, result, stream, table
from tidegate.algebra.dsl.ticks.following import ticks
from tidegate.algebra.dsl.versions.build import Versioned
from tidegate.algebra.dsl.windows.bounds import WindowBounds, calendar, cumulating, hopping, landmark, rows, session
from tidegate.algebra.errors import InternalError, Problem, QueryError, Site, TidegateError
from tidegate.algebra.ordered.process import Operator, Reach
from tidegate.algebra.schema import Attribute, Begins, Schema, StreamDef
from tidegate.algebra.text import clause as _clause  # noqa: F401  # relations read clauses
from tidegate.runtime.program import Program, program, result_of
from tidegate.version import VERSION as __version__

if TYPE_CHECKING:
    from tidegate.algebra.dsl.windows.between import Between, between
    from tidegate.algebra.text.printer import query_text
    from tidegate.algebra.text.reader import AmbiguousRelationWarning, read_query
    from tidegate.contexts.model import ContextModel, context_model
    from tidegate.contexts.text.queries import ContextQueries
    from tidegate.contexts.text.reader import read_contexts
    from tidegate.runtime.batch.report import BatchReport
    from tidegate.runtime.cli.deployment import Deployment, deployment
    from tidegate.runtime.connectors.sinks import callback, parquet_sink
    from tidegate.runtime.connectors.sources import Source, csv, json, parquet, source
    from tidegate.runtime.engines.embedded.background import BackgroundSession, QueueFullError
    from tidegate.runtime.engines.embedded.session import Session
    from tidegate.runtime.engines.notices import RunWarning
    from tidegate.runtime.engines.spark.engine import RunningQuery
    from tidegate.runtime.engines.spark.setup.session import spark_session
    from tidegate.runtime.ingest.quarantine import read_quarantine
    from tidegate.runtime.inspect.results import Results, ResultTable
    from tidegate.runtime.inspect.timelines.timeline import Timeline, timeline
    from tidegate.runtime.plan.schedule import Schedule, schedule
    from tidegate.runtime.state.outputs.compaction import hold_compaction

# Polars gives memory back half a second after it was last used, and a batch that comes later touches all of it anew.
# Ten seconds are what its allocator would do by itself. It asks when Polars is loaded; a value that is there stays
# (decision 18).
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:10000")

#: Names that only running a program, queries in text, contexts or windows between rows need, loaded when they are first
#: used.
_WHEN_USED = {
    **dict.fromkeys(("Between", "between"), "tidegate.algebra.dsl.windows.between"),
    **dict.fromkeys(("ContextModel", "context_model"), "tidegate.contexts.model"),
    "read_contexts": "tidegate.contexts.text.reader",
    "ContextQueries": "tidegate.contexts.text.queries",
    **dict.fromkeys(("AmbiguousRelationWarning", "read_query"), "tidegate.algebra.text.reader"),
    "query_text": "tidegate.algebra.text.printer",
    **dict.fromkeys(("Source", "csv", "json", "parquet", "source"), "tidegate.runtime.connectors.sources"),
    **dict.fromkeys(("callback", "parquet_sink"), "tidegate.runtime.connectors.sinks"),
    **dict.fromkeys(("Timeline", "timeline"), "tidegate.runtime.inspect.timelines.timeline"),
    "read_quarantine": "tidegate.runtime.ingest.quarantine",
    "hold_compaction": "tidegate.runtime.state.outputs.compaction",
    **dict.fromkeys(("Schedule", "schedule"), "tidegate.runtime.plan.schedule"),
    **dict.fromkeys(("Results", "ResultTable"), "tidegate.runtime.inspect.results"),
    "BatchReport": "tidegate.runtime.batch.report",
    **dict.fromkeys(("Deployment", "deployment"), "tidegate.runtime.cli.deployment"),
    "RunWarning": "tidegate.runtime.engines.notices",
    "Session": "tidegate.runtime.engines.embedded.session",
    **dict.fromkeys(("BackgroundSession", "QueueFullError"), "tidegate.runtime.engines.embedded.background"),
    "RunningQuery": "tidegate.runtime.engines.spark.engine",
    "spark_session": "tidegate.runtime.engines.spark.setup.session",
}


if not TYPE_CHECKING:  # type checkers shall refuse unknown names themselves

    @trimmed
    def __getattr__(name: str) -> object:
        if name not in _WHEN_USED:
            if name.startswith("_"):
                raise AttributeError(name)
            raise unknown_name(f"tidegate has no function {name!r}", function_hint(name, __all__, dir(Expression)))
        from importlib import import_module

        from tidegate.runtime.extras import spark_extra

        with spark_extra():
            return getattr(import_module(_WHEN_USED[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    # where rows come from, and where results go
    "stream",
    "table",
    "result",
    "result_of",
    "query",
    "program",
    # data at run time
    "source",
    "parquet",
    "csv",
    "json",
    "parquet_sink",
    "callback",
    "schedule",
    "read_quarantine",
    "hold_compaction",
    "spark_session",
    "deployment",
    # relations
    "product",
    # application contexts
    "context_model",
    "read_contexts",
    # situations and temporal patterns
    "situation",
    "match",
    "iseq",
    "timeline",
    "read_query",
    "query_text",
    # values
    "lit",
    "timestamp",
    "duration",
    "milliseconds",
    "seconds",
    "minutes",
    "hours",
    "days",
    "when",
    "coalesce",
    "concat",
    "concat_ws",
    "days_between",
    # windows
    "floor",
    "ceil",
    "tumbling",
    "session",
    "hopping",
    "cumulating",
    "ticks",
    "calendar",
    "landmark",
    "rows",
    "between",
    # aggregates; min and max of several values are the least and greatest of a row
    "count",
    "count_distinct",
    "sum",
    "try_sum",
    "avg",
    "min",
    "max",
    "first",
    "last",
    "any_value",
    "arg_max",
    "arg_min",
    "bool_and",
    "bool_or",
    "count_if",
    "median",
    "mode",
    "quantile",
    "stddev",
    "string_agg",
    "variance",
    "approx_distinct",
    "approx_quantile",
    # values of the rows around a row
    "lag",
    "lead",
    "next_different",
    "nth",
    "previous_different",
    "row_number",
    # places of the rows of a group
    "rank",
    "dense_rank",
    "desc",
    # what the functions above yield
    "Reach",
    "Relation",
    "Partitioned",
    "Situation",
    "Derived",
    "Intervals",
    "Operator",
    "Timeline",
    "Result",
    "QueryHandle",
    "Expression",
    "AggregateExpression",
    "OverExpression",
    "RankExpression",
    "Descending",
    "Versioned",
    "ContextModel",
    "ContextQueries",
    "WindowBounds",
    "Between",
    "Program",
    "Deployment",
    "Session",
    "BackgroundSession",
    "RunningQuery",
    "Results",
    "ResultTable",
    "BatchReport",
    "Source",
    "Schedule",
    "Attribute",
    "Begins",
    "Schema",
    "StreamDef",
    # errors
    "TidegateError",
    "QueryError",
    "QueueFullError",
    "InternalError",
    "AmbiguousRelationWarning",
    "RunWarning",
    "Problem",
    "Site",
    "__version__",
]
