"""The project itself: layers, import time, packaging, and that the README's commands exist."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("algebra", "analysis", "contexts", "runtime")
# What these folders never import, not even inside a function.
ENGINES = frozenset({"pyspark", "numba", "polars"})
FREE_OF_ENGINES = ("algebra", "analysis", "contexts", "runtime/plan")
# Where pyspark may be imported as a module is loaded.
ON_SPARK = ("runtime/engines/spark/", "runtime/testkit/spark.py")
HEAVY = ENGINES | {"sympy", "networkx", "pandas", "pyarrow", "lark"}
#: Languages and row patterns are loaded when a query is written in them.
WHEN_USED = (
    "tidegate.algebra.text.reader",
    "tidegate.algebra.text.printer",
    "tidegate.algebra.text.row_patterns",
    "tidegate.algebra.ordered.sequences.",
    "tidegate.runtime.ordered.",
)
IMPORT_SECONDS = 0.3
#: On a slow machine: so many times as long as a million steps of a loop, which take 0.06 s on a usual one.
IMPORT_LOOPS = 6


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a module imports, anywhere in it, relative imports resolved."""
    package = ["tidegate", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def at_import(tree: ast.Module) -> set[int]:
    """Lines of the imports that run when the module is loaded: not those in functions or under TYPE_CHECKING."""
    lines, rest = set(), list[ast.AST](tree.body)
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines.add(node.lineno)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            rest += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            rest += ast.iter_child_nodes(node)
    return lines


def violations(path: Path, text: str) -> list[str]:
    """What in the module `path` with this text breaks an import contract."""
    name = path.relative_to(ROOT).as_posix()
    layer = name.split("/")[0]
    later = LAYERS[LAYERS.index(layer) + 1 :] if layer in LAYERS else ()
    tree = ast.parse(text)
    loading = at_import(tree)
    found = []
    for line, target in imported(path, tree):
        parts = target.split(".")
        if parts[0] in LAYERS:
            found.append(f"{name}:{line}: {target}: import it as tidegate.{target}, or the module is loaded twice")
        if parts[0] == "tidegate" and parts[1:2] and parts[1] in later:
            found.append(f"{name}:{line}: {target}: {layer} comes before {parts[1]}")
        if parts[0] in ENGINES and name.startswith(FREE_OF_ENGINES):
            found.append(f"{name}:{line}: {target}: only the engines in runtime import {parts[0]}")
        if parts[0] == "pyspark" and layer == "runtime" and not name.startswith(ON_SPARK) and line in loading:
            found.append(f"{name}:{line}: {target}: outside {ON_SPARK[0]} import pyspark inside functions only")
    return found


@pytest.mark.parametrize("layer", [*LAYERS, "tests", "examples", "tools"])
def test_imports_point_backwards_only(layer: str) -> None:
    found = [problem for path in sources(layer) for problem in violations(path, path.read_text())]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        ("algebra/x.py", "from tidegate.analysis import zones", "algebra comes before analysis"),
        ("analysis/x.py", "from ..runtime import plan", "analysis comes before runtime"),
        ("analysis/x.py", "from tidegate import runtime", "analysis comes before runtime"),
        ("contexts/x.py", "def f():\n    import polars as pl", "only the engines"),
        ("runtime/plan/x.py", "from numba import njit", "only the engines"),
        ("runtime/x.py", "import pyspark.sql", "inside functions only"),
        ("tests/x.py", "from algebra.nodes import Scan", "loaded twice"),
    ],
)
def test_the_contract_sees_each_kind_of_violation(module: str, text: str, expected: str) -> None:
    assert expected in "".join(violations(ROOT / module, text))


def test_the_contract_allows_what_it_should() -> None:
    assert violations(ROOT / "runtime/engines/spark/x.py", "import pyspark\nfrom tidegate.analysis import zones") == []
    lazily = "if TYPE_CHECKING:\n    import pyspark\ndef f():\n    from pyspark.sql import functions"
    assert violations(ROOT / "runtime/x.py", lazily) == []
    assert violations(ROOT / "runtime/eval/x.py", "import polars, numba\nfrom ..plan import steps") == []


def test_import_is_quick_and_loads_nothing_heavy() -> None:
    program = (
        "import time; start = time.process_time(); import tidegate; seconds = time.process_time() - start\n"
        "start = time.process_time(); sum(i * i for i in range(10**6)); loop = time.process_time() - start\n"
        "import json, sys; print(json.dumps([seconds, loop, sorted(sys.modules)]))"
    )
    best = float("inf")
    for _ in range(5):  # the best of several: the machine may be busy, the import is what is measured
        answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
        seconds, loop, modules = json.loads(answer.stdout)
        assert not HEAVY & {name.partition(".")[0] for name in modules}
        assert not [name for name in modules if name.startswith(WHEN_USED)]
        best = min(best, seconds / max(IMPORT_SECONDS, IMPORT_LOOPS * loop))
        if best < 1:
            break
    assert best < 1


def test_the_public_layers_are_links_to_the_folders() -> None:
    for layer in LAYERS:
        link = ROOT / "tidegate" / layer
        assert link.is_symlink()
        assert link.resolve() == ROOT / layer


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_every_make_command_in_the_pages_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {page.name: set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.MULTILINE)) for page in pages}
    assert {"demo", "test"} <= named["README.md"]
    assert {page: names - targets() for page, names in named.items() if names - targets()} == {}


def test_every_file_that_contributing_names_is_there() -> None:
    """By its path from the top, so that nobody has to look for it."""
    named = set(re.findall(r"`([\w/.-]+\.(?:py|toml|md)|[\w/-]+/)`", (ROOT / "CONTRIBUTING.md").read_text()))
    assert len(named) > 30
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_dependency_has_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    for requirement in (requirement for group in groups for requirement in group):
        assert re.search(rf'^    "{re.escape(requirement)}", # \w.*\w', text, re.MULTILINE), requirement


def test_the_lock_serves_pyproject() -> None:
    """Every dependency is locked, with hashes, and the lock names no registry."""
    text = (ROOT / "requirements" / "dev.txt").read_text()
    assert "://" not in text
    entries = re.findall(r"^([a-z0-9-]+)==\S+((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", text, re.MULTILINE)
    locked = {name for name, _ in entries}
    assert len(entries) == len(re.findall(r"^[a-z]", text, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    needed = {re.match(r"[a-z0-9-]+", requirement)[0] for group in groups for requirement in group}  # type: ignore[index]  # each has a name
    assert needed - {"tidegate"} <= locked


@pytest.mark.long
def test_distributions_hold_the_package_and_nothing_else(tmp_path: Path) -> None:
    """The wheel and the wheel built from the sdist hold real files under tidegate/, and no top-level `runtime`."""
    import tarfile
    import zipfile

    # A copy: setuptools leaves build directories behind.
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(copy)], check=True)
    build = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"

    def built(where: Path, kind: str) -> Path:
        out = tmp_path / f"{where.name}-{kind}"
        out.mkdir()
        answer = subprocess.run(
            [sys.executable, "-c", build, kind, str(out)], cwd=where, capture_output=True, text=True, check=True
        )
        return out / answer.stdout.splitlines()[-1]

    wheel, sdist = built(copy, "build_wheel"), built(copy, "build_sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    for path in (wheel, built(unpacked, "build_wheel")):
        with zipfile.ZipFile(path) as archive_:
            names = archive_.namelist()
        assert {name.split("/")[0] for name in names} == {"tidegate", path.name.split("-py3")[0] + ".dist-info"}
        for layer in LAYERS:
            tracked = subprocess.run(
                ["git", "ls-files", f"{layer}/*.py"], cwd=copy, capture_output=True, text=True, check=True
            )
            assert {f"tidegate/{name}" for name in tracked.stdout.split()} <= set(names)
        assert {"tidegate/py.typed", "tidegate/runtime/engines/spark/log4j2.properties"} <= set(names)
        assert {f"tidegate/algebra/text/{name}.lark" for name in ("terms", "situations", "row_patterns")} <= set(names)
