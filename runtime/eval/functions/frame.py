"""Terms as expressions of an engine: the walk over a typed term, which is the same whatever the expressions are.

A term compiles to a value and, where it can fail at all, an error: the number of the first failure, else NULL. What
cannot fail by its static ranges stays a plain expression. Errors follow the short circuits of and, or, if and coalesce.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, Generic, TypeVar

from tidegate.algebra.errors import InternalError
from tidegate.algebra.functions.logic import AND, COALESCE, IF, OR
from tidegate.algebra.terms import Attr, Lit, Param, Value, balanced
from tidegate.algebra.typed.kernels import ATTRIBUTE, LITERAL, OVERFLOW, PARAMETER, Kernel
from tidegate.algebra.typed.operations import KERNELS
from tidegate.algebra.typed.terms import TypedTerm, can_overflow, failure_code, mentions
from tidegate.algebra.types import DataType

E = TypeVar("E")

#: Kernels of the walk itself: they do not evaluate every operand.
LAZY: tuple[Kernel, ...] = (AND, OR, IF, COALESCE)
#: Operands whose mentions would make a larger expression are bound to names.
_LARGEST = 300


@dataclass(frozen=True, slots=True)
class CompiledTerm(Generic[E]):
    """A term's value and its failure code (1 overflow, 2 division by zero, 3 failed cast; NULL: none).

    `error` is None where no row can fail. Where a row fails its value means nothing.
    """

    value: E
    error: E | None
    size: int = 1  # nodes of the value, roughly


@dataclass(frozen=True, slots=True)
class Form(Generic[E]):
    """How an engine expresses a kernel.

    `value`: over the operands, then the constants, where the kernel does not fail; NULL where an operand is. With
    `typed` it takes the typed term first. `fails`: where no operand is NULL, whether the kernel fails, besides
    overflow; with `null_fails` where the value is NULL then. `beyond`: over term, operands and value, whether an
    integer is out of the limits of its type; None where the engine can tell by the value. `once`: it mentions each
    operand once, whatever the kernel does elsewhere.
    """

    value: Callable[..., E]
    fails: Callable[..., E] | None = None
    typed: bool = False
    null_fails: bool = False
    once: bool = False
    beyond: Callable[[TypedTerm, Sequence[E], E], E] | None = None

    def over(self, term: TypedTerm, args: Sequence[E]) -> E:
        return self.value(term, *args, *term.constants) if self.typed else self.value(*args, *term.constants)


def checked_forms(engine: str, *families: Mapping[str, Form[E]]) -> Mapping[str, Form[E]]:
    """The forms of all families in one table; `InternalError` TG902 unless each kernel of the algebra is there once."""
    forms: dict[str, Form[E]] = {}
    for family in families:
        twice = sorted(forms.keys() & family.keys())
        if twice:
            raise InternalError("TG902", f"{engine} has two forms of {', '.join(twice)}")
        forms |= family
    wanted = KERNELS.keys() - {kernel.name for kernel in LAZY}
    if wanted != forms.keys():
        lacking, unknown = sorted(wanted - forms.keys()), sorted(forms.keys() - wanted)
        raise InternalError(
            "TG902", f"{engine} has no form of {', '.join(lacking) or 'none'}, and of no kernel: {', '.join(unknown)}"
        )
    failing = {name for name, form in forms.items() if form.fails is not None or form.null_fails}
    declared = {kernel.name for kernel in KERNELS.values() if kernel.failure is not None}
    if failing != declared:
        raise InternalError("TG902", f"{engine} and the algebra differ in what fails: {sorted(failing ^ declared)}")
    return forms


def leaf_name(leaf: TypedTerm) -> str:
    """The name of an attribute, or `$name` of a parameter."""
    source = leaf.source
    assert isinstance(source, Attr | Param)
    return source.name if isinstance(source, Attr) else f"${source.name}"


def is_leaf(term: TypedTerm) -> bool:
    """Whether the term is an attribute or a parameter."""
    return term.kernel is ATTRIBUTE or term.kernel is PARAMETER


class Expressions(ABC, Generic[E]):
    """The expressions of an engine, as the walk builds them. They support `&`, `|` and `~`."""

    forms: Mapping[str, Form[E]]

    @abstractmethod
    def literal(self, value: Value, type_: DataType) -> E: ...

    @abstractmethod
    def column(self, name: str) -> E:
        """The attribute of this name, or the parameter `$name`."""

    @abstractmethod
    def when(self, condition: E, then: E, otherwise: E | None = None) -> E: ...

    @abstractmethod
    def first(self, values: Sequence[E]) -> E:
        """The first expression that is not NULL."""

    @abstractmethod
    def present(self, value: E) -> E:
        """Whether the expression is not NULL."""

    @abstractmethod
    def is_not(self, value: E, constant: bool) -> E:
        """Whether it is NULL or the other truth value; never NULL."""

    @abstractmethod
    def code(self, number: int | None) -> E:
        """The failure code, or that there is none."""

    @abstractmethod
    def bound(self, term: TypedTerm, args: Sequence[CompiledTerm[E]]) -> CompiledTerm[E]:
        """The kernel over operands that are each computed once, however often the kernel mentions them."""

    @abstractmethod
    def beyond(self, value: E, low: int, high: int) -> E:
        """Whether an integer that a kernel computed exceeds these limits."""

    def folded(self, term: TypedTerm) -> CompiledTerm[E] | None:
        """The term that replaces another one before compilation."""
        return None

    def compile(self, term: TypedTerm) -> CompiledTerm[E]:
        """The term's value and failure."""
        if term.kernel is LITERAL:
            assert isinstance(term.source, Lit)
            return CompiledTerm(self.literal(term.source.value, term.type), None)
        if is_leaf(term):
            return CompiledTerm(self.column(leaf_name(term)), None)
        folded = self.folded(term)
        if folded is not None:
            return folded
        args = [self.compile(arg) for arg in term.args]
        if term.kernel is AND:
            return balanced(self._in_turn(and_, lambda known: self.is_not(known, False)), args)
        if term.kernel is OR:
            return balanced(self._in_turn(or_, lambda known: self.is_not(known, True)), args)
        if term.kernel is COALESCE:
            return balanced(
                self._in_turn(lambda a, b: self.first([a, b]), lambda known: _not(self.present(known))), args
            )
        values, errors = [arg.value for arg in args], [arg.error for arg in args]
        size = 1 + sum(arg.size for arg in args)
        if term.kernel is IF:
            chosen = self.when(values[0], values[1], values[2])
            branch = None
            if errors[1] is not None or errors[2] is not None:
                branch = self.when(values[0], self.or_none(errors[1]), self.or_none(errors[2]))
            return CompiledTerm(chosen, self.first_error([errors[0], branch]), size)
        form = self.forms[term.kernel.name]
        mentioned = 1 if form.once else mentions(term)
        if mentioned > 1 and mentioned * size > _LARGEST:
            return self.bound(term, args)
        value, error = self.applied(term, values)
        return CompiledTerm(value, self.first_error([*errors, error]), size * mentioned)

    def applied(self, term: TypedTerm, values: Sequence[E]) -> tuple[E, E | None]:
        """The kernel over its operands' values: its value, and its own failure if it can fail."""
        value = self.forms[term.kernel.name].over(term, values)
        failed = self._failures(term, values, value)
        if not failed:
            return value, None
        present: list[Any] = [self.present(v) for v, arg in zip(values, term.args, strict=True) if arg.nullable]
        failed = [(reduce(and_, [*present, condition]), code) for condition, code in failed]
        if term.lenient:
            conditions: list[Any] = [condition for condition, _ in failed]
            return self.when(reduce(or_, conditions), self.literal(None, term.type), value), None
        return value, self.first_error([self.when(c, self.code(int(code[-1]))) for c, code in failed])

    def _failures(self, term: TypedTerm, args: Sequence[E], value: E) -> list[tuple[E, str]]:
        """The conditions under which the kernel itself fails, each with its code, in the order in which Python checks
        them.
        """
        failures: list[tuple[E, str]] = []
        code = failure_code(term.kernel, term.args)
        if code is not None:
            form = self.forms[term.kernel.name]
            fails = _not(self.present(value)) if form.fails is None else form.fails(*args, *term.constants)
            failures.append((fails, code))
        if can_overflow(term):
            test = self.forms[term.kernel.name].beyond
            beyond = self.beyond(value, *term.limits) if test is None else test(term, args, value)
            failures.append((beyond, OVERFLOW))
        return failures

    def or_none(self, error: E | None) -> E:
        return self.code(None) if error is None else error

    def first_error(self, errors: Sequence[E | None]) -> E | None:
        known = [error for error in errors if error is not None]
        return self.first(known) if known else None

    def _in_turn(
        self, combine: Callable[[Any, Any], Any], goes_on: Callable[[E], E]
    ) -> Callable[[CompiledTerm[E], CompiledTerm[E]], CompiledTerm[E]]:
        """Combines two operands. The second is evaluated only where `goes_on` holds for the first."""

        def joined(a: CompiledTerm[E], b: CompiledTerm[E]) -> CompiledTerm[E]:
            later = None if b.error is None else self.when(goes_on(a.value), b.error)
            return CompiledTerm(combine(a.value, b.value), self.first_error([a.error, later]), 1 + a.size + b.size)

        return joined


def _not(condition: Any) -> Any:
    return ~condition
