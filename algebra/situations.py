"""Schemas of situations and of matches of temporal patterns."""

from __future__ import annotations

from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.formulas import (
    And,
    Ceil,
    Floor,
    Formula,
    Greatest,
    Least,
    Not,
    Opaque,
    Or,
    Shift,
    TemporalTerm,
    Truth,
    Var,
    temporal_formula,
)
from tidegate.algebra.formulas import Compare as Comparison
from tidegate.algebra.nodes import Derive, Given, Match, aggregate_attribute, check_condition, require_attribute
from tidegate.algebra.pretty import term_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Attr, Lit, Term, call, conjunction
from tidegate.algebra.types import BIGINT, DURATION, DataType, Kind

START: Final = "ts"
END: Final = "te"
DETECTED: Final = "detected"


def situation_schema(node: Derive) -> Schema:
    """Keys, `ts`, `te` and aggregates; checks what the operator reads."""
    schema = node.input.schema
    for name in (*node.keys, node.time, *(() if node.tie is None else (node.tie,))):
        require_attribute(name, schema)
    if not schema[node.time].temporal:
        raise QueryError(
            "TG117", f"{node.time!r} orders no events: it holds no instants", hint="name a temporal attribute"
        )
    check_condition(node.condition, schema)
    if node.at_least < 1 or (node.at_most is not None and node.at_most < node.at_least):
        raise QueryError(
            "TG160", "no situation takes so long", hint="at_least is at least one tick and not longer than at_most"
        )
    made = tuple(aggregate_attribute(aggregate, schema) for aggregate in node.aggregates)
    return Schema((*(schema[key] for key in node.keys), *_ends(schema[node.time].type), *made))


def given_schema(node: Given) -> Schema:
    """The rows' own attributes; checks that `ts` and `te` are instants of one type."""
    schema = node.input.schema
    for name in (START, END, *node.keys):
        require_attribute(name, schema)
    for name in (START, END):
        if not schema[name].temporal:
            raise QueryError("TG117", f"{name!r} is no end of a period: it holds no instants", hint="name an instant")
    if schema[START].type != schema[END].type:
        raise QueryError("TG102", f"periods from {schema[START].type} to {schema[END].type}")
    return schema


def measures(situation: Derive | Given) -> tuple[str, ...]:
    """What is known of a situation beside its keys and ends: aggregates, or further attributes of its row."""
    if isinstance(situation, Derive):
        return tuple(aggregate.name for aggregate in situation.aggregates)
    return tuple(name for name in situation.schema if name not in (*situation.keys, START, END))


def _ends(type_: DataType, prefix: str = "", *, known: bool = True) -> tuple[Attribute, Attribute]:
    start = Attribute(prefix + START, type_, nullable=False, temporal=True)
    return start, Attribute(prefix + END, type_, nullable=not known, temporal=known)


def match_schema(node: Match) -> Schema:
    """Keys, then per symbol `ts`, `te` and aggregates under its name, then `detected`; checks the pattern."""
    first = node.situations[0].schema
    ends = endpoint_schema(node)
    check_condition(node.pattern, ends)
    require_exact(node.pattern, ends)
    attributes = [first[key] for key in node.keys]
    for symbol, situation in zip(node.symbols, node.situations, strict=True):
        schema = situation.schema
        if situation.keys != node.keys or [schema[k].type for k in node.keys] != [first[k].type for k in node.keys]:
            raise QueryError(
                "TG108",
                f"{symbol} is partitioned by other attributes",
                hint="partition all situations by the same keys",
            )
        if schema[START].type != first[START].type:
            raise QueryError("TG102", f"{symbol} holds {schema[START].type}, others hold {first[START].type}")
        known = node.emission == "final" or isinstance(situation, Given)
        attributes += _ends(schema[START].type, f"{symbol}.", known=known)
        attributes += [schema[name].renamed(f"{symbol}.{name}") for name in measures(situation)]
    return Schema((*attributes, Attribute(DETECTED, first[START].type, nullable=False, temporal=True)))


def endpoint_schema(node: Match) -> Schema:
    """The endpoints that a pattern may speak of: `symbol.ts` and `symbol.te` of every symbol."""
    ends = [
        _ends(situation.schema[START].type, f"{symbol}.")
        for symbol, situation in zip(node.symbols, node.situations, strict=True)
    ]
    return Schema(tuple(end for pair in ends for end in pair))


def require_exact(pattern: Term, ends: Schema) -> None:
    """`QueryError` TG153 for a pattern that says more than how endpoints lie to each other: its negation must be as exact."""
    found = _inexact(temporal_formula(pattern, ends))
    if found is not None:
        raise QueryError(
            "TG153",
            f"a pattern can not ask for {term_text(found)}",
            because=("patterns compare starts and ends, perhaps shifted by constant durations: t + c, min, max",),
            hint="conditions on data belong to the situations, or to where() on the matches, as do floor and ceil",
        )


def _inexact(formula: Formula) -> Term | None:
    match formula:
        case Opaque(source):
            return source
        case And(parts) | Or(parts):
            return next((found for part in parts if (found := _inexact(part)) is not None), None)
        case Not(part):
            return _inexact(part)
        case Comparison(left, _, right, source):
            return source if _rounds(left) or _rounds(right) else None
        case Truth():
            return None


def _rounds(term: TemporalTerm) -> bool:
    match term:
        case Var():
            return False
        case Shift(inner, _):
            return _rounds(inner)
        case Least(terms) | Greatest(terms):
            return any(map(_rounds, terms))
        case Floor() | Ceil():
            return True


def condition_of(node: Match) -> Term:
    """What must be certain of a match: the pattern, and the durations of its situations."""
    return conjunction(
        (node.pattern, *(part for pair in zip(node.symbols, node.situations, strict=True) for part in durations(*pair)))
    )


def durations(symbol: str, situation: Derive | Given) -> tuple[Term, ...]:
    """The duration limits of a situation as conditions on its endpoints, under the symbol's name where it has one."""
    if isinstance(situation, Given):
        return ()
    prefix = f"{symbol}." if symbol else ""
    start, end, ticks = Attr(prefix + START), Attr(prefix + END), _step(situation)
    limits: list[Term] = []
    if situation.at_least > 1:
        limits.append(call("ge", end, call("add", start, Lit(situation.at_least, ticks))))
    if situation.at_most is not None:
        limits.append(call("le", end, call("add", start, Lit(situation.at_most, ticks))))
    return tuple(limits)


def derivation_relations(node: Derive) -> tuple[Term, ...]:
    """What holds of the endpoints of every situation that is derived."""
    return (call("lt", Attr(START), Attr(END)), *durations("", node))


def _step(situation: Derive) -> DataType:
    """Type of what is added to an instant of a situation."""
    return DURATION if situation.schema[START].type.kind is Kind.TIMESTAMP else BIGINT
