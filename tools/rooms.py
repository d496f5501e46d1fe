"""The rooms of the package, what each imports, and the picture of them in CONTRIBUTING.md.

    python tools/rooms.py [--write]

Prints what breaks the rules: imports point to rooms further up in `ROOMS` only, no module imports the package as users
do, folders with an entrance are entered there, no modules import each other in a circle, and no folder holds more than
`MOST_FILES` modules. Imports inside functions count, those for type checkers do not. `--write` puts the picture into
CONTRIBUTING.md.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("algebra", "analysis", "contexts", "runtime")
#: A room may import those above it. What stands in `analysis/` or `runtime/` itself is named by its module.
ROOMS = (
    "algebra",
    "analysis/inner_queries",
    "analysis/zones",
    "analysis/ordered",
    "analysis/summaries",
    "analysis/shared_orders",
    "analysis/federation",
    "analysis/progress",
    "analysis/components",
    "analysis/state",
    "analysis/facts",
    "analysis/cuts",
    "analysis/purge",
    "analysis/derived",
    "analysis/recursion",
    "analysis/validity",
    "analysis/report",
    "analysis/pipeline",
    "contexts",
    "runtime/extras",
    "runtime/arguments",
    "runtime/arrays",
    "runtime/arrow_arrays",
    "runtime/rows",
    "runtime/kernels",
    "runtime/state",
    "runtime/tuning",
    "runtime/plan",
    "runtime/eval",
    "runtime/ordered",
    "runtime/connectors",
    "runtime/ingest",
    "runtime/batch",
    "runtime/inspect",
    "runtime/engines",
    "runtime/api",
    "runtime/pattern_timeline",
    "runtime/program",
    "runtime/cli",
    "runtime/testkit",
)
WITH_ROOMS = ("analysis", "runtime")
#: Folders that others enter by one module: what it is made of, they do not know.
ENTRANCES = {"tidegate.runtime.eval.small": "tidegate.runtime.eval.small.increment"}
MOST_FILES = 12
BEGIN, END = "<!-- rooms: written by tools/rooms.py -->", "<!-- end of rooms -->"


def modules() -> dict[str, Path]:
    """Every module by its full name; packages by theirs."""
    found = {}
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(["tidegate", *(parts[:-1] if parts[-1] == "__init__" else parts)])] = path
    return found


def imported(path: Path) -> Iterator[str]:
    """Full names of what a module imports, at its top or inside functions."""
    rest: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            rest += node.orelse
        else:
            rest += ast.iter_child_nodes(node)


@cache
def imports() -> nx.DiGraph[str]:
    """Modules of the package and which imports which."""
    known = modules()
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(known)
    for name, path in known.items():
        for target in imported(path):
            module = target if target in known else target.rpartition(".")[0]
            if module in known and module != name:
                graph.add_edge(name, module)
    return graph


def room(module: str) -> str | None:
    """The room that a module stands in; None for a layer that has rooms."""
    parts = module.split(".")[1:]
    name = "/".join(parts[:2]) if parts[0] in WITH_ROOMS else parts[0]
    return None if name in WITH_ROOMS else name


def wrong_ways() -> list[str]:
    """Imports of rooms that come later, and modules that stand in no room."""
    found = [f"{name} stands in no room" for name in imports() if room(name) not in (None, *ROOMS)]
    for name, target in imports().edges:
        above, below = room(target), room(name)
        if above in ROOMS and below in ROOMS and ROOMS.index(above) > ROOMS.index(below):
            found.append(f"{name} imports {target}, of a room that comes later")
    return sorted(found)


def front_imports() -> list[str]:
    """Imports of the package itself, where a name stands in a module of it: a user's way, which imports everything."""
    roots = (*LAYERS, "version")
    return sorted(
        f"{name} imports {target}, not the module where it stands"
        for name, path in modules().items()
        for target in imported(path)
        if target.split(".")[0] == "tidegate" and target.partition(".")[2].split(".")[0] not in roots
    )


def side_doors() -> list[str]:
    """Imports into a folder past its entrance."""
    return sorted(
        f"{name} imports {target}, not {entrance}"
        for folder, entrance in ENTRANCES.items()
        for name, target in imports().edges
        if target.startswith(folder) and not name.startswith(folder) and target != entrance
    )


def circles() -> list[str]:
    """Modules that import each other, directly or through others."""
    groups = [sorted(group) for group in nx.strongly_connected_components(imports()) if len(group) > 1]
    return sorted("a circle of " + ", ".join(group) for group in groups)


def crowds() -> list[str]:
    """Folders with too many modules to be seen at once."""
    folders: dict[Path, int] = {}
    for path in modules().values():
        folders[path.parent] = folders.get(path.parent, 0) + (path.name != "__init__.py")
    return sorted(
        f"{folder.relative_to(ROOT).as_posix()} has {count} modules, more than {MOST_FILES}"
        for folder, count in folders.items()
        if count > MOST_FILES
    )


def picture() -> str:
    """The rooms as a graph for Mermaid: an arrow from each to those that it imports, the implied left out. A purpose is
    the first paragraph of the room's docstring.
    """
    between: nx.DiGraph[str] = nx.DiGraph()
    shown = [name for name in ROOMS if (ROOT / name / "__init__.py").exists()]
    between.add_nodes_from(shown)
    between.add_edges_from(
        (below, above)
        for name, target in imports().edges
        if (below := room(name)) in shown and (above := room(target)) in shown and below != above
    )
    direct = nx.transitive_reduction(between)
    lines = ["```mermaid", "flowchart BT"]
    for name in reversed(shown):
        text = ast.get_docstring(ast.parse((ROOT / name / "__init__.py").read_text())) or ""
        purpose = " ".join(text.partition("\n\n")[0].split()).rstrip(".")
        lines.append(f'  {_id(name)}["<b>{name}</b><br/>{purpose}"]')
    lines += [f"  {_id(below)} --> {_id(above)}" for below, above in sorted(direct.edges, key=str)]
    return "\n".join([*lines, "```"])


def _id(name: str) -> str:
    return name.replace("/", "_")


def with_picture(page: str) -> str:
    """The page with today's picture between its marks."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n{picture()}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    """Exit status 1 where a rule is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the picture into CONTRIBUTING.md")
    if parser.parse_args().write:
        page = ROOT / "CONTRIBUTING.md"
        page.write_text(with_picture(page.read_text(encoding="utf-8")), encoding="utf-8")
    problems = [*wrong_ways(), *front_imports(), *side_doors(), *circles(), *crowds()]
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
