"""Errors of Tidegate: what is wrong, where in the user's code, why, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType

from tidegate.algebra.diagnostics.frames import cell_name, is_between, is_ours, module_of, rendered

#: The module whose callers are no code of a user: a shell, and the script that an installation made.
COMMAND_LINE = "tidegate.runtime.cli.commands"


#: Characters of a line of the user's code that an error shows, and of a line that it writes; lines of a witness;
#: problems.
_CODE, _LINE, _LINES, _PROBLEMS = 200, 2000, 100, 20


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the user's code, as errors show it; in the text of a query with its column, counted from 1.

    Examples:
        >>> print(tg.Site("/home/ada/shop.py", 7, "orders.custumer"))
        shop.py:7   orders.custumer
    """

    file: str
    line: int
    code: str = ""
    column: int | None = None

    def __str__(self) -> str:
        name = self.file.replace("\\", "/").rsplit("/", 1)[-1]
        code, column = self.excerpt()
        if self.column is None or column is None:
            return f"{name}:{self.line}" + (f"   {code}" if code else "")
        place = f"{name}:{self.line}:{self.column}   "
        # Two more: problems show a site indented by two.
        return f"{place}{code}\n{' ' * (2 + len(place) + column - 1)}^"

    def excerpt(self) -> tuple[str, int | None]:
        """The line, or of a long one what is around the column, and where the column is in that.

        Examples:
            >>> tg.Site("fast.tps", 3, "DEFINE A AS sped > 80", column=13).excerpt()
            ('DEFINE A AS sped > 80', 13)
        """
        if len(self.code) <= _CODE:
            return self.code, self.column
        start = max(0, (self.column or 1) - 1 - _CODE // 2)
        before, after = "…" if start else "", "…" if start + _CODE < len(self.code) else ""
        column = None if self.column is None else self.column - start + len(before)
        return f"{before}{self.code[start : start + _CODE]}{after}", column


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a query or its input: code, message, place, witness lines, hint.

    Examples:
        >>> endless = o.anti_join(p, p.order_id == o.order_id, o.ordered <= p.paid)
        >>> problem = tg.program(Unpaid=endless).check()[0]
        >>> print(problem.code, problem.query, problem.hint)
        TG201 Unpaid bound it: p.paid <= o.ordered + "1h"
    """

    code: str
    message: str
    site: Site | None = None
    because: tuple[str, ...] = ()
    hint: str = ""
    query: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.code} {cut(self.message)}"]
        if self.query is not None:
            lines.append(f"  in query      {cut(self.query)}")
        if self.site is not None:
            lines.append(f"  {self.site}")
        because = [cut(text) for text in self.because[:_LINES]]
        if len(self.because) > _LINES:
            because.append(f"… and {len(self.because) - _LINES} more")
        lines += [("  because       " if i == 0 else "                ") + text for i, text in enumerate(because)]
        if self.hint:
            lines.append(f"  hint          {cut(self.hint)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """The problem as plain values, for JSON.

        Examples:
            >>> tg.Problem("TG101", "unknown attribute 'custumer'", hint="did you mean customer?").to_dict()["hint"]
            'did you mean customer?'
        """
        site: dict[str, object] | None = None
        if self.site is not None:
            site = {"file": self.site.file, "line": self.site.line, "code": self.site.excerpt()[0]}
            site |= {} if self.site.column is None else {"column": self.site.column}
        return {
            "code": self.code,
            "message": cut(self.message),
            "query": self.query,
            "site": site,
            "because": list(map(cut, self.because[:_LINES])),
            "hint": cut(self.hint),
        }


def cut(text: str) -> str:
    """A line of a message; of a very long one both ends: what it is about, and what is wrong with it."""
    half = _LINE // 2
    return text if len(text) <= _LINE else f"{text[:half]} … {text[-half:]}"


class TidegateError(Exception):
    """Base of all errors: one or more problems, each with a stable code.

    `problems` has all of them; `code`, `message`, `hint` and `site` are those of the first.

    Examples:
        >>> try:
        ...     orders.custumer
        ... except tg.TidegateError as error:
        ...     print(error)
        TG101 unknown attribute 'custumer'
          ...   orders.custumer
          hint          did you mean customer?
    """

    problems: tuple[Problem, ...]

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        because: tuple[str, ...] = (),
        site: Site | None = None,
        problems: tuple[Problem, ...] = (),
    ) -> None:
        self.problems = problems or (Problem(code, message, site, because, hint),)
        shown = [str(problem) for problem in self.problems[:_PROBLEMS]]
        if (more := len(self.problems) - _PROBLEMS) > 0:
            shown.append(f"… and {more} more, which `problems` of the error has")
        super().__init__("\n".join(shown))

    @property
    def code(self) -> str:
        """The code of the first problem, such as "TG101"; the page of errors lists all.

        Examples:
            >>> try:
            ...     orders.custumer
            ... except tg.TidegateError as error:
            ...     print(error.code)
            TG101
        """
        return self.problems[0].code

    @property
    def message(self) -> str:
        """What the first problem is.

        Examples:
            >>> try:
            ...     orders.custumer
            ... except tg.TidegateError as error:
            ...     print(error.message)
            unknown attribute 'custumer'
        """
        return self.problems[0].message

    @property
    def hint(self) -> str:
        """What to do about the first problem; empty where nothing is known.

        Examples:
            >>> try:
            ...     orders.custumer
            ... except tg.TidegateError as error:
            ...     print(error.hint)
            did you mean customer?
        """
        return self.problems[0].hint

    @property
    def site(self) -> Site | None:
        """Where in the user's code the first problem is, if it has a place there.

        Examples:
            >>> try:
            ...     orders.custumer
            ... except tg.TidegateError as error:
            ...     print(error.site.code)
            orders.custumer
        """
        return self.problems[0].site


class QueryError(TidegateError):
    """The query, the data or the call is wrong, and its user can mend it.

    Examples:
        >>> orders.where(orders.amount)
        Traceback (most recent call last):
        ...
        tidegate.algebra.errors.QueryError: TG102 ...
    """

    @classmethod
    def of(cls, problems: list[Problem] | tuple[Problem, ...]) -> QueryError:
        """One error with several problems.

        Examples:
            >>> missing = [tg.Problem("TG402", f"no result is called {name!r}") for name in ("Late", "Lost")]
            >>> print(tg.QueryError.of(missing))
            TG402 no result is called 'Late'
            TG402 no result is called 'Lost'
        """
        first = problems[0]
        return cls(first.code, first.message, problems=tuple(problems))

    def at(self, site: Site | None) -> QueryError:
        """The same error with `site` filled in wherever it was missing.

        Examples:
            >>> error = tg.QueryError("TG402", "no result is called 'Late'")
            >>> print(error.at(tg.Site("shop.py", 7, 'results["Late"]')))
            TG402 no result is called 'Late'
              shop.py:7   results["Late"]
        """
        filled = tuple(
            p if p.site else Problem(p.code, p.message, site, p.because, p.hint, p.query) for p in self.problems
        )
        return type(self).of(filled)

    def _render_traceback_(self) -> list[str]:
        """What IPython and notebooks show."""
        return rendered(self)


class InternalError(TidegateError):
    """An invariant of Tidegate itself does not hold: a bug of ours, never of the user.

    Examples:
        >>> issubclass(tg.InternalError, tg.TidegateError), issubclass(tg.InternalError, tg.QueryError)
        (True, False)
    """


def call_site(frame: FrameType | None) -> Site | None:
    """The line of the user's frame, as a `Site`."""
    import linecache

    frame = user_frame(frame)
    if frame is None:
        return None
    file, line = frame.f_code.co_filename, frame.f_lineno
    return Site(cell_name(file) or file, line, linecache.getline(file, line).strip())


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The first frame outside the library, from a frame inside it; none for the command line, calls from the JVM and
    threads of the library.
    """
    while frame is not None:
        module = module_of(frame)
        if module in (COMMAND_LINE, "threading") or module.startswith(("pyspark.", "py4j.")):
            return None
        if not is_ours(frame) and not is_between(frame):
            return frame
        frame = frame.f_back
    return None
