"""Slips in telling whether an instant on a grid was passed."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GRID = "analysis/zones/grid.py"

GROUP = Group(
    "grids",
    ("tests/analysis/test_grid.py",),
    (
        bug(
            "every advance passes a point",
            GRID,
            "(new - self.offset) // self.unit > (old - self.offset) // self.unit",
            "(new - self.offset) // self.unit >= (old - self.offset) // self.unit",
        ),
        bug(
            "points are where the unit divides",
            GRID,
            "(new - self.offset) // self.unit > (old - self.offset) // self.unit",
            "new // self.unit > old // self.unit",
        ),
        bug(
            "what did not progress passes",
            GRID,
            "any(p != old[a] and (a not in grids",
            "any((a not in grids",
        ),
        bug(
            "a union has the grid of its first input",
            GRID,
            "return first if all(grid == first for grid in others) else None",
            "return first",
        ),
    ),
)
