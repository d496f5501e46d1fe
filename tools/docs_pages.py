"""The code blocks of the pages: run as they stand, and what they print compared with the text below them.

    python tools/docs_pages.py docs/tutorial.md           # where a page is wrong
    python tools/docs_pages.py --write docs/tutorial.md   # put what the blocks print into the page

The `python` blocks of a page are one program, run in order in an empty directory. A `text` block directly below one is
its output; a line of `…` in it stands for any lines, `…` in a line for any text. A comment before a block says what is
special: `<!-- raises -->` (ends with one of our errors, whose text is the output), `<!-- spark -->` (needs Spark),
`<!-- picture -->` (text that no code prints).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
_FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[a-z]+) -->\n)?^```(?P<language>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_MARKS = {"python": (None, "raises", "spark"), "text": (None, "picture")}


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; `start` and `end` are the places of its body in the page, `line` where the body begins."""

    language: str
    mark: str | None
    body: str
    line: int
    start: int
    end: int
    follows: bool  # directly below the block before it


@dataclass(frozen=True, slots=True)
class Ran:
    """A block that ran, what it printed, and the block that says what it should have."""

    block: Block
    printed: str
    expected: Block | None
    module: ModuleType
    """What the page has defined up to here."""

    @property
    def fits(self) -> bool:
        return self.printed.strip() == "" if self.expected is None else matches(self.expected.body, self.printed)


def pages() -> list[Path]:
    """Every page with blocks to check."""
    return sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        between = text[found[-1].end + len("```") : match.start()] if found else "text"
        start, end = match.span("body")
        line = text.count("\n", 0, start) + 1
        found.append(Block(match["language"], match["mark"], match["body"], line, start, end, not between.strip()))
    return found


def faults(text: str) -> list[str]:
    """Blocks that nobody would check: text that follows no code, marks and languages that mean nothing here."""
    found = []
    before: Block | None = None
    for block in blocks(text):
        allowed = _MARKS.get(block.language, (None,))
        if block.mark not in allowed:
            found.append(f"line {block.line}: a {block.language} block is not marked {block.mark}")
        if block.language == "toml":
            try:
                tomllib.loads(block.body)
            except tomllib.TOMLDecodeError as error:
                found.append(f"line {block.line}: this is no TOML: {error}")
        if block.language not in ("python", "text", "sh", "json", "toml", "sql", ""):
            found.append(f"line {block.line}: nobody checks blocks of {block.language}")
        prints = before is not None and before.language == "python" and block.follows
        if block.language == "text" and block.mark is None and not prints:
            found.append(f"line {block.line}: this text is the output of no block; mark it as a picture")
        before = block
    return found


def needs_spark(text: str) -> bool:
    return any(block.mark == "spark" for block in blocks(text))


def run(page: Path, directory: Path, *, spark: bool = False) -> Iterator[Ran]:
    """Runs a page's blocks in `directory`, with or without those that need Spark, and yields each with its output."""
    with _own_logging():
        yield from _run(page, directory, spark=spark)


@contextlib.contextmanager
def _own_logging() -> Iterator[None]:
    """What a page does to the logger of the project ends with the page."""
    logger = logging.getLogger("tidegate")
    handlers, level = list(logger.handlers), logger.level
    try:
        yield
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)


def _run(page: Path, directory: Path, *, spark: bool) -> Iterator[Ran]:
    found = blocks(page.read_text())
    module = ModuleType(f"page_{page.stem}")
    line = 0
    for block, after in zip(found, [*found[1:], None][: len(found)], strict=True):
        if block.language != "python":
            continue
        # Line numbers in messages are those of a file with all blocks one below the other.
        padded = "\n" * line + block.body
        line += block.body.count("\n") + 1
        if block.mark == "spark" and not spark:
            continue
        expected = (
            after if after is not None and after.language == "text" and after.follows and not after.mark else None
        )
        printed = _output(module, f"{page.stem}.py", padded, directory, raises=block.mark == "raises")
        yield Ran(block, printed, expected, module)


def _output(module: ModuleType, name: str, source: str, directory: Path, *, raises: bool) -> str:
    from tidegate import TidegateError

    file = Path(tempfile.mkdtemp()) / name
    file.write_text(source)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), _inside(directory):
        try:
            SourceFileLoader(module.__name__, str(file)).exec_module(module)
        except TidegateError as error:
            if not raises:
                raise
            print(error)
        else:
            if raises:
                raise AssertionError(f"{name}: this block raises no error:\n{source.strip()}")
    return printed.getvalue().replace(str(directory), "/data")


@contextlib.contextmanager
def _inside(directory: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


def matches(expected: str, printed: str) -> bool:
    """Whether the output is the expected one; trailing spaces do not count, `…` matches any lines or text."""
    pattern = [
        r"(?:[^\n]*\n)*?" if line.strip() == "…" else r"[^\n]*?".join(map(re.escape, line.rstrip().split("…"))) + "\n"
        for line in expected.strip("\n").split("\n")
    ]
    lines = [line.rstrip() for line in printed.strip("\n").split("\n")]
    return re.fullmatch("".join(pattern), "\n".join(lines) + "\n") is not None


def rewritten(page: Path, ran: Sequence[Ran]) -> str:
    """The page with the output of its blocks as it is."""
    text = page.read_text()
    for one in reversed(ran):
        if not one.fits and one.expected is not None:
            body = "\n".join(line.rstrip() for line in one.printed.strip("\n").split("\n")) + "\n"
            text = text[: one.expected.start] + body + text[one.expected.end :]
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the code blocks of pages.")
    parser.add_argument("--write", action="store_true", help="put what the blocks print into the pages")
    parser.add_argument("--spark", action="store_true", help="run the blocks that need Spark, too")
    parser.add_argument("pages", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    wrong = 0
    for page in options.pages or pages():
        with tempfile.TemporaryDirectory() as directory:
            ran = list(run(page, Path(directory).resolve(), spark=options.spark))
        bad = [one for one in ran if not one.fits]
        for fault in faults(page.read_text()):
            print(f"{page}: {fault}")
        for one in bad:
            print(f"{page}: line {one.block.line} prints\n{one.printed}")
        if options.write:
            page.write_text(rewritten(page, ran))
        wrong += len(bad)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
