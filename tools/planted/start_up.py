"""Slips in what is loaded before the first row."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GROUP = Group(
    "start-up",
    ("tests/runtime/test_start_up.py",),
    (
        bug(
            "every program loads all families of operators",
            "analysis/ordered/table.py",
            "#: Facts of which a family need not say anything.\n",
            "from tidegate.analysis.ordered.windows import WindowsFamily  # noqa: E402, F401\n",
        ),
        bug(
            "every program loads what rewrites contexts",
            "contexts/optimiser/programs.py",
            "from tidegate.analysis.validity.validity import scan_problems\n",
            "from tidegate.analysis.validity.validity import scan_problems\n"
            "from tidegate.contexts.optimiser.push_down import pushed_down  # noqa: F401\n",
        ),
        bug(
            "every program loads what mends refused ones",
            "analysis/validity/validity.py",
            "if TYPE_CHECKING:\n    from tidegate.analysis.validity.mends",
            "if True:\n    from tidegate.analysis.validity.mends",
        ),
    ),
)
