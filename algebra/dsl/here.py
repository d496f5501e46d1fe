"""Where in the user's code a handle is being built."""

from __future__ import annotations

import sys
from types import TracebackType

from tidegate.algebra.errors import QueryError, Site, call_site


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
