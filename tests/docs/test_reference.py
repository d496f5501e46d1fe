"""The reference is complete: every error code, every public name; and operations are written as it says."""

from __future__ import annotations

import itertools
import re
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

import tidegate as tg
from tidegate.algebra.typed.operations import OPERATIONS
from tools.docs_reference import PAGES, REFERENCE

ROOT = Path(__file__).resolve().parents[2]
ERRORS = REFERENCE / "errors.md"
LAYERS = ("algebra", "analysis", "contexts", "runtime")


@pytest.mark.parametrize("name", PAGES)
def test_pages_that_are_written_by_the_tool_are_up_to_date(name: str) -> None:
    assert (REFERENCE / name).read_text() == PAGES[name](), "run python tools/docs_reference.py"


ATTRIBUTES = tg.table("T", "b boolean, i bigint, d double, s string, t timestamp, a date, n interval day to second")


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_written_as_the_page_says(name: str, tmp_path: Path) -> None:
    """Some attributes of the right types make of the text a term with this operation."""
    text = (
        OPERATIONS[name]
        .written.replace(", …", "")
        .replace("unit", "5")
        .replace("start, length", "1, 2")
        .replace("old, new", "'a', 'b'")
    )
    file = tmp_path / "written.py"
    file.write_text(f"import tidegate as tg\n\n\ndef written(x, y, z):\n    return {text}\n")
    module = ModuleType("written")
    SourceFileLoader("written", str(file)).exec_module(module)
    attributes = [ATTRIBUTES[attribute] for attribute in ATTRIBUTES.schema]
    operations = set()
    for x, y, z in itertools.product(attributes, repeat=3):
        try:
            operations.add(module.written(x, y, z)._term.op)
        except tg.QueryError:
            continue
    assert operations == {name}


def codes_in_source() -> set[str]:
    texts = [path.read_text() for layer in LAYERS for path in (ROOT / layer).rglob("*.py")]
    return {code for text in texts for code in re.findall(r"\bTG\d{3}\b", text)}


def test_every_error_code_has_a_row_and_every_row_a_code() -> None:
    listed = re.findall(r"^\| (TG\d{3}) \|", ERRORS.read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == codes_in_source()
    assert listed == sorted(listed)


def test_every_public_name_says_what_it_is() -> None:
    page = (REFERENCE / "names.md").read_text()
    assert [
        name for name in tg.__all__ if not name.startswith("_") and not re.search(rf"`tg\.{name}` \| \S", page)
    ] == []
