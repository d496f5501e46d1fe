"""Tracebacks of errors that users can mend: their own frames alone, since nothing inside the library is theirs to mend.

An error loses the frames of the library where it leaves a public call, so whoever prints it, a logger or a thread,
prints the short one. So does an error of a function that the user gave to the library, a clock for instance.
`TIDEGATE_TRACEBACK=full` in the environment keeps all frames, as errors of ours (`InternalError`) always do, and those
of packages that the library calls.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from tidegate.algebra.diagnostics.frames import is_ours, keeps_all, of_user
from tidegate.algebra.errors import InternalError, TidegateError

_P = ParamSpec("_P")
_T = TypeVar("_T")
_C = TypeVar("_C", bound=type)
#: Methods that only Python calls while it makes and copies objects.
_NO_CALLS = frozenset(
    {"__new__", "__setattr__", "__delattr__", "__getattribute__", "__getstate__", "__setstate__", "__reduce__"}
)


def shows_all(error: BaseException | None) -> bool:
    """Whether all that is known of an error is shown: of one of ours, and where the user asks for that."""
    return isinstance(error, InternalError) or keeps_all()


def of_users_function(trace: TracebackType | None) -> bool:
    """Whether what the library called last, before an error came, is a function of the user and not of an installed
    package.
    """
    called: TracebackType | None = None
    while trace is not None:
        if is_ours(trace.tb_frame):
            called = trace.tb_next
        trace = trace.tb_next
    if called is None:
        return False
    import sysconfig  # takes milliseconds

    installed = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return not called.tb_frame.f_code.co_filename.startswith(("<frozen", *installed))


def trim(error: BaseException | None) -> None:
    """Takes the frames of the library from an error that its user can mend, and from its causes."""
    while error is not None and not isinstance(error, InternalError):
        error.__traceback__ = of_user(error.__traceback__)
        error = error.__cause__


def trimmed(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """The function; what users can mend leaves it without frames of the library. A bare `raise` adds none for this
    one.
    """

    @functools.wraps(function)
    def call(*arguments: _P.args, **named: _P.kwargs) -> _T:
        try:
            return function(*arguments, **named)
        except TidegateError as error:
            trim(error)
            raise
        except Exception as error:
            if of_users_function(error.__traceback__):
                trim(error)
            raise

    call.trims = True  # type: ignore[attr-defined]  # by which tests know it
    return call


def trimmed_calls(cls: _C) -> _C:
    """The class, with all that users call `trimmed`: public methods, properties, operators."""
    for name, value in list(vars(cls).items()):
        called = not name.startswith("_") or (name.startswith("__") and name not in _NO_CALLS)
        if called and inspect.isfunction(value) and not hasattr(value, "trims"):
            setattr(cls, name, trimmed(value))
        elif called and isinstance(value, property) and value.fget is not None:
            setattr(cls, name, value.getter(trimmed(value.fget)))
    return cls
