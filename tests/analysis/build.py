"""Small streams and terms for tests of the analysis: integer time, so that a tick is 1."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.algebra.nodes import Node, Rename, Scan
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import TRUE, Attr, Call, Lit, Term, call
from tidegate.algebra.types import BIGINT, DURATION, DataType
from tidegate.analysis.facts import ProgramFacts, QueryFacts
from tidegate.analysis.pipeline import analyse

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def stream(
    name: str,
    instants: Sequence[str] = ("t",),
    values: Sequence[str] = ("k",),
    *,
    progress: Sequence[str] | None = None,
    relations: Term = TRUE,
    type_: DataType = BIGINT,
) -> StreamDef:
    """A stream with these temporal attributes and integer values; it progresses on its first instant."""
    return StreamDef(
        name, _schema(instants, values, type_), relations, tuple(instants[:1] if progress is None else progress)
    )


def table(
    name: str, instants: Sequence[str] = (), values: Sequence[str] = ("k",), type_: DataType = BIGINT
) -> StreamDef:
    """A static table with these temporal attributes and integer values."""
    return StreamDef(name, _schema(instants, values, type_), static=True)


def _schema(instants: Sequence[str], values: Sequence[str], type_: DataType) -> Schema:
    return Schema(
        (
            *(Attribute(instant, type_, nullable=False, temporal=True) for instant in instants),
            *(Attribute(value, BIGINT) for value in values),
        )
    )


def scan(definition: StreamDef, alias: str) -> Node:
    """The stream with its attributes called `alias.name`."""
    return Rename(Scan(definition), tuple((name, f"{alias}.{name}") for name in definition.schema.names))


def ticks(value: int) -> Lit:
    return Lit(value, BIGINT)


def span(value: int) -> Lit:
    return Lit(value, DURATION)


def le(left: str | Term, right: str | Term) -> Call:
    return call("le", _term(left), _term(right))


def lt(left: str | Term, right: str | Term) -> Call:
    return call("lt", _term(left), _term(right))


def eq(left: str | Term, right: str | Term) -> Call:
    return call("eq", _term(left), _term(right))


def plus(left: str | Term, by: int, *, timestamps: bool = False) -> Call:
    return call("add", _term(left), span(by) if timestamps else ticks(by))


def _term(value: str | Term) -> Term:
    return Attr(value) if isinstance(value, str) else value


def query(node: Node, name: str = "Q", declared: StreamDef | None = None) -> Query:
    return Query(name, declared.name if declared else name, node, declared)


def facts(*queries: Query) -> ProgramFacts:
    return analyse(ProgramDef(queries))


def query_facts(node: Node, declared: StreamDef | None = None) -> QueryFacts:
    """The facts of a program of one query."""
    return facts(query(node, declared=declared)).queries[0]
