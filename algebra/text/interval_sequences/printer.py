"""Interval sequences as text: what `reader` reads."""

from __future__ import annotations

from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.match.node import DETECTED, Match, RowIntervals
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.terms import Attr, Call, Lit, Term, conjuncts
from tidegate.algebra.text.interval_sequences.language import INTERVAL_SEQUENCES
from tidegate.algebra.text.writer import Writer, cannot, written_ticks
from tidegate.algebra.types import BIGINT, TIMESTAMP, Kind

_NAMES: Final = Writer(INTERVAL_SEQUENCES)
_OPS: Final = {"lt": "<", "le": "<=", "eq": "=", "ge": ">=", "gt": ">"}


def interval_sequence_text(node: Match, selected: Term | None = None) -> str:
    """The text of a match of intervals of rows, of which those are selected for which a condition holds; `QueryError`
    TG175 for what the text can not say.
    """
    if node.emission != "final":
        raise cannot("matches of intervals before all of them have ended", 'write it in Python, or emission="final"')
    if node.within is None:
        raise cannot("interval sequences without a window", "give the match a window: within=")
    restrictions = "".join(f"\n    AND {_restriction(part)}" for part in conjuncts(node.pattern))[9:]
    first: dict[int, str] = {}
    names = []
    for symbol, of in zip(node.symbols, node.situations, strict=True):
        assert isinstance(of, RowIntervals)
        before = first.setdefault(id(of), symbol)
        names.append(_NAMES.name(symbol) if before == symbol else f"{_NAMES.name(before)} AS {_NAMES.name(symbol)}")
    window = written_ticks(node.within + 1, node.schema[DETECTED].type)
    condition = "" if selected is None else f"SELECT {_SELECTED.term(selected)}\n"
    return f"EVENT ISEQ [{restrictions}]\n({', '.join(names)}; {window})\n{condition}"


def _attribute(name: str) -> str:
    """An attribute of a match: of an interval by its name, or a key or the detection."""
    return ".".join(map(_NAMES.name, name.split(".", 1)))


_SELECTED: Final = Writer(INTERVAL_SEQUENCES, _attribute)


def _restriction(term: Term) -> str:
    """A restriction; alternatives are in brackets."""
    match term:
        case Call("or", args):
            return f"({' OR '.join(map(_restriction, args))})"
        case Call("and", args):
            return f"({' AND '.join(map(_restriction, args))})"
        case Call(op, (left, right)) if op in _OPS:
            return f"{_side(left)} {_OPS[op]} {_side(right)}"
        case _:
            raise _not_written(term)


def _side(term: Term) -> str:
    match term:
        case Attr(name):
            symbol, end = name.rsplit(".", 1)
            return f"{_NAMES.name(symbol)}.{end}"
        case Call("add" | "sub" as op, (Attr() as left, Attr() | Lit() as right)):
            plus = (op == "add") == (not isinstance(right, Lit) or _ticks(right) >= 0)
            return f"{_side(left)} {'+' if plus else '-'} {_amount(right) if isinstance(right, Lit) else _side(right)}"
        case Lit():
            return f"{'-' if _ticks(term) < 0 else ''}{_amount(term)}"
        case _:
            raise _not_written(term)


def _amount(constant: Lit) -> str:
    """A distance, without its sign."""
    return written_ticks(abs(_ticks(constant)), TIMESTAMP if constant.type.kind is Kind.DURATION else BIGINT)


def _ticks(constant: Lit) -> int:
    if not isinstance(constant.value, int):
        raise _not_written(constant)
    return constant.value


def _not_written(term: Term) -> QueryError:
    return cannot(f"restriction {term_text(term)}", "restrictions compare two ends, perhaps with a distance")
