"""Slips in counting matches by ranges."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

COUNTING = "runtime/kernels/counting.py"

GROUP = Group(
    "counting",
    ("tests/runtime/kernels/test_search.py", "tests/runtime/kernels/test_ranges.py"),
    (
        bug(
            "a duration that every match has is one that every candidate has",
            "runtime/kernels/search_plan.py",
            "        hull[te][ts], hull[ts][te] = -int(pattern.at_least[role]), int(pattern.at_most[role])\n",
            "",
        ),
        bug(
            "the end of a range leaves out the last",
            COUNTING,
            "if ts[middle] <= ts_to and te[middle] <= te_to:",
            "if ts[middle] <= ts_to and te[middle] < te_to:",
        ),
        bug(
            "matches of the increment before are counted again",
            COUNTING,
            "if after < stack[_INSTANT, step - 1]:",
            "if after <= stack[_INSTANT, step - 1]:",
        ),
        bug(
            "triggered situations are counted as if they were not",
            COUNTING,
            "return bool((triggers.first[definition] == triggers.first[definition + 1]).all())",
            "return True",
        ),
    ),
)
