"""Slips in aggregates of what each row looks up, which are computed without a list of pairs."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

LOOK_BACK = "runtime/eval/aggregates/look_back.py"
RANGES = "runtime/eval/joins/ranges.py"

GROUP = Group(
    "look back",
    ("tests/runtime/test_look_back.py",),
    (
        bug(
            "two ranges make a look back",
            LOOK_BACK,
            "    if len(parts.ranges) > 1 or parts.rest or ",
            "    if parts.rest or ",
        ),
        bug(
            "what padding has is left out",
            LOOK_BACK,
            '        return True if plain or join.kind == "inner" else None\n',
            "        return True\n",
        ),
        bug(
            "left values are summed once",
            LOOK_BACK,
            "        return False if state.form in (Form.COUNT, *_BEST) else None\n",
            "        return False\n",
        ),
        bug(
            "left rows are counted once",
            LOOK_BACK,
            "    if state.form is not Form.COUNT:\n        return columns\n",
            "    if columns:\n        return columns\n",
        ),
        bug(
            "a padded row is not counted",
            LOOK_BACK,
            "pl.Series(np.maximum(sizes, 1) if padded else sizes)",
            "pl.Series(sizes)",
        ),
        bug(
            "the best of another key goes on",
            LOOK_BACK,
            "        running = np.maximum.accumulate(groups * (count + 1) + in_order)\n",
            "        running = np.maximum.accumulate(in_order)\n",
        ),
    ),
)
