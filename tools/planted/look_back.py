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
            "what a pair decides is left out",
            LOOK_BACK,
            "    if len(parts.ranges) > 1 or parts.rest or ",
            "    if len(parts.ranges) > 1 or ",
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
            "    if state.form is not Form.COUNT:\n        return made\n",
            "    if made:\n        return made\n",
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
        bug(
            "slices to the end are run from the first row",
            LOOK_BACK,
            "        if not self.slices.from_first:\n",
            "        if False:\n",
        ),
        bug(
            "a value that is NULL may be the best",
            LOOK_BACK,
            "        return np.where(known, ranks, 0)\n",
            "        return ranks\n",
        ),
        bug(
            "a tie is the greatest value's",
            LOOK_BACK,
            '            return [state.column("by"), state.column("v")], [True, False]\n',
            '            return [state.column("by"), state.column("v")], [True, True]\n',
        ),
        bug(
            "a sum of NULLs is 0",
            LOOK_BACK,
            "        made = [_where(present, pl.Series(high + carry)), _where(present, pl.Series(low - carry * _HALF))]\n",
            "        made = [pl.Series(high + carry), pl.Series(low - carry * _HALF)]\n",
        ),
        bug(
            "left rows that fail their condition have partners",
            RANGES,
            "        stop = np.where(_true(left, compile_term(conjunction(parts.left), both)), stop, start)\n",
            "        stop = np.where(_true(left, compile_term(conjunction(parts.left), both)), stop, stop)\n",
        ),
    ),
)
