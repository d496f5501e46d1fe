"""Mutants in a process that runs already: a function's code is replaced, wherever the function has been imported to."""

from __future__ import annotations

import ast
import functools
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from tools.mutation.operators import Mutant, functions, mutated


def module_of(file: str) -> str:
    return "tidegate." + file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def reached(file: str, function: str) -> FunctionType | None:
    """The function as the process has it; None where there is none of this name, or a compiled one."""
    found: Any = sys.modules.get(module_of(file))
    for name in function.split("."):
        if found is None:
            return None
        found = vars(found).get(name)
    for _ in range(8):
        if isinstance(found, FunctionType):
            if not hasattr(found, "__wrapped__"):
                return found
            found = found.__wrapped__
        elif isinstance(found, property):
            found = found.fget
        elif isinstance(found, staticmethod | classmethod):
            found = found.__func__
        elif isinstance(found, functools.cached_property):
            found = found.func
        else:
            found = getattr(found, "__wrapped__", None)
    return None


def put(root: Path, mutant: Mutant) -> None:
    """Puts a mutant into this process. `ValueError` where it does not fit."""
    target = reached(mutant.file, mutant.function)
    if target is None:
        raise ValueError(f"{mutant.function} can not be reached")
    path = root / mutant.file
    whole = compile(mutated(path.read_text(encoding="utf-8"), mutant), str(path), "exec")
    old = target.__code__
    (code,) = [c for c in _codes(whole) if (c.co_name, c.co_firstlineno) == (old.co_name, old.co_firstlineno)]
    target.__code__ = code
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper):
            one.cache_clear()


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def first_lines(file: str, text: str) -> dict[int, str]:
    """By the line with which its code begins, to which function each function belongs; inner ones to the outer."""
    found = {}
    for name, function in functions(ast.parse(text)):
        for node in ast.walk(function):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[min([node.lineno, *(one.lineno for one in node.decorator_list)])] = f"{file}::{name}"
    return found
