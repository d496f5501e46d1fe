"""What is shown before anything runs: a query, what is derived of it, the same query with a bound left out, a
pattern.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass

import tidegate as tg
from examples.operations_room import queries
from examples.operations_room.queries import departure, schedule


@dataclass(frozen=True, slots=True)
class Stop:
    """A heading and a text of fixed width."""

    title: str
    text: str


def for_ever() -> tg.Relation:
    """As `not_departed`, without a bound on when a flight may still leave."""
    s, d = schedule.as_("s"), departure.as_("d")
    return s.anti_join(d, d.flight_id == s.flight_id, d.sched_dep == s.sched_dep)


def stops() -> list[Stop]:
    """In the order of the screen and the page."""
    derived = tg.program(NotDeparted=queries.not_departed()).explain().report
    return [
        Stop("A question: which flights had not left two hours after their time?", _code(queries.not_departed)),
        Stop("What Tidegate derives of it, before it has seen a row", str(derived)),
        Stop("Without 'two hours' there is no answer on a stream, and Tidegate says why", _refused()),
        Stop(
            "Situations and a pattern: waves of late departures that began in fog",
            f"{_text_of('fog')}\n\n{_text_of('wave')}\n\n{_code(queries.late_in_fog)}",
        ),
    ]


def _refused() -> str:
    try:
        tg.program(NeverDeparted=for_ever()).explain()
    except tg.QueryError as error:
        return f"{_code(for_ever)}\n\n{error}"
    raise AssertionError("a query without a bound was taken")


def _code(function: Callable[..., object]) -> str:
    """The body of a function as it stands in its file, without its docstring."""
    lines = inspect.getsource(function).splitlines()
    first = next(number for number, line in enumerate(lines) if line.endswith('"""')) + 1
    return inspect.cleandoc("\n".join(["", *lines[first:]]))


def _text_of(name: str) -> str:
    """The statement that gives a name of the queries its value, as it stands in the file."""
    source = inspect.getsource(queries)
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            return "\n".join(source.splitlines()[statement.lineno - 1 : statement.end_lineno])
    raise LookupError(name)
