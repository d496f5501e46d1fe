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
            "a waiting row that remembers none has a row of NULLs",
            CANDIDATES,
            "np.where(before_it[old] == NEVER, right.none, its)",
            "its",
        ),
        bug(
            "a key that is NULL waits",
            CANDIDATES,
            "np.where(_unmatched(node, rows), at[fresh], complete[fresh])",
            "complete[fresh]",
        ),
        bug("an inner join has rows of none", CANDIDATES, 'if node.how == "inner":', "if False:"),
        bug(
            "the last row goes a tick too soon",
            CANDIDATES,
            "+ node.within > until]",
            "+ node.within > until + 1]",
        ),
        bug("the last row stays a tick too long", CANDIDATES, "+ node.within > until]", "+ node.within >= until]"),
        bug(
            "a row is due by its limit alone", CANDIDATES, "np.minimum(limit, 2 * at - ", "np.maximum(limit, 2 * at - "
        ),
        bug(
            "a row that waits stands in another partition",
            CANDIDATES,
            '            at = at[np.argsort(self.of[at], kind="stable")]\n',
            "",
        ),
        bug(
            "what is too old is not looked at",
            CANDIDATES,
            "found[last.get_column(PARTITION).to_numpy()] = time + node.within",
            "found[last.get_column(PARTITION).to_numpy()] = NO_LOOK",
        ),
        bug(
            "rows that wait are not looked at",
            CANDIDATES,
            "    np.minimum.at(found, ",
            "    np.minimum.at(found.copy(), ",
        ),
        bug("rows that nothing orders come in any order", CANDIDATES, "    if at < 0:\n", "    if True:\n"),
        bug("a tie-break allows two equal rows", CANDIDATES, "        if not twice.height:\n", "        if True:\n"),
        bug(
            "a right key that is NULL is a key",
            OPERATOR,
            "right.drop_nulls(self.node.right_keys) if self.node.right_keys else right",
            "right",
        ),
        bug(
            "what is emptied comes back with the next delta",
            OPERATOR,
            "gone = before.has_rows(old) & ~after.has_rows(new)",
            "gone = before.has_rows(old) & after.has_rows(new) & False",
        ),
        bug(
            "after a restart no kept row is due",
            OPERATOR,
            "looks(node, len(partitions), last, waiting, due)",
            "nothing.look",
        ),
        bug(
            "a result progresses with the left input alone",
            ZONES,
            "strict=True):\n            completed",
            "strict=True):\n            if reading is not node.readings[0]:\n                continue\n            completed",
            required=True,
        ),
        bug(
            "a limit bounds nothing that waits",
            ZONES,
            '        if node.within is not None:\n            found.append(Compare(complete, "<=",',
            '        if False:\n            found.append(Compare(complete, "<=",',
        ),
        bug(
            "a wait without a limit is bounded",
            ZONES,
            '        found = [Compare(left, "<=", complete)]',
            '        found = [Compare(left, "=", complete)]',
        ),
        bug(
            "of an inner join the right instant is any",
            ZONES,
            'if node.how == "inner":\n        found',
            "if False:\n        found",
        ),
        bug("the meaning takes the later of two", MEANING, "after[0] < before[0]", "after[0] <= before[0]"),
        bug(
            "rows read by two keys are sharded by one",
            LOWER,
            "if all(len(one) == 1 for one in columns_of) else None",
            "if True else None",
        ),
    ),
)
