"""Slips in looks of partner and kill rule, which judge a few rows at a time."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

LOOKS = "runtime/eval/dependents.py"

GROUP = Group(
    "small steps",
    ("tests/runtime/test_looks.py", "tests/properties/test_purge.py"),
    (
        bug(
            "a look asks the first segment of partners only",
            LOOKS,
            "            if part is not None:\n",
            "            if part is not None and not check.seen:\n",
            required=True,
        ),
        bug(
            "segments are passed over by the wrong end",
            LOOKS,
            "    return ranges is None or ranges[0][0] <= ranges[1][1] + bound.c\n",
            "    return ranges is None or ranges[0][1] <= ranges[1][0] + bound.c\n",
            required=True,
        ),
        bug(
            "a look asks one case only",
            LOOKS,
            "    for case in query.purge.cases:\n",
            "    for case in query.purge.cases[:1]:\n",
            required=True,
        ),
    ),
)
