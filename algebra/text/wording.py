"""What errors advise in terms of Python, in the words of the text language.

The library's own messages are known, so they are rewritten here rather than known to all that raises them; a test holds
that each rule still meets a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from tidegate.algebra.errors import Problem, QueryError

_SIGNS: Final = {"&": "AND", "|": "OR", "~": "NOT"}
#: What stands in messages and hints, and how it is written in a query's text; the first ones are parts of none that
#: follow.
SAID: Final = (
    (r'\bname an attribute that orders them: tie=.*\)', "name an attribute that orders them: ORDER BY time, attribute"),
    (r'use it under a second name: .*', "define it twice, under two names: DEFINE A AS ..., B AS ..."),
    (r"a window, within=[^,]*, or bound the wait: .*", "a window: WITHIN"),
    (r"leave out close_at|state close_at together with the end, once", "leave out --close-open"),
    (r'\.cast\("bigint"\)\.cast\("(\w+)"\)', r"cast_\1(cast_bigint(...))"),
    (r'(\b\w+)\.cast\("(\w+)"\)', r"cast_\2(\1)"),
    (r'\.cast\("(\w+)"\)', r"cast_\1(...)"),
    (r'\bcast\("(\w+)"\)', r"cast_\1"),
    (r"\bt\.add_months\((\w+)\)", r"add_months(t, \1)"),
    (r"\btg\.hours\((\d+)\)", r"\1h"),
    (r"\btg\.minutes\((\d+)\)", r"\1min"),
    (r"\btg\.seconds\((\d+)\)", r"\1s"),
    (r"(\b\w+)\.is_(not_)?null\(\)", lambda match: f"{match[1]} IS {'NOT ' if match[2] else ''}NULL"),
    (r"\bis_null\(\) or is_not_null\(\)", "IS NULL or IS NOT NULL"),
    (r"^comparing with None|^None(?= is no value)", lambda match: match[0].replace("None", "NULL")),
    (r'"(PT1H30M|\d[^"]*)"', r"'\1'"),
    (r'\bs == "true"', "s = 'true'"),
    (r"& \| ~ take conditions", "AND, OR and NOT take conditions"),
    (r"^([&|~]) joins conditions", lambda match: f"{_SIGNS[match[1]]} joins conditions"),
    (r"\) ([&|]) \(", lambda match: f") {_SIGNS[match[1]]} ("),
    (r"use a double: float\(\.\.\.\)", "write a decimal point, which makes it a double"),
    (r",? or a (datetime\.)?(datetime|timedelta)\b", ""),
    (r"\bof `/`: try_truediv", "of `/`: try_div"),
    (r"\brelation\.(?=\w+\.\w)", ""),
    (r", or read it with tg\.result\(\.\.\.\) or tg\.result_of\(\.\.\.\)", ""),
    (r"say so: tg\.context_model\(\.\.\., causes=\{'?(\w+)'?: \"bag\"\}\)", r"say so in MODEL: CONTEXT \1 HELD BY BAG"),
    (
        r"switch\('?(\w+)'?, when=\.\.\.\) or terminate\(\"\.\.\.\", when=\.\.\.\)",
        r"SWITCH CONTEXT \1 PATTERN ..., or TERMINATE CONTEXT ... PATTERN ...",
    ),
    (r"(model = model\.)?initiate\(\"([\w.]+)\", when=\.\.\.\)", r"INITIATE CONTEXT \2 PATTERN ..."),
    (r"leave it out of causes", "leave HELD BY out"),
    (r"keep an instant: select\(\.\.\., (.*)\)", r"keep an instant: \1"),
)  # fmt: skip


@contextmanager
def in_words_of_text() -> Iterator[None]:
    """Errors inside advise what can be written in a query's text."""
    try:
        yield
    except QueryError as error:
        raise type(error).of(in_words(error.problems)) from error.__cause__


def in_words(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, with advice that can be written in a query's text."""
    return [replace(problem, message=_reworded(problem.message), hint=_reworded(problem.hint)) for problem in problems]


def _reworded(text: str) -> str:
    for written, said in SAID:
        text = re.sub(written, said, text)
    return text
