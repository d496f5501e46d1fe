"""What may be meant by an operation that does not take its arguments: the error with its hint."""

from __future__ import annotations

import re

from tidegate.algebra.errors import QueryError
from tidegate.algebra.terms import Call, Lit, Term
from tidegate.algebra.time import duration_ticks
from tidegate.algebra.typed import Typed
from tidegate.algebra.types import Kind


def mismatch(call: Call, args: tuple[Typed, ...], takes: str, hint: str = "") -> QueryError:
    """The error for arguments that an operation does not take."""
    from tidegate.algebra.pretty import term_text

    got = ", ".join(str(arg.type) for arg in args) or "nothing"
    return QueryError(
        "TG102",
        f"{_written(call.op)} takes {takes}, not {got}: {term_text(call)}",
        hint=hint or _suggestion(call.op, args),
    )


def _written(op: str) -> str:
    """The operation as users write it: casts by the type that they name."""
    found = re.fullmatch(r"((?:try_)?cast)_(?:decimal_(\d+)_(\d+)|(\w+))", op)
    if found is None:
        return op
    return f'{found[1]}("{found[4] or f"decimal({found[2]},{found[3]})"}")'


def _suggestion(op: str, args: tuple[Typed, ...]) -> str:
    kinds = {arg.type.kind for arg in args} - {Kind.NULL}
    if op == "add" and kinds == {Kind.STRING}:
        return "texts are put together with tg.concat(a, b)"
    if kinds and kinds <= {Kind.TIMESTAMP, Kind.DATE, Kind.DURATION}:
        found = _time_suggestion(op, kinds)
        if found is not None:
            return found
    if Kind.TIMESTAMP in kinds and Kind.BIGINT in kinds:
        return 'give the number a unit: tg.seconds(5), or compare ticks: .cast("bigint") of the timestamp'
    if Kind.TIMESTAMP in kinds and Kind.DATE in kinds:
        return "to_date of the timestamp or to_timestamp of the date makes both the same"
    if Kind.DATE in kinds and Kind.DURATION in kinds:
        return 'dates move by whole days: d + "1 day", or d + n for a number of them; else take to_timestamp of the date first'
    if kinds == {Kind.STRING, Kind.BIGINT} and any(_is_duration(arg.source) for arg in args):
        return "write a number here: integer time has no unit, and dates differ by a number of days"
    if Kind.STRING in kinds and len(kinds) > 1:
        return _text_suggestion(sorted(kind.value for kind in kinds - {Kind.STRING, Kind.NULL}))
    if Kind.DURATION in kinds and kinds & {Kind.BIGINT, Kind.DOUBLE}:
        return 'give the number a unit: tg.seconds(5); or .cast("bigint") of the duration, in microseconds'
    if Kind.BOOLEAN in kinds and len(kinds) > 1:
        return "compare with something first; & | ~ take conditions"
    return "cast one side to the type of the other" if len(kinds) > 1 else f"{op} is not defined for such values"


def _is_duration(term: Term) -> bool:
    """Whether a constant is text that people write for a duration."""
    try:
        return isinstance(term, Lit) and isinstance(term.value, str) and duration_ticks(term.value) is not None
    except QueryError:
        return False


def _time_suggestion(op: str, kinds: set[Kind]) -> str | None:
    """What may be meant by an operation on instants and durations."""
    match op:
        case _ if kinds == {Kind.DATE, Kind.TIMESTAMP} or kinds == {Kind.DATE, Kind.DURATION}:
            return None
        case "add" | "try_add" if kinds != {Kind.DURATION}:
            return "instants have no sum: add a duration, t + tg.hours(1), or subtract them, which gives a duration"
        case "sub" | "try_sub":
            return "a duration is subtracted from an instant: t - tg.hours(1)"
        case "neg":
            return "an instant has no negative: subtract it from another, which gives a duration"
        case "mul" | "try_mul" | "div" | "try_div" | "idiv" | "try_idiv" | "mod" | "try_mod":
            return "durations are multiplied and divided by whole numbers: tg.hours(1) * 3; instants are not"
        case "lt" | "le" | "gt" | "ge" | "eq" | "ne" | "eq_null_safe" | "least" | "greatest" if Kind.DURATION in kinds:
            return "compare two instants, t <= u + tg.minutes(5), or a distance with a duration, t - u <= tg.minutes(5)"
        case _:
            return f"{op} is not defined for instants and durations"


def _text_suggestion(others: list[str]) -> str:
    match others[:1]:
        case ["boolean"]:
            return 'compare the string with text, such as s == "true"'
        case ["decimal"]:
            return 'cast the string first: .cast("bigint"), or .cast("double") of both'
        case ["duration"]:
            return 'cast the string first: .cast("bigint").cast("duration"), from microseconds'
        case [other]:
            return f'cast the string first: .cast("{other}")'
        case _:
            return "cast one side"
