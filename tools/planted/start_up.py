"""Slips in what is loaded before the first row."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GROUP = Group(
    "start-up",
    ("tests/runtime/test_start_up.py",),
    (
        bug(
            "every session loads the kernels, for a question that few ask",
            "runtime/inspect/suspension.py",
            "from tidegate.runtime.ordered.state import read_state\n",
            "from tidegate.runtime.ordered.row_operator import NONE  # noqa: F401\n"
            "from tidegate.runtime.ordered.state import read_state\n",
        ),
    ),
)
