"""Slips in what gives rows the row of another stream nearest in time."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

PLACES = "runtime/kernels/asof/places.py"
CANDIDATES = "runtime/ordered/asof/candidates.py"
OPERATOR = "runtime/ordered/asof/operator.py"
ZONES = "analysis/ordered/asof.py"
MEANING = "algebra/ordered/asof.py"
LOWER = "runtime/plan/lower.py"

GROUP = Group(
    "rows nearest in time",
    (
        "tests/runtime/kernels/test_asof.py",
        "tests/runtime/test_asof.py",
        "tests/properties/test_operators.py",
    ),
    (
        bug(
            "equal instants are always passed", PLACES, "(later and time[middle] == instant)", "time[middle] == instant"
        ),
        bug(
            "the last row of a partition is never found",
            PLACES,
            "offsets[of[i] + 1], at[i]",
            "offsets[of[i] + 1] - 1, at[i]",
        ),
        bug(
            "strict is not strict when looking back",
            CANDIDATES,
            "of, at, not self.node.strict) - 1",
            "of, at, True) - 1",
        ),
        bug("strict is not strict when looking ahead", CANDIDATES, "of, at, self.node.strict)", "of, at, False)"),
        bug(
            "the partition before lends its last row",
            CANDIDATES,
            "        place[place < self.offsets[of]] = _NONE\n",
            "        place[place < 0] = _NONE\n",
        ),
        bug(
            "the partition after lends its first row",
            CANDIDATES,
            "place[place >= self.offsets[of + 1]] = _NONE",
            "place[place >= len(self.time) - 1] = _NONE",
        ),
        bug(
            "a limit is a tick short when looking back",
            CANDIDATES,
            "at - self.node.within > self.time[place]",
            "at - self.node.within >= self.time[place]",
        ),
        bug(
            "a limit is a tick short when looking ahead",
            CANDIDATES,
            "at + self.node.within < self.time[place]",
            "at + self.node.within <= self.time[place]",
        ),
        bug("of two at one distance the later", CANDIDATES, "| (after < due))", "| (after <= due))"),
        bug(
            "a waiting row forgets the row before it",
            CANDIDATES,
            "            before_it[old] = remembered_times(waited, layout.right_time)\n",
            "",
        ),
        bug(
            "a key that is NULL waits",
            CANDIDATES,
            "np.where(_unmatched(node, rows), at[fresh], complete[fresh])",
            "complete[fresh]",
        ),
    ),
)
