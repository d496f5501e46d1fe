"""Names, terms and durations as queries' texts have them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from tidegate.algebra.errors import QueryError
from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.terms import Attr, Call, Lit, Param, Term
from tidegate.algebra.text.conditions import WRITTEN
from tidegate.algebra.text.parsing import Language, is_duration, keywords
from tidegate.algebra.time import in_units
from tidegate.algebra.types import DataType, Kind

#: How tightly operations bind; what binds less tightly than its place asks for gets parentheses.
_BINDING = {
    "or": 1, "and": 2, "not": 3,
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe", "is_null", "is_not_null"), 4),
    "add": 5, "sub": 5, "mul": 6, "div": 6, "mod": 6, "idiv": 6, "neg": 7,
}  # fmt: skip
_ATOM = 8


def cannot(what: str, hint: str = "write it in Python") -> QueryError:
    """The error for what no text says."""
    return QueryError("TG175", f"the text language has no {what}", hint=hint)


def written_ticks(amount: int, instants: DataType) -> str:
    """A duration in ticks of instants of a type."""
    return " ".join(in_units(amount)) if instants.kind is Kind.TIMESTAMP else str(amount)


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes what a language of queries reads. `attribute` is the text of an attribute, where that is not its name."""

    language: Language
    attribute: Callable[[str], str] | None = None

    def name(self, name: str) -> str:
        """A name, in quotes where it would be read as something else."""
        plain = name.isidentifier() and name.upper() not in keywords(self.language)
        return name if plain and not is_duration(self.language, name) else '"' + name.replace('"', '""') + '"'

    def term(self, term: Term) -> str:
        """A condition or another value."""
        return self._term(term)[0]

    def _term(self, term: Term) -> tuple[str, int]:
        """The text of a term, and how tightly it binds."""
        match term:
            case Attr(name):
                return self.name(name) if self.attribute is None else self.attribute(name), _ATOM
            case Lit():
                text = _constant(term)
                return text, 7 if text.startswith("-") else _ATOM
            case Param(name):
                raise cannot(f"parameter {name}")
            case Call("not", (inner,)):
                return f"NOT {self._inside(inner, 3)}", 3
            case Call("neg", (inner,)):
                # Two signs in a row begin a comment.
                return f"-{self._inside(inner, _ATOM)}", 7
            case Call(("is_null" | "is_not_null") as op, (inner,)):
                return f"{self._inside(inner, 5)} {WRITTEN[op]}", 4
            case Call(("and" | "or") as op, args) if len(args) > 1:
                return f" {WRITTEN[op]} ".join(self._inside(arg, _BINDING[op] + 1) for arg in args), _BINDING[op]
            case Call(op, (left, right)) if op in _BINDING:
                binding = _BINDING[op]
                first = binding + 1 if binding == 4 else binding
                return f"{self._inside(left, first)} {WRITTEN[op]} {self._inside(right, binding + 1)}", binding
            case Call(op, args) if op not in _BINDING:
                return f"{op}({', '.join(map(self.term, args))})", _ATOM
            case Call(op, args):
                raise cannot(f"{op} of {len(args)}")
            case _:
                assert_never(term)

    def _inside(self, term: Term, least: int) -> str:
        text, binding = self._term(term)
        return text if binding >= least else f"({text})"


def _constant(constant: Lit) -> str:
    text = value_text(constant.value, constant.type)
    if constant.value is None:
        return text
    match constant.type.kind:
        case Kind.BOOLEAN:
            return text.upper()
        case Kind.TIMESTAMP | Kind.DATE | Kind.DURATION | Kind.DECIMAL:
            if text.endswith(" ticks"):
                raise cannot(f"instant {text}")
            return f"{constant.type.kind.value.upper()} '{text}'"
        case Kind.DOUBLE if isinstance(constant.value, float) and not math.isfinite(constant.value):
            raise cannot(f"constant {text}")
        case _:
            return text
