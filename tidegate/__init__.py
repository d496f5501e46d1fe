"""Tidegate: temporal relational algebra over event streams, analysed before it runs, incremental on Spark and embedded."""

from tidegate.algebra.dsl.aggregates import AggregateExpression, avg, count, count_distinct, first, last, max, min, sum
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.functions import (
    ceil,
    coalesce,
    concat,
    days,
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
from tidegate.algebra.dsl.relation import Relation, product
from tidegate.algebra.dsl.sources import QueryHandle, Result, query, result, stream, table
from tidegate.algebra.errors import InternalError, Problem, QueryError, Site, TidegateError
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.runtime.program import Program, program, result_of

__version__ = "0.1.0"

__all__ = [
    # where rows come from, and where results go
    "stream",
    "table",
    "result",
    "result_of",
    "query",
    "program",
    # relations
    "product",
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
    # windows
    "floor",
    "ceil",
    "tumbling",
    # aggregates; min and max of several values are the least and greatest of a row
    "count",
    "count_distinct",
    "sum",
    "avg",
    "min",
    "max",
    "first",
    "last",
    # what the functions above yield
    "Relation",
    "Result",
    "QueryHandle",
    "Expression",
    "AggregateExpression",
    "Program",
    "Attribute",
    "Schema",
    "StreamDef",
    # errors
    "TidegateError",
    "QueryError",
    "InternalError",
    "Problem",
    "Site",
    "__version__",
]
