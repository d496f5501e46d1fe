"""Slips in saying of a row that it never comes, and why."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

IMPOSSIBLE = "runtime/inspect/impossible.py"

GROUP = Group(
    "impossible",
    ("tests/runtime/test_why.py", "tests/properties/test_why.py"),
    (
        bug("a row on the grid is off it", IMPOSSIBLE, "        if past:\n", "        if True:\n"),
        bug(
            "grids are where the unit divides",
            IMPOSSIBLE,
            "(row[name] - grid.offset) % grid.unit",
            "row[name] % grid.unit",
        ),
        bug(
            "no row is off a grid",
            IMPOSSIBLE,
            "    reasons = list(_off_grids(query, row))\n",
            "    reasons: list[str] = []\n",
        ),
        bug(
            "the points beside a row are of another grid",
            IMPOSSIBLE,
            "row[name] - past + grid.unit, type_",
            "row[name] + grid.unit, type_",
        ),
        bug(
            "a condition that fails is broken",
            IMPOSSIBLE,
            "                continue\n            if holds",
            "                holds = False\n            if holds",
        ),
        bug("a condition that is unknown lets rows come", IMPOSSIBLE, "if holds is not True:", "if holds is False:"),
        bug(
            "one input of a union speaks for all",
            IMPOSSIBLE,
            "            if all(every):\n",
            "            if any(every):\n",
        ),
        bug(
            "renamed instants go by their new names", IMPOSSIBLE, "{old.get(name, name): value for", "{name: value for"
        ),
        bug(
            "a new attribute hides none",
            IMPOSSIBLE,
            "for key, value in row.items() if key != name}",
            "for key, value in row.items()}",
        ),
        bug("a copied instant says nothing", IMPOSSIBLE, "if isinstance(term, Attr) and name in row:", "if False:"),
        bug("a left join needs its partner", IMPOSSIBLE, 'if kind in ("inner", "semi"):', "if True:"),
        bug("a semi-join needs no partner", IMPOSSIBLE, 'if kind in ("inner", "semi"):', 'if kind == "inner":'),
        bug(
            "what is taken away keeps rows from coming",
            IMPOSSIBLE,
            "yield from _broken(left, row)\n        case Product",
            "yield from chain(_broken(left, row), _broken(node.right, row))\n        case Product",
        ),
        bug(
            "conditions of one side alone",
            IMPOSSIBLE,
            "yield from chain(_broken(left, _of(left, row)), _broken(right, _of(right, row)))",
            "yield from _broken(left, _of(left, row))",
        ),
        bug(
            "a condition is told twice",
            IMPOSSIBLE,
            "dict.fromkeys(_broken(query.node, row))",
            "_broken(query.node, row)",
        ),
    ),
)
