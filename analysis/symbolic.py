"""Derived functions as sympy expressions, simplified, and their text; sympy is loaded when the first is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import DataType
from tidegate.analysis.wording import amount, shifted

if TYPE_CHECKING:
    import sympy

#: Alternatives `max over (name, d) of (name - d)` of one function.
Alternatives = Sequence[tuple[tuple[str, Extended], ...]]

#: Simplifying takes 0.3 s for 12 alternatives over 6 names, 2 s for 30: beyond, only repetitions are left out.
MAX_SIMPLIFIED = 12


def least_of_greatest(alternatives: Alternatives) -> sympy.Expr:
    """`min over alternatives of max over (name, d) of (name - d)` in ticks, over one real symbol per name.

    Flattened, without arguments that others dominate, common ones factored out. Of no alternatives it is ∞; a distance
    of +∞ leaves its name out.
    """
    import sympy

    finite = {frozenset((name, int(d)) for name, d in one if d != INF): None for one in alternatives}
    greatest = [
        sympy.Max(*(sympy.Symbol(name, real=True) - d for name, d in sorted(one))) if one else -sympy.oo
        for one in finite
    ]
    return sympy.Min(*greatest, evaluate=len(greatest) <= MAX_SIMPLIFIED) if greatest else sympy.oo


def function_text(expression: sympy.Expr, names: Iterable[str], type_: DataType) -> str:
    """The expression with shifts printed as durations, arguments in the order of `names`: `min(A.t, B.t - 1m)`."""
    order = {name: number for number, name in enumerate(dict.fromkeys(names))}

    def place(part: sympy.Expr) -> tuple[int, ...]:
        return tuple(sorted(order[symbol.name] for symbol in part.free_symbols))

    return _text(expression, lambda parts: sorted(parts, key=lambda part: (place(part), str(part))), type_)


def sum_text(expression: sympy.Expr, names: Sequence[str], type_: DataType) -> str:
    """A sum with its ticks first, then the symbols in the order of `names`: `1d + skew(S) + lag`."""
    by, rest = expression.as_coeff_Add()
    present = {symbol.name for symbol in rest.free_symbols}
    return " + ".join([*([amount(int(by), type_)] if by else []), *(name for name in names if name in present)])


def _text(part: sympy.Expr, ordered: Callable[[Iterable[sympy.Expr]], Iterable[sympy.Expr]], type_: DataType) -> str:
    import sympy

    match part:
        case sympy.Min() | sympy.Max():
            inside = ", ".join(_text(arg, ordered, type_) for arg in ordered(part.args))
            return f"{'min' if isinstance(part, sympy.Min) else 'max'}({inside})"
        case sympy.Symbol():
            return str(part.name)
        case sympy.Integer():
            return amount(int(part), type_)
        case sympy.Add():
            by, rest = part.as_coeff_Add()
            return shifted(_text(rest, ordered, type_), int(by), type_)
        case _:
            return "∞" if part == sympy.oo else "-∞"
