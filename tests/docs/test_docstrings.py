"""Every public docstring has an example, and every example prints what it says."""

from __future__ import annotations

import ast
import contextlib
import doctest
import inspect
import io
import pkgutil
import re
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import tidegate as tg
from tidegate import metrics, testing
from tools.docs_reference import EXAMPLES_BEGIN, HELD, SPARK_EXAMPLES_BEGIN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The section in which mkdocstrings shows an example as code.
SECTION = re.compile(r"^\nExamples:\n    >>> ", re.MULTILINE)
#: A number in a paper: what something is, is said without it.
CITATION = re.compile(r"\bTSA\b|\b(Def|Prop|Table|Listing|Algorithm)\. ?\d|§|\bet al\b")


def documented() -> Iterator[tuple[str, str]]:
    """The docstrings of all public names, and of the public methods and properties of the classes among them."""
    named = {name: getattr(tg, name) for name in tg.__all__}
    named |= {path.rpartition(".")[2]: pkgutil.resolve_name(path) for path in HELD}
    for module in (metrics, testing):
        named |= {
            f"{module.__name__.removeprefix('tidegate.')}.{name}": getattr(module, name) for name in module.__all__
        }
    for name, value in named.items():
        if isinstance(value, type):
            yield name, own_docstring(value)
            for member, given in vars(value).items():
                if not member.startswith("_") and (inspect.isroutine(given) or isinstance(given, property)):
                    yield f"{name}.{member}", own_docstring(given)
        elif inspect.isroutine(value):
            yield name, own_docstring(value)


def own_docstring(value: object) -> str:
    """That of a class itself, not of one that it inherits from."""
    return inspect.cleandoc((vars(value).get("__doc__") if isinstance(value, type) else value.__doc__) or "")


def examples(docstring: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(docstring)


def is_shown(docstring: str) -> bool:
    """Whether there is an example with its output, where every reader of docstrings finds it."""
    return SECTION.search(docstring) is not None and any(example.want for example in examples(docstring))


def differences(name: str, docstring: str, begun: ModuleType) -> str:
    """What the examples print and do not say, each with its place."""
    test = doctest.DocTestParser().get_doctest(docstring, dict(vars(begun)), name, None, 0)
    printed = io.StringIO()
    doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(test, out=printed.write)
    return printed.getvalue()


def names(code: str, context: type[ast.expr_context]) -> set[str]:
    """The names that code binds, or reads."""
    nodes = ast.walk(ast.parse(code))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


DOCSTRINGS = dict(documented())
OF_SPARK = names(SPARK_EXAMPLES_BEGIN, ast.Store)
ON_SPARK = [
    name
    for name, docstring in DOCSTRINGS.items()
    if any(OF_SPARK & names(example.source, ast.Load) for example in examples(docstring))
]


def begin(directory: Path, *codes: str) -> ModuleType:
    """What stands before an example, run in a directory."""
    module = ModuleType("examples")
    for number, code in enumerate(codes):
        file = directory / f".begin{number}.py"
        file.write_text(code)
        with contextlib.chdir(directory):
            SourceFileLoader(module.__name__, str(file)).exec_module(module)
    return module


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return begin(tmp_path_factory.mktemp("examples"), EXAMPLES_BEGIN)


@pytest.fixture(scope="module")
def on_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ModuleType]:
    """One run serves all examples that only read what it has done; they share its directory."""
    directory = tmp_path_factory.mktemp("examples")
    return directory, begin(directory, EXAMPLES_BEGIN, SPARK_EXAMPLES_BEGIN)


def test_every_public_docstring_has_an_example() -> None:
    assert [name for name, docstring in DOCSTRINGS.items() if not is_shown(docstring)] == []


def test_a_run_explains_each_way_to_meet_what_has_no_value() -> None:
    """There are two options of one name: that of the run, for results, and that of a source, for its rows."""
    docs = {name: inspect.getdoc(getattr(tg.Program, name)) or "" for name in ("run", "session", "start")}
    for name, doc in docs.items():
        assert "source" in doc.partition("`on_error`")[2], name
    assert all(f'"{choice}"' in docs["session"] for choice in ("quarantine", "fail"))


def test_the_first_line_says_what_it_is_in_plain_words() -> None:
    cited = [name for name, docstring in DOCSTRINGS.items() if CITATION.search(docstring.partition("\n")[0])]
    assert cited == []
    assert CITATION.search("TSA Def. 12: rows for which the condition is true.")
    assert CITATION.search("Rows for which the condition is true (Def. 12).")


@pytest.mark.parametrize("name", [name for name in DOCSTRINGS if name not in ON_SPARK])
def test_an_example_prints_what_it_says(name: str, begun: ModuleType, tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        assert differences(name, DOCSTRINGS[name], begun) == ""


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_SPARK)
def test_an_example_on_spark(name: str, on_spark: tuple[Path, ModuleType]) -> None:
    directory, begun = on_spark
    with contextlib.chdir(directory):
        assert differences(name, DOCSTRINGS[name], begun) == ""


def test_an_example_that_is_wrong_or_missing_is_found(begun: ModuleType) -> None:
    right = "One more.\n\nExamples:\n    >>> 1 + 1\n    2"
    assert (is_shown(right), differences("right", right, begun)) == (True, "")
    assert "Expected:\n    3\nGot:\n    2" in differences("wrong", right.replace("    2", "    3"), begun)
    assert "NameError" in differences("broken", right.replace("1 + 1", "one + 1"), begun)
    assert not is_shown(right.replace("Examples:", "For example:"))
    assert not is_shown(right.removesuffix("\n    2"))
