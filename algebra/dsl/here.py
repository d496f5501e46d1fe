"""Where in the user's code a handle is being built."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType

from tidegate.algebra.errors import QueryError, Site, call_site


class UnknownAttributeError(QueryError, AttributeError):
    """What is unknown, asked for as `handle.name`; `hasattr` and `getattr` with a default understand it."""


class Here:
    """`with Here() as site:` is the user's line that called into the library; errors raised inside carry it."""

    __slots__ = ("site",)

    def __enter__(self) -> Site | None:
        self.site = call_site(sys._getframe(1))
        return self.site

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, QueryError) and any(problem.site is None for problem in error.problems):
            raise error.at(self.site).with_traceback(trace) from error.__cause__


def tests_membership() -> bool:
    """Whether the user's code is at an `in` or `not in`, which its text alone would not tell."""
    import dis

    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".", 1)[0] == "tidegate":
        frame = frame.f_back
    return frame is not None and dis.opname[frame.f_code.co_code[frame.f_lasti]] == "CONTAINS_OP"
