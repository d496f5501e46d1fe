"""Families of ordered operators: each in every layer, and named by no module outside of its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.operators import Changes
from tidegate.algebra.errors import InternalError
from tidegate.algebra.nodes import OrderedNode
from tidegate.algebra.ordered.derive import Derive
from tidegate.algebra.ordered.families import by_node
from tidegate.algebra.ordered.match import Match
from tidegate.algebra.ordered.process import Process
from tidegate.analysis.ordered import table as analysed
from tidegate.analysis.ordered.family import Family as AnalysisFamily
from tidegate.runtime.ordered import table as run
from tidegate.runtime.ordered.family import Family as RuntimeFamily
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.plan.steps import OrderedStep

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = {Derive, Match, Process}
NAMES = {"Derive", "Match", "RowIntervals", "Process"}
#: Where users write operators of a family: Python, the text language, and a picture of a pattern.
FRONT = {"algebra/dsl/situations.py", "algebra/text/printer.py", "runtime/pattern_timeline.py"}


def test_every_family_has_its_rules_in_every_layer() -> None:
    assert {*analysed.FAMILIES} == {*run.FAMILIES} == FAMILIES


def test_no_generic_module_names_a_family() -> None:
    naming = set()
    for layer in ("algebra", "analysis", "contexts", "runtime"):
        for path in (ROOT / layer).rglob("*.py"):
            if "ordered" not in path.relative_to(ROOT).parts:
                used = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
                naming |= {str(path.relative_to(ROOT))} if used & NAMES else set()
    assert naming == FRONT


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
