"""All mutants of a file: what one of the operators makes of one place in the body of a function.

Not mutated, as what they say is judged by golden files or not at all: the order of arguments that commute, messages
(strings, what a `raise` says), assertions and the `strict` of a `zip`, which is one, failpoints, which do nothing but
in tests, annotations, decorators, defaults, and what stands outside functions (constants: `tests/thresholds.py` has
those that matter).
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = tuple[ast.AST, str, int | None]

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_NAMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "head": "tail",
    "tail": "head",
    "logical_and": "logical_or",
    "logical_or": "logical_and",
}
#: Calls whose first two arguments may change places without any difference.
_COMMUTING = {
    *("min", "max", "minimum", "maximum", "logical_and", "logical_or", "union", "gcd", "add"),
    *("array_equal", "intersect1d", "least", "greatest"),
}
_SIDES = {"left": "right", "right": "left"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change in one function; `number` counts those of a file, `nth` equal ones of a function."""

    file: str
    function: str
    line: int
    operator: str
    old: str
    new: str
    number: int
    nth: int

    @property
    def key(self) -> str:
        """What names the mutant as long as its function has this text."""
        again = f" (number {self.nth + 1})" if self.nth else ""
        return f"{self.file}::{self.function}: {self.old} => {self.new}{again}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}, {self.operator}\n  - {self.old}\n  + {self.new}"


def mutants_of(file: str, text: str) -> list[Mutant]:
    """All mutants of a file in the order of its text."""
    found, seen = [], Counter[tuple[str, str, str]]()
    for number, (function, line, operator, old, new, _) in enumerate(_changes(ast.parse(text))):
        same = (function, old, new)
        found.append(Mutant(file, function, line, operator, old, new, number, seen[same]))
        seen[same] += 1
    return found


def mutated(text: str, mutant: Mutant) -> ast.Module:
    """The tree of a file with a mutant of it."""
    tree = ast.parse(text)
    for number, (*_, apply) in enumerate(_changes(tree)):
        if number == mutant.number:
            (parent, field, index), node = apply
            if index is None:
                setattr(parent, field, node)
            else:
                getattr(parent, field)[index] = node
            return ast.fix_missing_locations(tree)
    raise ValueError(f"{mutant.file} has no mutant {mutant.number}")


Change = tuple[str, int, str, str, str, tuple[Place, ast.AST]]


def _changes(tree: ast.Module) -> Iterator[Change]:
    for path, function in functions(tree):
        for place, node in _places(function):
            for operator, made in _variants(place, node):
                ast.copy_location(made, node)
                yield path, getattr(node, "lineno", 0), operator, _text(node), _text(made), (place, made)


def _text(node: ast.AST) -> str:
    lines = ast.unparse(node).splitlines()
    return lines[0] if len(lines) == 1 else f"{lines[0]} ..."


def functions(tree: ast.AST, path: str = "") -> Iterator[tuple[str, Function]]:
    """Functions of a module and methods of its classes, by their qualified names; inner functions are part of
    theirs.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield f"{path}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{path}{node.name}.")
        elif isinstance(node, ast.If | ast.Try):
            yield from functions(node, path)


def _places(function: Function) -> Iterator[tuple[Place, ast.AST]]:
    """All nodes of a function's body that may change, with where they hang; a docstring is none."""
    for index, statement in enumerate(function.body):
        if not (index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            yield from _below((function, "body", index), statement)


def _below(place: Place, node: ast.AST) -> Iterator[tuple[Place, ast.AST]]:
    if isinstance(node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    yield place, node
    if isinstance(node, ast.Raise):
        return
    if isinstance(node, Function):
        yield from _places(node)
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "type_comment", "returns", "decorator_list", "ctx", "format_spec"):
            continue
        if isinstance(node, ast.Call) and field == "keywords" and getattr(node.func, "id", "") == "zip":
            continue
        if isinstance(value, list):
            for index, one in enumerate(value):
                if isinstance(one, ast.AST):
                    yield from _below((node, field, index), one)
        elif isinstance(value, ast.AST):
            yield from _below((node, field, None), value)


def _variants(place: Place, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    parent, field, _ = place
    match node:
        case ast.Compare(ops=ops):
            for index, op in enumerate(ops):
                made = copy.deepcopy(node)
                made.ops[index] = _COMPARED[type(op)]()
                yield "comparison", made
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED and not _is_text(left, right):
            yield "arithmetic", ast.BinOp(copy.deepcopy(left), _COMPUTED[type(op)](), copy.deepcopy(right))
        case ast.AugAssign(target=target, op=op, value=value):
            if type(op) in _COMPUTED and not _is_text(value):
                yield "arithmetic", ast.AugAssign(copy.deepcopy(target), _COMPUTED[type(op)](), copy.deepcopy(value))
            yield "removed statement", ast.Pass()
        case ast.BoolOp(op=op, values=values):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), copy.deepcopy(values))
        case ast.UnaryOp(operand=operand) if not isinstance(operand, ast.Constant):
            yield "removed sign or negation", copy.deepcopy(operand)
        case ast.Constant(value=bool(value)) if field != "pattern":
            yield "truth value", ast.Constant(not value)
        case ast.Constant(value=int(number)) if not isinstance(parent, ast.MatchValue):
            yield "constant", ast.Constant(number + 1)
            yield "constant", ast.Constant(number - 1)
        case ast.Constant(value=str(side)) if side in _SIDES and _is_search(parent):
            yield "side of a search", ast.Constant(_SIDES[side])
        case ast.If(test=test) | ast.While(test=test):
            made_if = copy.copy(node)
            made_if.test = ast.UnaryOp(ast.Not(), copy.deepcopy(test))
            yield "negated condition", made_if
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "negated condition", ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.comprehension(target=target, iter=iterated, ifs=ifs, is_async=is_async) if ifs:
            yield "removed condition", ast.comprehension(target, iterated, [], is_async)
            some = [ast.UnaryOp(ast.Not(), ifs[0]), *ifs[1:]]
            yield "negated condition", ast.comprehension(target, iterated, some, is_async)
        case ast.match_case(pattern=pattern, guard=ast.expr() as guard, body=done):
            yield "negated condition", ast.match_case(pattern, ast.UnaryOp(ast.Not(), guard), done)
        case ast.Call(func=called, args=args, keywords=keywords):
            if (name := _renamed(called)) is not None:
                yield "min/max, any/all", ast.Call(name, copy.deepcopy(args), copy.deepcopy(keywords))
            plain = not any(isinstance(arg, ast.Starred) for arg in args)
            commutes = getattr(called, "attr", getattr(called, "id", "")) in _COMMUTING
            if len(args) >= 2 and plain and not commutes and ast.dump(args[0]) != ast.dump(args[1]):
                yield "swapped arguments", ast.Call(called, [args[1], args[0], *args[2:]], keywords)
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=step), ctx=ctx):
            if lower is not None:
                later = ast.Slice(_plus(lower, 1), upper, step)
                yield "slice", ast.Subscript(value, later, ctx)
            if upper is not None:
                sooner = ast.Slice(lower, _plus(upper, -1), step)
                yield "slice", ast.Subscript(value, sooner, ctx)
        case ast.Return(value=ast.expr() as returned) if not isinstance(returned, ast.Constant):
            yield "returned value", ast.Return(ast.Constant(None))
        case ast.Break() | ast.Continue():
            yield "removed statement", ast.Pass()
            yield "break/continue", ast.Continue() if isinstance(node, ast.Break) else ast.Break()
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Attribute(attr="failpoints"), attr="hit"))):
            pass
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            yield "removed statement", ast.Pass()
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield "removed statement", ast.Pass()
        case _:
            pass


def _is_text(*operands: ast.expr) -> bool:
    return any(
        isinstance(one, ast.JoinedStr) or (isinstance(one, ast.Constant) and isinstance(one.value, str))
        for one in operands
    )


def _is_search(parent: ast.AST) -> bool:
    called = parent.func if isinstance(parent, ast.Call) else None
    return getattr(called, "attr", getattr(called, "id", "")) in ("searchsorted", "search_sorted") or (
        isinstance(parent, ast.keyword) and parent.arg == "side"
    )


def _renamed(called: ast.expr) -> ast.expr | None:
    match called:
        case ast.Name(id=name) if name in _NAMES:
            return ast.Name(_NAMES[name], ast.Load())
        case ast.Attribute(value=value, attr=name) if name in _NAMES:
            return ast.Attribute(copy.deepcopy(value), _NAMES[name], ast.Load())
        case _:
            return None


def _plus(bound: ast.expr, more: int) -> ast.expr:
    op: ast.operator = ast.Add() if more > 0 else ast.Sub()
    return ast.BinOp(copy.deepcopy(bound), op, ast.Constant(1))
