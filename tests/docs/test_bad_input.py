"""The page of bad input is true: each of its lines is a case that runs, and what the line says is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.bad_input import CASES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "bad-input.md"
LINES: dict[str, str] = {
    what: outcome
    for what, outcome in re.findall(r"^\| ([^|]+) \| ([^|]+) \|.*\|$", PAGE.read_text(), re.MULTILINE)
    if what not in ("what comes in", "---")
}


def test_every_line_has_a_case_and_every_case_a_line() -> None:
    assert list(LINES) == list(CASES)
    assert len(LINES) >= 25


@pytest.mark.parametrize("what", CASES)
def test_a_line_says_what_happens(what: str, tmp_path: Path) -> None:
    assert CASES[what](tmp_path) == LINES[what]
