"""How an aggregate of some rows is written where texts have no FILTER."""

from __future__ import annotations

import re

from tidegate.algebra.functions.aggregates import Function

#: A first or a last row is one whatever its values are, so these have no such form.
_AGGREGATES = frozenset(function.value for function in Function) - {"first", "last"}
_NAME = re.compile(r"(\w+)\s*$")
_DISTINCT = re.compile(r"DISTINCT\s+", re.IGNORECASE)


def filtered(before: str) -> str:
    """How the aggregate is written behind which FILTER stands; empty where there is none."""
    call = before.rstrip()
    begin = _open(call)
    name = None if begin is None else _NAME.search(call[:begin])
    if begin is None or name is None or name[1].lower() not in _AGGREGATES:
        return ""
    argument = " ".join(call[begin + 1 : -1].split())
    distinct = _DISTINCT.match(argument)
    words, argument = (argument[: distinct.end()], argument[distinct.end() :]) if distinct else ("", argument)
    # COUNT(*) counts rows, whatever they have.
    value = "1" if not argument or argument.endswith("*") else argument
    return f"write {name[1]}({words}if(condition, {value}, NULL))"


def _open(call: str) -> int | None:
    """The place of the bracket that the last one closes."""
    depth = 0
    for at in range(len(call) - 1, -1, -1):
        depth += (call[at] == ")") - (call[at] == "(")
        if not depth:
            return at if call[at] == "(" else None
    return None
