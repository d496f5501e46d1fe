"""Derived functions as sympy expressions, simplified, and their text; sympy is loaded when the first is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import DataType
from tidegate.analysis.zones.wording import amount, first_of, shifted

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

    finite = {frozenset((name, int(d)) for name, d in alternative if d != INF): None for alternative in alternatives}
    greatest = [
        sympy.Max(*(sympy.Symbol(name, real=True) - d for name, d in sorted(alternative))) if alternative else -sympy.oo
        for alternative in finite
    ]
    return sympy.Min(*greatest, evaluate=len(greatest) <= MAX_SIMPLIFIED) if greatest else sympy.oo


def function_text(alternatives: Alternatives, type_: DataType, most: int | None = None) -> str:
    """The function with shifts printed as durations, names in the order in which they come: `min(A.t, B.t - 1m)`. Of a
    plain one with more than `most` arguments the first ones are printed, and how many more there are.

    Most are a least or a greatest alone, and are simplified without sympy, which takes 0.4 s to load.
    """
    names = [name for alternative in alternatives for name, _ in alternative]
    plain = _plain_text(alternatives, names, type_, most)
    return plain if plain is not None else _simplified_text(least_of_greatest(alternatives), names, type_)


def _plain_text(alternatives: Alternatives, names: Iterable[str], type_: DataType, most: int | None) -> str | None:
    finite = [{name: int(d) for name, d in alternative if d != INF} for alternative in alternatives]
    if not finite:
        return "∞"
    if not all(finite):
        return "-∞"
    shifts: dict[str, int] = {}
    if all(len(alternative) == 1 for alternative in finite):
        called = "min"
        for alternative in finite:
            for name, d in alternative.items():
                shifts[name] = max(d, shifts.get(name, d))
    elif all(alternative == finite[0] for alternative in finite):
        called, shifts = "max", finite[0]
    else:
        return None
    named = [name for name in dict.fromkeys(names) if name in shifts]
    parts = first_of(named, most, lambda name: shifted(name, -shifts[name], type_))
    return parts[0] if len(parts) == 1 else f"{called}({', '.join(parts)})"


def _simplified_text(expression: sympy.Expr, names: Iterable[str], type_: DataType) -> str:
    order = {name: number for number, name in enumerate(dict.fromkeys(names))}

    def place(part: sympy.Expr) -> tuple[int, ...]:
        return tuple(sorted(order[symbol.name] for symbol in part.free_symbols))

    return _text(expression, lambda parts: sorted(parts, key=lambda part: (place(part), str(part))), type_)


def sum_text(ticks: int, names: Sequence[str], type_: DataType) -> str:
    """A sum of ticks and names: `1d + skew(S) + lag`."""
    return " + ".join([*([amount(ticks, type_)] if ticks else []), *names])


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
