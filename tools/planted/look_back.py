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
            '            high, low = part["hi"] * weights, part["lo"] * weights\n',
            '            high, low = part["hi"], part["lo"]\n',
        ),
        bug(
            "left rows are counted once",
            LOOK_BACK,
            '            return [part["n"] * weights]\n',
            '            return [part["n"]]\n',
        ),
        bug(
            "a padded row is not counted",
            LOOK_BACK,
            "        times = np.maximum(slices.sizes, 1) if padded else slices.sizes\n",
            "        times = slices.sizes\n",
        ),
        bug(
            "left sums that may not fit are taken",
            LOOK_BACK,
            "            if (int(halves.max(initial=0)) + 1) * int(times.sum()) >= _MOST or int(times.max(initial=0)) >= _HALF // 2:\n",
            "            if False:\n",
        ),
        bug(
            "sums of doubles are differences of running ones",
            LOOK_BACK,
            "        place = np.arange(len(groups)) - np.searchsorted(groups, groups)\n",
            "        place = np.arange(len(groups))\n",
        ),
        bug(
            "what is lost of an infinite sum is no number",
            LOOK_BACK,
            "        rows = self.rows.with_columns((pl.col(total) * 0.0).fill_nan(0.0).alias(lost))[self.slices.order]\n",
            "        rows = self.rows[self.slices.order]\n",
        ),
        bug(
            "the best of another key goes on",
            LOOK_BACK,
            "        running = np.maximum.accumulate(groups * (count + 1) + in_order)\n",
            "        running = np.maximum.accumulate(in_order)\n",
        ),
    ),
)
