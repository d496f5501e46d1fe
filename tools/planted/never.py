"""Slips in saying of a row that it never comes, and why."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

NEVER = "runtime/inspect/impossible.py"

GROUP = Group(
    "never",
    ("tests/runtime/test_why.py", "tests/properties/test_why.py"),
    (
        bug("a row on the grid is off it", NEVER, "        if past:\n", "        if True:\n"),
        bug(
            "grids are where the unit divides", NEVER, "(row[name] - grid.offset) % grid.unit", "row[name] % grid.unit"
        ),
        bug("no row is off a grid", NEVER, "    found = list(_off_grids(query, row))\n", "    found: list[str] = []\n"),
        bug(
            "the points beside a row are of another grid",
            NEVER,
            "row[name] - past + grid.unit, type_",
            "row[name] + grid.unit, type_",
        ),
        bug(
            "a condition that fails is broken",
            NEVER,
            "                continue\n            if holds",
            "                holds = False\n            if holds",
        ),
        bug("a condition that is unknown lets rows come", NEVER, "if holds is not True:", "if holds is False:"),
        bug(
            "one input of a union speaks for all", NEVER, "            if all(every):\n", "            if any(every):\n"
        ),
        bug("renamed instants go by their new names", NEVER, "{old.get(name, name): value for", "{name: value for"),
        bug(
            "a new attribute hides none",
            NEVER,
            "for key, value in row.items() if key != name}",
            "for key, value in row.items()}",
        ),
        bug("a copied instant says nothing", NEVER, "if isinstance(term, Attr) and name in row:", "if False:"),
        bug("a left join needs its partner", NEVER, 'if kind in ("inner", "semi"):', "if True:"),
        bug("a semi-join needs no partner", NEVER, 'if kind in ("inner", "semi"):', 'if kind == "inner":'),
        bug(
            "what is taken away keeps rows from coming",
            NEVER,
            "yield from _broken(left, row)\n        case Product",
            "yield from chain(_broken(left, row), _broken(node.right, row))\n        case Product",
        ),
        bug(
            "conditions of one side alone",
            NEVER,
            "yield from chain(_broken(left, _of(left, row)), _broken(right, _of(right, row)))",
            "yield from _broken(left, _of(left, row))",
        ),
        bug("a condition is told twice", NEVER, "dict.fromkeys(_broken(query.node, row))", "_broken(query.node, row)"),
    ),
)
