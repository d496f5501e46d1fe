"""The pages are true: their code runs and prints what they say, and every command they name exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.built_manual import BuiltManual
from tidegate.runtime.cli.commands import main, parser
from tidegate.runtime.state.codec import FORMAT_VERSION
from tools.docs_pages import ROOT, Ran, blocks, faults, matches, needs_spark, pages, rewritten, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = {page.relative_to(ROOT).as_posix(): page for page in pages()}
WITH_CODE = [name for name, page in PAGES.items() if any(b.language == "python" for b in blocks(page.read_text()))]
ON_SPARK = [name for name in WITH_CODE if needs_spark(PAGES[name].read_text())]


def differences(ran: list[Ran]) -> str:
    return "\n".join(f"line {one.block.line} prints\n{one.printed}" for one in ran if not one.fits)


@pytest.mark.parametrize("name", WITH_CODE)
def test_the_code_of_a_page_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    assert differences(list(run(PAGES[name], tmp_path))) == ""


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_SPARK)
def test_the_code_of_a_page_on_spark(name: str, tmp_path: Path, spark: SparkSession) -> None:
    ran = list(run(PAGES[name], tmp_path, spark=True))
    assert any(one.block.mark == "spark" for one in ran)
    assert differences(ran) == ""


@pytest.mark.parametrize("name", list(PAGES))
def test_every_block_of_a_page_is_checked_by_something(name: str) -> None:
    assert faults(PAGES[name].read_text()) == []


def commands() -> list[tuple[str, str]]:
    """Every line of a shell block, with its page."""
    shell = [(name, b.body) for name, page in PAGES.items() for b in blocks(page.read_text()) if b.language == "sh"]
    lines = [(name, line.split("#")[0].strip()) for name, body in shell for line in body.splitlines()]
    return [(name, line) for name, line in lines if line]


@pytest.mark.parametrize(("name", "command"), commands())
def test_commands_in_shell_blocks_exist(name: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    program, *words = re.sub(r"^([A-Z]+=\S+ )+", "", command).split()
    match program:
        case "make":
            assert words[0] in set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)), name
        case "tidegate" if words[0] in ("check", "explain"):
            assert main(words) == 0, name
        case "tidegate":
            assert words[0] in parser().format_help(), name
        case "python" if words[0] == "-m":
            assert (ROOT / (words[1].replace(".", "/") + ".py")).is_file(), name
        case "python":
            assert (ROOT / words[0]).is_file(), name
        case "git" | "pip" | "cd" | "ls":
            pass
        case _:
            pytest.fail(f"{name}: nobody knows {program}")


@pytest.mark.parametrize("name", list(PAGES))
def test_commands_are_seen_whole(name: str) -> None:
    """The manual has room for a hundred letters of code on a screen of 1280 pixels."""
    shell = [block.body for block in blocks(PAGES[name].read_text()) if block.language == "sh"]
    assert [line for body in shell for line in body.splitlines() if len(line) > 100] == []


def test_a_page_that_is_wrong_is_found_and_mended(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n\n```python\nx = 1\nprint(x)\n```\n\n```text\n2\n```\n\n```python\nprint(x + 2)\n```\n")
    ran = list(run(page, tmp_path))
    assert [one.printed for one in ran] == ["1\n", "3\n"]
    assert [one.fits for one in ran] == [False, False]  # wrong output, and output that the page does not have
    page.write_text(rewritten(page, ran))
    assert [one.fits for one in run(page, tmp_path)] == [True, False]


def test_errors_that_a_page_shows_are_raised(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        'x\n\n```python\nimport tidegate as tg\n\nt = tg.table("T", "a bigint")\n```\n\n'
        "<!-- raises -->\n```python\nt.b\n```\n\n```text\nTG101 unknown attribute 'b'\n  page.py:5   t.b\n…\n```\n"
    )
    assert all(one.fits for one in run(page, tmp_path))
    page.write_text(page.read_text().replace("t.b\n```", "t.a\n```"))
    with pytest.raises(AssertionError, match="raises no error"):
        list(run(page, tmp_path))


def test_unchecked_blocks_are_faults() -> None:
    assert faults("a\n\n```text\nwhat nobody printed\n```\n") != []
    assert faults("a\n\n<!-- picture -->\n```text\na tree\n```\n") == []
    assert faults("a\n\n```python3\n1\n```\n") != []
    assert faults("a\n\n<!-- sparc -->\n```python\n1\n```\n") != []


def test_ellipses_match_lines_only() -> None:
    assert matches("a\n…\nb", "a\n1\n2\nb\n")
    assert matches("a\n…", "a\n")
    assert not matches("a\n…\nb", "a\nb c\n")


def test_the_page_of_the_checkpoint_says_the_version_of_its_format() -> None:
    assert f"The version is now {FORMAT_VERSION}." in PAGES["docs/reference/checkpoint.md"].read_text()


def test_every_page_of_the_manual_is_in_its_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    named = re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", text, re.MULTILINE)
    there = sorted(page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md"))
    beside = re.search(
        r"^not_in_nav: \|\n((?:  .*\n)+)", text, re.MULTILINE
    )  # for who works on it: reasons and figures
    assert beside is not None
    left_out = tuple(beside[1].split())
    assert sorted(named) == [name for name in there if not name.startswith(left_out)]
    made = "reference/api/"  # linked from the page that lists them
    assert set(left_out) == {"decisions/", "explanation/figures.md", "explanation/tpstream-figures.md", made}
    first = (ROOT / "docs/index.md").read_text()
    assert [name for name in named if name != "index.md" and f"({name}" not in first] == [], "no link on the first page"


@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith("docs/")])
def test_links_of_pages_outside_the_manual_lead_somewhere(name: str) -> None:
    targets = [
        link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", PAGES[name].read_text()) if "://" not in link
    ]
    assert [target for target in targets if not (PAGES[name].parent / target).exists()] == []


@pytest.mark.xdist_group("browser")  # with the tests that look at the pages, which are built once
def test_the_manual_builds(built_manual: BuiltManual) -> None:
    assert (built_manual.status, built_manual.complaints) == (0, "")
    loaded = {
        address
        for page in built_manual.place.rglob("*.html")
        for address in re.findall(r'(?:\ssrc|<link [^>]*href)="((?:https?:)?//[^"]+)"', page.read_text())
    }
    assert loaded == set(), "nothing comes from elsewhere; links may lead there"
