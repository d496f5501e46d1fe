"""Rejected queries: each file of `invalid/` with exactly the message that stands beside it.

`python tests/test_invalid.py` writes the messages anew, to be read before they are committed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.algebra.errors import Problem, QueryError
from tidegate.runtime.cli.program_files import load_programs

FILES = sorted((Path(__file__).parent / "invalid").glob("*.py"))


def problems_of(path: Path) -> list[Problem]:
    try:
        return [problem for program in load_programs(path).values() for problem in program.check()]
    except QueryError as error:
        return list(error.problems)


def message_of(path: Path) -> str:
    return "\n\n".join(str(problem) for problem in problems_of(path)) + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_rejected_query_says_exactly_why(path: Path) -> None:
    assert message_of(path) == path.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_problem_has_a_place_in_the_file_and_a_way_out(path: Path) -> None:
    for problem in problems_of(path):
        assert problem.site is not None
        assert Path(problem.site.file).name == path.name
        assert problem.hint


def test_there_are_many_and_no_message_is_left_over() -> None:
    assert len(FILES) >= 25
    assert {path.stem for path in FILES} == {path.stem for path in (Path(__file__).parent / "invalid").glob("*.txt")}


if __name__ == "__main__":
    for path in FILES:
        path.with_suffix(".txt").write_text(message_of(path), encoding="utf-8")
