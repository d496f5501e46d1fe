"""What terms and aggregates mean: their evaluation over one row, or one group, in plain Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from tidegate.algebra.errors import InternalError, Problem, QueryError, Site
from tidegate.algebra.functions.aggregates import TABLE, Function, Members, SumOverflow
from tidegate.algebra.functions.aggregates import order_values as order_values
from tidegate.algebra.printing.terms import term_text, value_text
from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import Attr, Call, Lit, Param, Term, Value, attributes_of
from tidegate.algebra.typed.kernels import (
    ATTRIBUTE,
    LITERAL,
    OVERFLOW,
    PARAMETER,
    KernelFailure,
    overflow,
)
from tidegate.algebra.typed.kernels import Evaluator as Evaluator
from tidegate.algebra.typed.kernels import key_of as key_of
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.typed.terms import TypedTerm, type_range
from tidegate.algebra.types import BIGINT, BOOLEAN, DOUBLE, NULL, STRING, DataType, Kind

#: Values of one row by the names of attributes (and of parameters, each as `$name`).
Values = Mapping[str, Value]


class EvaluationError(QueryError):
    """A term has no value for a row: TG301 overflow, TG302 division by zero, TG303 failed cast; with the operands.

    Engines carry errors as text, perhaps with their own lines around it: such a text alone makes the error again.
    """

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        hint: str = "",
        because: tuple[str, ...] = (),
        site: Site | None = None,
        problems: tuple[Problem, ...] = (),
    ) -> None:
        if message is None and not problems:
            code, message, because, hint = _read_problem(code)
        super().__init__(code, message or "", hint=hint, because=because, site=site, problems=problems)


def comparable(value: Value) -> object:
    """A value of a result as tests compare it: a double to twelve digits."""
    return key_of(float(f"{value:.12g}")) if isinstance(value, float) else key_of(value)


_PROBLEM = re.compile(r"(?P<code>TG30\d) (?P<message>[^\n]*)(?P<rest>(?:\n  [^\n]*)*)")
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "TG301": "try_add, try_sub and try_mul yield NULL instead",
        "TG302": "the try_ form of the operation yields NULL instead (of `/`: try_truediv)",
        "TG303": (
            "try_cast, try_parse_timestamp and try_to_uuid yield NULL instead; leave other rows out with where(...)"
        ),
    }
)


def _read_problem(text: str) -> tuple[str, str, tuple[str, ...], str]:
    """Code, message, witness and hint of the first problem in a text."""
    problem = _PROBLEM.search(text)
    if problem is None:
        raise InternalError("TG901", f"no evaluation error: {text}")
    lines = [line for line in problem["rest"].split("\n") if line]
    hint = next((line.removeprefix("  hint").strip() for line in lines if line.startswith("  hint")), "")
    witness = (line.removeprefix("  because").strip() for line in lines if not line.startswith("  hint"))
    return (
        problem["code"],
        problem["message"],
        tuple(line for line in witness if line),
        hint or _HINTS.get(problem["code"], ""),
    )


def is_evaluation_error(text: str) -> bool:
    """Whether an engine's message carries an `EvaluationError`, which its text then makes again."""
    return _PROBLEM.search(text) is not None


def evaluate_term(term: Term, values: Values, attributes: Mapping[str, Attribute] | None = None) -> Value:
    """The term's value over one row; `EvaluationError` where it has none.

    Without `attributes` types are those of the values, and instants and durations are the plain integers that hold
    them: enough for temporal conditions, not for decimals of different scale or parts of a date.
    """
    if attributes is None:
        attributes = {name: Attribute(name, _plain_type(value)) for name, value in values.items()}
        term = _with_plain_literals(term)
    return _evaluator(term, tuple(attributes.items()))(values)


@lru_cache(maxsize=1024)
def _evaluator(term: Term, attributes: tuple[tuple[str, Attribute], ...]) -> Evaluator:
    """Kept, as one term is evaluated over many rows: its types take ten times as long as a value."""
    return evaluator(resolve(term, dict(attributes)))


def is_null_of_nulls(term: Term, attributes: Mapping[str, Attribute]) -> bool:
    """Whether a term reads attributes, and is NULL where all of these are, as they are of a row that a join pads."""
    read = attributes_of(term)
    try:
        value = evaluate_term(term, dict.fromkeys(read), {name: attributes[name].as_nullable() for name in read})
    except EvaluationError:
        return False
    return bool(read) and value is None


def _plain_type(value: Value) -> DataType:
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return BIGINT
        case float():
            return DOUBLE
        case str():
            return STRING


@lru_cache(maxsize=1024)
def _with_plain_literals(term: Term) -> Term:
    match term:
        case Lit(value, type_) if type_.is_integer_held:
            return Lit(value, BIGINT)
        case Call(op, args):
            return Call(op, tuple(_with_plain_literals(arg) for arg in args))
        case _:
            return term


def evaluator(term: TypedTerm) -> Evaluator:
    """The typed term as a function of a row.

    and, or, if and coalesce evaluate from the left, and nothing that can no longer matter: neither its value nor its
    failure. All else evaluates every operand first and is NULL where one of them is.
    """
    source = term.source
    if term.kernel is LITERAL:
        assert isinstance(source, Lit)
        constant = source.value
        return lambda row: constant
    if term.kernel is ATTRIBUTE:
        assert isinstance(source, Attr)
        name = source.name
        return lambda row: row[name]
    if term.kernel is PARAMETER:
        assert isinstance(source, Param)
        parameter = f"${source.name}"
        return lambda row: row[parameter]
    args = [evaluator(arg) for arg in term.args]
    kernel = term.kernel
    if kernel.lazy is not None:
        return kernel.lazy(args)
    function = kernel.python
    assert function is not None, kernel.name
    if kernel.takes_null:
        return lambda row: function(*(arg(row) for arg in args), *term.constants)
    return lambda row: _strict(term, function, [arg(row) for arg in args])


def _strict(term: TypedTerm, function: Callable[..., Value], operands: list[Value]) -> Value:
    if any(operand is None for operand in operands):
        return None
    try:
        result = function(*operands, *term.constants)
        limits = type_range(term.type)
        if limits is not None and isinstance(result, int) and not limits[0] <= result <= limits[1]:
            raise overflow()
    except KernelFailure as failure:
        if term.lenient:
            return None
        raise evaluation_error(failure.code, str(failure), term, operands) from None
    return result


def evaluation_error(code: str, reason: str, term: TypedTerm, operands: Sequence[Value]) -> EvaluationError:
    """The error of a typed term over these operands."""
    shown = [
        f"{term_text(arg.source)} = {value_text(value, arg.type)}"
        for arg, value in zip(term.args, operands, strict=True)
        if not isinstance(arg.source, Lit)
    ]
    return EvaluationError(code, f"{term_text(term.source)}: {reason}", because=tuple(shown), hint=_HINTS.get(code, ""))


# --- aggregates ------------------------------------------------------------------------------------------------------


def aggregate(
    function: Function,
    arguments: Sequence[Value],
    by: Sequence[Value],
    type_: DataType,
    name: str,
    parameter: float | str | None = None,
) -> Value:
    """An aggregate over the arguments of a group's rows (`by`: their orders, where it has one; else ignored).

    `arguments` of a count of rows are anything but NULL. `type_` is the argument's type.
    """
    entry = TABLE[function]
    pairs: list[tuple[Value, Value]]
    if entry.ordered:
        pairs = [(a, b) for a, b in zip(arguments, by, strict=True) if a is not None and b is not None]
    elif entry.counts_by:
        pairs = [(a, b) for a, b in zip(arguments, by, strict=True) if a is not None]
    else:
        pairs = [(a, None) for a in arguments if a is not None]
    try:
        return entry.value(Members([a for a, _ in pairs], [b for _, b in pairs], type_, parameter))
    except SumOverflow as failure:
        raise sum_out_of_range(name, type_, failure.total) from None


def sum_out_of_range(name: str, type_: DataType, total: int | None = None) -> EvaluationError:
    """TG301 of an aggregate: a sum, as it is held, that its type has no room for; None where it is not known."""
    hint = "try_sum yields NULL instead; sum fewer rows per group"
    if type_.kind is not Kind.DURATION:
        hint += ", or cast to double first: such a sum is rounded"
    because = () if total is None else (f"total = {value_text(total, type_)}",)
    return EvaluationError(OVERFLOW, f"{name}: the sum is out of range", because=because, hint=hint)
