"""Kernels that are compiled before a program needs them: what is behind `tidegate compile`."""

from __future__ import annotations

import importlib
import pkgutil
import time
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Compiled:
    """How many kernels there are, how many of them were compiled now and in how many seconds, and the directories that
    keep them: none where nothing can be written.
    """

    kernels: int
    compiled: int
    seconds: float
    kept_in: tuple[str, ...]

    def __str__(self) -> str:
        done = f"{self.kernels} kernels, {self.compiled} of them compiled now, in {self.seconds:.1f} s"
        if not self.kept_in:
            return f"{done}; they cannot be kept here: every process compiles them again"
        return "\n".join([done, *(f"kept in {directory}" for directory in self.kept_in)])

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compile_all() -> Compiled:
    """Compiles all kernels for the arguments that they take. What was compiled before is only loaded."""
    from tidegate.runtime import kernels

    began = time.perf_counter()
    names = [module.name for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")]
    modules = [importlib.import_module(name) for name in names]
    seconds = time.perf_counter() - began
    found = {
        id(value): value.stats
        for module in modules
        for value in vars(module).values()
        if getattr(value, "__module__", "") == module.__name__ and hasattr(value, "stats")
    }
    loaded = sum(1 for stats in found.values() if stats.cache_hits)
    kept_in = tuple(sorted({stats.cache_path for stats in found.values() if stats.cache_path}))
    return Compiled(len(found), len(found) - loaded, seconds, kept_in)
