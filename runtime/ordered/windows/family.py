"""Which operator computes which windows."""

from __future__ import annotations

from tidegate.algebra.ordered.windows.kinds import OpenedWindow, SessionWindow
from tidegate.algebra.ordered.windows.node import Windows
from tidegate.algebra.time import Extended
from tidegate.runtime.ordered.family import Family, Operator, Tables
from tidegate.runtime.ordered.windows.growing import GrowingOperator
from tidegate.runtime.ordered.windows.hopping import HoppingOperator
from tidegate.runtime.ordered.windows.operator import windows_of
from tidegate.runtime.ordered.windows.panes import panes_of
from tidegate.runtime.ordered.windows.rows.operator import RowWindowsOperator
from tidegate.runtime.ordered.windows.sessions import SessionOperator
from tidegate.runtime.plan.steps import OrderedStep


class WindowsFamily(Family[Windows]):
    node = Windows

    def start(self, ordered: OrderedStep) -> Operator:
        return _fresh(ordered)

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> Operator:
        return _fresh(ordered).loaded(tables, reached)


def _fresh(ordered: OrderedStep) -> SessionOperator | GrowingOperator | HoppingOperator | RowWindowsOperator:
    node = windows_of(ordered)
    window = node.window
    if node.keeps_rows:
        return RowWindowsOperator.fresh(ordered)
    if isinstance(window, SessionWindow | OpenedWindow):
        return SessionOperator.fresh(ordered)
    return GrowingOperator.fresh(ordered) if panes_of(window).grows else HoppingOperator.fresh(ordered)
