"""Random static programs against a SQL engine: over finite relations the temporal algebra is relational algebra.

The SQL text is built here from the generated tree, and nowhere else in the project.
"""

# ruff: noqa: S608  # the text comes from trees and names that are generated here
from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

import duckdb
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

from tests.strategies.trees import VALUES, Case, Profile, cases
from tidegate.algebra.functions.aggregates import TABLE, Aggregate, Function
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    OrderedNode,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    occurrences,
)
from tidegate.algebra.schema import Schema
from tidegate.algebra.semantics import Row, bags_equal
from tidegate.algebra.semantics import evaluate as reference
from tidegate.algebra.terms import Attr, Call, Lit, Param, Term
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import DataType, Kind
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.relational import evaluate

#: DuckDB's sum of doubles rounds at every step; halves and quarters are exact in any order.
#: Of what keeps every value, SQL leaves open what the order of rows decides, or rounds otherwise.
PROFILE = Profile(
    palette={**VALUES, Kind.DOUBLE: (0.0, 0.5, -1.5, 2.25, 8.0)},
    aggregates=tuple(one for one in Function if TABLE[one].of_events),
)
_INFIX = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq_null_safe": "IS NOT DISTINCT FROM"}
_ARITHMETIC = {"try_add": "+", "try_sub": "-", "add": "+", "sub": "-", "mul": "*"}


def name(attribute: str) -> str:
    """A quoted identifier; DuckDB ignores case even there, so upper-case letters are spelt out."""
    spelt = "".join(f"~{c.lower()}" if c.isupper() else c for c in attribute)
    return '"' + spelt.replace('"', '""') + '"'


def literal(value: object, type_: DataType) -> str:
    held = {Kind.BOOLEAN: "BOOLEAN", Kind.DOUBLE: "DOUBLE", Kind.STRING: "VARCHAR"}.get(type_.kind, "BIGINT")
    match value:
        case None:
            text = "NULL"
        case str():
            text = "'" + value.replace("'", "''") + "'"
        case _:
            text = f"({value})"
    return f"CAST({text} AS {held})"


class Sql:
    """Translates a tree; every subquery has an alias of its own, and every attribute a quoted name."""

    def __init__(self) -> None:
        self.aliases: Iterator[str] = (f"q{i}" for i in itertools.count())

    def query(self, node: Node) -> str:
        match node:
            case Scan(stream):
                return f"SELECT * FROM {name(stream.name)}"
            case Select(input_, condition):
                return f"SELECT * FROM {self.source(input_)} WHERE {self.term(condition)}"
            case Project(input_, names):
                return f"SELECT {self.columns(names)} FROM {self.source(input_)}"
            case Rename(input_, pairs):
                new = dict(pairs)
                columns = ", ".join(f"{name(a)} AS {name(new.get(a, a))}" for a in input_.schema)
                return f"SELECT {columns} FROM {self.source(input_)}"
            case Imbed(input_, made, term):
                return f"SELECT *, {self.term(term)} AS {name(made)} FROM {self.source(input_)}"
            case Group(input_, keys, aggregates):
                values = [f"{self.aggregate(a, input_.schema)} AS {name(a.name)}" for a in aggregates]
                by = f"GROUP BY {self.columns(keys)}" if keys else "HAVING count(*) > 0"
                return f"SELECT {', '.join([*map(name, keys), *values])} FROM {self.source(input_)} {by}"
            case Distinct(input_):
                return f"SELECT DISTINCT * FROM {self.source(input_)}"
            case Product(left, right):
                return f"SELECT * FROM {self.source(left)} CROSS JOIN {self.source(right)}"
            case Join(left, right, condition, kind):
                one, other, on = self.source(left), self.source(right), self.term(condition)
                match kind:
                    case "inner":
                        return f"SELECT * FROM {one} JOIN {other} ON {on}"
                    case "left":
                        # DuckDB's own left join by inequalities pads rows that have partners, and loses some that have
                        # none.
                        inner, alone = (replace(node, kind=one) for one in ("inner", "anti"))
                        padding = "".join(f", NULL AS {name(a)}" for a in right.schema)
                        return f"{self.query(inner)} UNION ALL SELECT *{padding} FROM {self.source(alone)}"
                    case "semi" | "anti":
                        negation = "NOT " if kind == "anti" else ""
                        return f"SELECT * FROM {one} WHERE {negation}EXISTS (SELECT 1 FROM {other} WHERE {on})"
                    case _:
                        assert_never(kind)
            case Union(inputs):
                columns = self.columns(inputs[0].schema.names)
                return " UNION ALL ".join(f"SELECT {columns} FROM {self.source(i)}" for i in inputs)
            case Difference(left, right):
                one, other = next(self.aliases), next(self.aliases)
                equal = " AND ".join(f"{one}.{name(a)} IS NOT DISTINCT FROM {other}.{name(a)}" for a in left.schema)
                sides = f"({self.query(left)}) AS {one}", f"({self.query(right)}) AS {other}"
                return f"SELECT * FROM {sides[0]} WHERE NOT EXISTS (SELECT 1 FROM {sides[1]} WHERE {equal})"
            case OrderedNode():
                raise AssertionError("random programs have no such operator")
            case _:
                assert_never(node)

    def source(self, node: Node) -> str:
        return f"({self.query(node)}) AS {next(self.aliases)}"

    def columns(self, names: tuple[str, ...]) -> str:
        return ", ".join(map(name, names))

    def aggregate(self, made: Aggregate, schema: Schema) -> str:
        value = "*" if made.argument is None else self.term(made.argument)
        type_ = None if made.argument is None else term_type(made.argument, schema)
        match made.function:
            case Function.COUNT:
                return f"count({value})"
            case Function.COUNT_DISTINCT:
                return f"count(DISTINCT {value})"
            case Function.MIN | Function.MAX:
                return f"{made.function.value}({value})"
            case Function.SUM | Function.TRY_SUM:
                held = "DOUBLE" if type_ is not None and type_.kind is Kind.DOUBLE else "BIGINT"
                return f"CAST(sum({value}) AS {held})"
            case Function.AVG:
                scale = 0 if type_ is None else type_.scale
                return f"(CAST(sum({value}) AS DOUBLE) / {10**scale} / count({value}))"
            case Function.FIRST | Function.LAST:
                assert made.by is not None
                by, way = self.term(made.by), "ASC" if made.function is Function.FIRST else "DESC"
                kept = f"{value} IS NOT NULL AND {by} IS NOT NULL"
                return f"first({value} ORDER BY {by} {way}, {value} ASC) FILTER (WHERE {kept})"
            case _:
                raise AssertionError(f"{made.function} is not drawn")

    def term(self, term: Term) -> str:
        match term:
            case Attr(attribute):
                return name(attribute)
            case Lit(value, type_):
                return literal(value, type_)
            case Param():
                raise AssertionError("static programs have no parameters")
            case Call(op, args):
                return f"({self.call(op, [self.term(arg) for arg in args])})"
            case _:
                assert_never(term)

    def call(self, op: str, args: list[str]) -> str:
        match op, args:
            case _, [one, other] if op in _INFIX or op in _ARITHMETIC:
                return f"{one} {_INFIX.get(op) or _ARITHMETIC[op]} {other}"
            case "and" | "or", _:
                return f" {op.upper()} ".join(args)
            case "not", [one]:
                return f"NOT {one}"
            case "is_null" | "is_not_null", [one]:
                return f"{one} {op.replace('_', ' ').upper()}"
            case "if", [condition, one, other]:
                return f"CASE WHEN {condition} THEN {one} ELSE {other} END"
            case "coalesce", _:
                return f"coalesce({', '.join(args)})"
            case "least" | "greatest", _:  # DuckDB's skip NULLs
                missing = " OR ".join(f"{arg} IS NULL" for arg in args)
                return f"CASE WHEN {missing} THEN NULL ELSE {op}({', '.join(args)}) END"
            case "floor", [one, unit]:
                return f"{one} - (({one} % {unit}) + {unit}) % {unit}"
            case "ceil", [one, unit]:
                return f"{one} + (({unit} - {one} % {unit}) % {unit})"
            case _:
                raise AssertionError(f"no SQL for {op}")


def answer(case: Case, connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """What the SQL engine says."""
    for stream in dict.fromkeys(occurrences(case.node)):
        frame = pl.DataFrame(case.relations[stream.name], schema=polars_schema(stream.schema), orient="row")
        table = frame.rename({a: name(a)[1:-1].replace('""', '"') for a in frame.columns}).to_arrow()
        connection.register("arrived", table)
        connection.execute(f"CREATE OR REPLACE TABLE {name(stream.name)} AS SELECT * FROM arrived")
        connection.unregister("arrived")
    return connection.execute(Sql().query(case.node)).fetchall()


def check(case: Case) -> None:
    with duckdb.connect(config={"threads": 1}) as connection:
        wanted = answer(case, connection)
    meaning = reference(case.node, case.relations)
    assert bags_equal(meaning, wanted), f"semantics {meaning} is not SQL's {wanted}"
    leaves = {
        i: pl.DataFrame(case.relations[s.name], schema=polars_schema(s.schema), orient="row")
        for i, s in enumerate(occurrences(case.node))
    }
    found = evaluate(case.node, leaves).rows()
    assert bags_equal(found, wanted), f"{found} is not SQL's {wanted}"


UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@given(cases(PROFILE))
@settings(max_examples=60, deadline=None, suppress_health_check=UNHURRIED)
def test_static_programs_answer_as_sql_does(case: Case) -> None:
    check(case)


@pytest.mark.long
@given(cases(PROFILE))
@settings(max_examples=3000, deadline=None, suppress_health_check=UNHURRIED)
def test_many_static_programs_answer_as_sql_does(case: Case) -> None:
    check(case)
