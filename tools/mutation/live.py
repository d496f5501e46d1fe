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

from tools.mutation.operators import Function, Mutant, functions, mutated


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
    _replace(target, compile(mutated(path.read_text(encoding="utf-8"), mutant), str(path), "exec"))
    for cache in caches():
        cache.cache_clear()


def put_text(root: Path, file: str, text: str) -> None:
    """Puts another text of a file into this process. `ValueError` where more than bodies of functions differs, or a
    function can not be reached: then the file has to be imported anew.
    """
    path = root / file
    before, after = ast.parse(path.read_text(encoding="utf-8")), ast.parse(text)
    changed = []
    for (name, old), (same, new) in zip([*functions(before)], [*functions(after)], strict=True):
        if name == same and [ast.dump(one) for one in old.body] != [ast.dump(one) for one in new.body]:
            changed.append(name)
        old.body, new.body = [], []
    if ast.dump(before) != ast.dump(after):
        raise ValueError(f"{file} differs outside the bodies of functions")
    codes = [*_codes(compile(text, str(path), "exec"))]
    for name in changed:
        target = reached(file, name)
        if target is None:
            raise ValueError(f"{name} can not be reached")
        (target.__code__,) = [code for code in codes if code.co_qualname == name]
    for cache in caches():
        cache.cache_clear()


def watch(root: Path, file: str, called: set[str]) -> None:
    """Has each function of a file say in `called` that it was called; inner ones say so of the outer."""
    path = root / file
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = []
    for name, function in functions(tree):
        names.append(name)
        for node in ast.walk(function):
            if isinstance(node, Function):
                note = ast.parse(f"__called__.add({f'{file}::{name}'!r})").body[0]
                for part in ast.walk(note):
                    ast.copy_location(part, node.body[0])
                node.body.insert(0, note)
    whole = compile(tree, str(path), "exec")
    for name in names:
        target = reached(file, name)
        if target is not None:
            target.__globals__["__called__"] = called
            _replace(target, whole)


def caches() -> list[Any]:
    """What `lru_cache` and `cache` have made so far."""
    return [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]


def _replace(target: FunctionType, whole: CodeType) -> None:
    old = target.__code__
    (code,) = [c for c in _codes(whole) if (c.co_name, c.co_firstlineno) == (old.co_name, old.co_firstlineno)]
    target.__code__ = code


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
