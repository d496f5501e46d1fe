"""The table of what kernels search for names every reason for which they do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "analysis" / "ordered" / "sequences"
PAGE = ROOT / "docs" / "how-to" / "sequences.md"
#: The reasons as `explain` has them, each with the words of the table's last column.
REASONS = {
    "the search goes on at the {} {}": "`skip` to a variable",
    "rows of no match are reported": "rows of no match",
    "empty matches are reported beside rows of others": "empty matches beside all rows of others",
    "a limit asks for a least distance": "`limits` that say at least",
    "the condition of {} asks for a least distance, and there are greatest ones": "conditions that say it beside",
    "the condition of {} compares instants": "instants that conditions compare otherwise",
    "a measure reads a row behind others": "`next` in measures",
    "the condition of {} has a choice that a row behind others decides in part": "between a row behind and a row of",
    "{} is a group of rows that must not come": "groups of them",
    "!{} between two rows holds for a time of its own": "between two, with a time of their own",
    "the condition of {}, which must not come, reads a row behind others": "with `next` in their condition",
    "the condition of {}, which must not come {} rows, reads rows behind these": "rows of the match that come behind",
    "matches that begin with one row are limited, and there are rows that must not come": "with `per_start`",
    "{} may have no value": "what may have none",
    "the condition of {} computes {} of values of several rows": "functions of several rows",
    "the condition of {} reads the variable of a row": "`classifier`",
    "the condition of {} reads {}": "others, and those of what may have no value",
    "a measure is an aggregate of the rows so far": "others of the rows so far",
    "the condition of {} is known, in part, before its row is": "of `prev` alone",
    "the condition of {} reads several first rows, and not its own": "of first rows of several variables",
    "the condition of {} is too deep": "more",
    "conditions ask for more than {} things that are known before their rows": "more",
    "it has more than {} variables": "more",
    "it has more than {} limits": "more",
    "it has more than {} absences": "more",
    "its limits and conditions name too many variables": "more than 4,000 ways to the end of a match",
    "its rows can have too many beginnings in common": "more than 500 states",
    "too many rows must not come before the same row": "more than 3 kinds of rows that must not come",
}


def reasons() -> Iterator[str]:
    """What the sources give as a reason, with {} for what is filled in."""
    for path in sorted(SOURCES.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name("NotCompiled"), args=[text]):
                    yield from _written(text)
                case ast.FunctionDef(name="_reasons"):
                    for inner in ast.walk(node):
                        if isinstance(inner, ast.Yield) and inner.value is not None:
                            yield from _written(inner.value)


def _written(text: ast.expr) -> Iterator[str]:
    match text:
        case ast.Constant(str() as value):
            yield value
        case ast.JoinedStr(values):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in values)


def test_the_table_has_every_reason() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## What searches for the matches")[2]
    rows = [line.replace(r"\|", "or") for line in table.splitlines() if line.startswith("| ")]
    python = "\n".join(row.split("|")[3] for row in rows)
    assert set(reasons()) == REASONS.keys()
    assert [words for words in REASONS.values() if words not in python] == []
