"""Errors of Tidegate: what is wrong, where in the user's code, why, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType

#: The module whose callers are no code of a user: a shell, and the script that an installation made.
COMMAND_LINE = "tidegate.runtime.cli"


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the user's code, as errors show it; in the text of a query with its column, counted from 1."""

    file: str
    line: int
    code: str = ""
    column: int | None = None

    def __str__(self) -> str:
        name = self.file.replace("\\", "/").rsplit("/", 1)[-1]
        if self.column is None:
            return f"{name}:{self.line}" + (f"   {self.code}" if self.code else "")
        place = f"{name}:{self.line}:{self.column}   "
        # Two more: problems show a site indented by two.
        return f"{place}{self.code}\n{' ' * (2 + len(place) + self.column - 1)}^"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a query or its input: code, message, place, witness lines, hint."""

    code: str
    message: str
    site: Site | None = None
    because: tuple[str, ...] = ()
    hint: str = ""
    query: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.code} {self.message}"]
        if self.query is not None:
            lines.append(f"  in query      {self.query}")
        if self.site is not None:
            lines.append(f"  {self.site}")
        lines += [("  because       " if i == 0 else "                ") + text for i, text in enumerate(self.because)]
        if self.hint:
            lines.append(f"  hint          {self.hint}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        site: dict[str, object] | None = None
        if self.site is not None:
            site = {"file": self.site.file, "line": self.site.line, "code": self.site.code}
            site |= {} if self.site.column is None else {"column": self.site.column}
        return {
            "code": self.code,
            "message": self.message,
            "query": self.query,
            "site": site,
            "because": list(self.because),
            "hint": self.hint,
        }


class TidegateError(Exception):
    """Base of all errors: one or more problems, each with a stable code."""

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
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @property
    def code(self) -> str:
        return self.problems[0].code

    @property
    def message(self) -> str:
        return self.problems[0].message

    @property
    def hint(self) -> str:
        return self.problems[0].hint

    @property
    def site(self) -> Site | None:
        return self.problems[0].site


class QueryError(TidegateError):
    """The query, the data or the call is wrong, and its user can mend it."""

    @classmethod
    def of(cls, problems: list[Problem] | tuple[Problem, ...]) -> QueryError:
        first = problems[0]
        return cls(first.code, first.message, problems=tuple(problems))

    def at(self, site: Site | None) -> QueryError:
        """The same error with `site` filled in wherever it was missing."""
        filled = tuple(
            p if p.site else Problem(p.code, p.message, site, p.because, p.hint, p.query) for p in self.problems
        )
        return type(self).of(filled)


class InternalError(TidegateError):
    """An invariant of Tidegate itself does not hold: a bug of ours, never of the user."""


def call_site(frame: FrameType | None) -> Site | None:
    """The first frame outside the library, as a `Site`, from a frame inside it; the command line has none."""
    import linecache

    while frame is not None:
        spec = frame.f_globals.get("__spec__")  # it knows the name of what `python -m` runs
        module = frame.f_globals.get("__name__", "") if spec is None else spec.name
        if module == COMMAND_LINE:
            return None
        if not (module == "tidegate" or module.startswith("tidegate.")):
            file, line = frame.f_code.co_filename, frame.f_lineno
            return Site(file, line, linecache.getline(file, line).strip())
        frame = frame.f_back
    return None
