"""Families of ordered operators: each in every layer, and named by no module outside of its own."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.operators import Changes
from tidegate.algebra.errors import InternalError
from tidegate.algebra.nodes import OrderedNode
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.derive import Derive
from tidegate.algebra.ordered.families import by_node
from tidegate.algebra.ordered.match.counted import CountedMatches
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.ordered.over import Over
from tidegate.algebra.ordered.process import Process
from tidegate.algebra.ordered.ranks import Ranks
from tidegate.algebra.ordered.sequences.counting.counted import CountedSequences
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.ticks import Ticks
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.ordered.windows.node import Windows
from tidegate.analysis.ordered import table as analysed
from tidegate.analysis.ordered.family import Family as AnalysisFamily
from tidegate.runtime.ordered import table as run
from tidegate.runtime.ordered.family import Family as RuntimeFamily
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.plan.steps import OrderedStep
from tools import rooms

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = {
    AsOf,
    CountedMatches,
    CountedSequences,
    Derive,
    GroupedWindows,
    Match,
    Over,
    Process,
    Ranks,
    Sequences,
    Ticks,
    Transitions,
    Windows,
}
NAMES = {
    "AsOf",
    "CountedMatches",
    "CountedSequences",
    "Derive",
    "GroupedWindows",
    "Match",
    "RowIntervals",
    "Over",
    "Process",
    "Ranks",
    "Sequences",
    "Ticks",
    "Transitions",
    "Windows",
}
#: Kernels of one family alone.
KERNELS = {
    "asof",
    "cells",
    "counting",
    "over",
    "partners",
    "paths",
    "pool",
    "ranges",
    "search",
    "search_plan",
    "sequences",
    "situations",
}
#: The modules that may name or import a family, with the reason: users write operators of a family, or look at one.
FRONT = {
    "algebra/dsl/asof/build.py": "Python: how asof_join makes its node",
    "algebra/dsl/checks/operators.py": "Python: what is wrong with an operator that a user wrote",
    "algebra/dsl/sequences/intervals.py": "Python: interval sequences are matches",
    "algebra/dsl/contexts/look_up.py": "contexts: rows in a context are an as-of join with its changes",
    "algebra/dsl/over/build.py": "Python: how over makes its node",
    "algebra/dsl/over/chains.py": "Python: calls of over that are one operator",
    "algebra/dsl/over/columns.py": "Python: lag, lead and the like",
    "algebra/dsl/ranks/build.py": "Python: how ranked and top_k make their node",
    "algebra/dsl/ranks/columns.py": "Python: rank and dense_rank",
    "algebra/dsl/sequences/build.py": "Python: how sequences makes its node",
    "algebra/dsl/sequences/rows.py": "Python: rows of a match",
    "algebra/dsl/situations.py": "Python: situations, patterns and operators of a user",
    "algebra/dsl/ticks/build.py": "Python: how ticks and fill_gaps make their nodes",
    "algebra/dsl/windows/bounds.py": "Python: session, hopping and cumulating",
    "algebra/dsl/windows/between.py": "Python: windows that rows open and close",
    "algebra/dsl/windows/build.py": "Python: how windows makes its node",
    "algebra/dsl/windows/opened.py": "Python: windows that rows open and close, as nodes",
    "algebra/text/interval_sequences/printer.py": "EVENT ISEQ: sequences are written out",
    "algebra/text/interval_sequences/reader.py": "EVENT ISEQ: sequences are read",
    "algebra/text/printer.py": "the text language: patterns are written out in it",
    "algebra/text/reader.py": "the text language: patterns are read from it",
    "algebra/text/returned.py": "the text language: what a pattern returns of its situations",
    "algebra/text/row_patterns/arguments.py": "MATCH_RECOGNIZE: variables of a row",
    "algebra/text/row_patterns/found.py": "MATCH_RECOGNIZE: what conditions read of rows",
    "algebra/text/row_patterns/navigations.py": "MATCH_RECOGNIZE: FIRST, PREV and the like",
    "algebra/text/row_patterns/patterns.py": "MATCH_RECOGNIZE: patterns are read",
    "algebra/text/row_patterns/printer.py": "MATCH_RECOGNIZE: clauses are written out",
    "algebra/text/row_patterns/reader.py": "MATCH_RECOGNIZE: clauses are read",
    "algebra/text/row_patterns/values.py": "MATCH_RECOGNIZE: measures and definitions",
    "algebra/text/sources.py": "the text language: which events are read",
    "analysis/state/window_partitions.py": "contexts: which partitions are windows, and follow each other",
    "analysis/validity/calendar_parts.py": "hints: windows of the calendar that a refused query is after",
    "analysis/validity/forms.py": "hints: forms of what a refused query is after",
    "analysis/validity/last_before.py": "hints: look-ups that pairs of rows are after",
    "contexts/asked.py": "contexts: rows of deriving queries as candidates",
    "contexts/checks.py": "contexts: what a model may be",
    "contexts/explained.py": "contexts: what a model implies, as text and as a picture",
    "contexts/findings.py": "contexts: what looks like a mistake in a model",
    "contexts/model.py": "contexts: how a model makes its node",
    "contexts/optimiser/filters.py": "contexts: look-ups as filters, read from nodes",
    "contexts/optimiser/grouping.py": "contexts: equal queries of several contexts are one",
    "contexts/optimiser/implied.py": "contexts: those in others are not looked up",
    "contexts/optimiser/programs.py": "contexts: which programs have a model",
    "contexts/optimiser/push_down.py": "contexts: look-ups move below as-of joins of others",
    "contexts/optimiser/whole_matches.py": "contexts: look-ups move below patterns",
    "contexts/reads.py": "contexts: that a model does not read itself",
    "contexts/relations.py": "contexts: which lie in others, read from a model's node",
    "contexts/standing.py": "contexts: in which ones a query stands, read from its nodes",
    "contexts/text/queries.py": "contexts: queries in text, printed",
    "contexts/text/reader.py": "contexts: queries in text, read",
    "runtime/cli/run_query.py": "the picture of a pattern, as a command",
    "runtime/inspect/suspension.py": "contexts: where queries are suspended",
    "runtime/pattern_timeline.py": "the picture of a pattern",
    "runtime/testkit/interval_lists.py": "the executions of a paper, with which interval sequences are compared",
}
#: Those of them that name a node of a family.
NAMING = {
    "algebra/dsl/asof/build.py",
    "algebra/dsl/contexts/look_up.py",
    "algebra/dsl/over/build.py",
    "algebra/dsl/over/chains.py",
    "algebra/dsl/ranks/build.py",
    "algebra/dsl/sequences/build.py",
    "algebra/dsl/situations.py",
    "algebra/dsl/ticks/build.py",
    "algebra/dsl/windows/build.py",
    "analysis/state/window_partitions.py",
    "analysis/validity/calendar_parts.py",
    "analysis/validity/forms.py",
    "analysis/validity/last_before.py",
    "algebra/dsl/windows/opened.py",
    "algebra/text/interval_sequences/printer.py",
    "algebra/text/printer.py",
    "algebra/text/row_patterns/printer.py",
    "algebra/text/row_patterns/reader.py",
    "contexts/model.py",
    "contexts/optimiser/filters.py",
    "contexts/optimiser/grouping.py",
    "contexts/optimiser/implied.py",
    "contexts/optimiser/programs.py",
    "contexts/optimiser/push_down.py",
    "contexts/optimiser/whole_matches.py",
    "contexts/reads.py",
    "contexts/relations.py",
    "contexts/standing.py",
    "runtime/inspect/suspension.py",
    "runtime/pattern_timeline.py",
    "runtime/testkit/interval_lists.py",
}
#: Where a layer lists its families: by name those that are loaded when a program has one, and by import.
BY_NAME, BY_IMPORT = "analysis/ordered/table.py", "runtime/ordered/table.py"


def test_every_family_has_its_rules_in_every_layer() -> None:
    assert {*analysed.all_families()} == {*run.FAMILIES} == FAMILIES


def family_of(module: str) -> str | None:
    """The family that a module belongs to: a file or folder of `ordered/`, or a kernel of its own."""
    _, _, *path = module.split(".")
    if path[:1] == ["kernels"] and KERNELS.intersection(path):
        return "a kernel"
    in_family = len(path) > 1 and path[0] == "ordered" and path[1] in {family.__name__.lower() for family in FAMILIES}
    return path[1] if in_family else None


MODULES = rooms.modules()


def path_of(module: str) -> str:
    return MODULES[module].relative_to(rooms.ROOT).as_posix()


def test_no_generic_module_imports_a_family() -> None:
    """Nor a module that hands a family's names on: those are the front's, and the front alone imports them."""
    importing = {
        path_of(module)
        for module, imported in rooms.imports().edges
        if family_of(module) is None and (family_of(imported) or path_of(imported) == "algebra/dsl/situations.py")
    }
    assert importing == {*FRONT, BY_IMPORT}


def test_a_family_and_what_belongs_to_none_are_told_apart() -> None:
    assert family_of("tidegate.runtime.ordered.match.operator") == "match"
    assert family_of("tidegate.algebra.ordered.derive") == "derive"
    assert family_of("tidegate.runtime.kernels.search") == "a kernel"
    assert family_of("tidegate.runtime.kernels.event_runs") is None
    assert family_of("tidegate.runtime.ordered.state") is None
    assert family_of("tidegate.algebra") is None


def test_what_belongs_to_one_family_alone_stands_with_it() -> None:
    """A module beside the families serves several of them, or somebody else."""
    importers: dict[str, set[str | None]] = {}
    for module, imported in rooms.imports().edges:
        if imported.split(".")[2:3] == ["ordered"] and family_of(imported) is None:
            importers.setdefault(imported, set()).add(family_of(module))
    assert {module for module, of in importers.items() if len(of) == 1 and None not in of} == set()


def used_names(code: str) -> set[str]:
    """The names in a module: of variables, attributes and imports, and in strings that are one, or are annotations."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                found.add(name)
            case ast.Constant(value=str(text)):
                found |= {*re.findall(r"\w+", text)} if "\n" not in text and text.count(" ") < 4 else set()
    return found


def test_no_generic_module_names_a_family() -> None:
    """Not as an attribute of a module, nor in an annotation."""
    assert used_names("import a\nx: 'Match | None' = a.Over") >= {"Match", "Over"}
    naming = set()
    for module, path in rooms.modules().items():
        if family_of(module) is None and used_names(path.read_text()) & NAMES:
            naming.add(path_of(module))
    assert naming == {*NAMING, BY_NAME}
    assert {*FRONT} > NAMING


def test_a_family_that_a_layer_lacks_is_named() -> None:
    class Other(OrderedNode):
        pass

    with pytest.raises(InternalError, match="TG904 the analysis has no family of Other"):
        analysed.family_of(Other())
    with pytest.raises(InternalError, match="TG904 the runtime has no family of Other"):
        run.family_of(Other())


def test_a_family_that_lacks_a_fact_is_named_with_it() -> None:
    """As its layer is imported, not when a program first asks."""

    class Half(AnalysisFamily[Process]):
        node = Process

    with pytest.raises(InternalError, match="TG904 Half in the analysis says nothing of zones, problems"):
        by_node("the analysis", AnalysisFamily, [Half()])

    class NoLoad(RuntimeFamily[Process]):
        node = Process

        def start(self, ordered: OrderedStep) -> Operator:
            raise AssertionError

    with pytest.raises(InternalError, match="TG904 NoLoad in the runtime says nothing of load"):
        by_node("the runtime", RuntimeFamily, [NoLoad()])


def test_nothing_in_the_package_knows_the_operators_of_tests() -> None:
    assert Changes.__module__ == "tests.operators"
    for layer in ("algebra", "analysis", "contexts", "runtime"):
        for path in (ROOT / layer).rglob("*.py"):
            assert "tests.operators" not in path.read_text()
