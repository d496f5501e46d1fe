"""Slips in what gives rows the row of another stream nearest in time."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

PLACES = "runtime/kernels/asof/places.py"
CANDIDATES = "runtime/ordered/asof/candidates.py"
FEW = "runtime/ordered/asof/few_rows.py"
KEPT_STATE = "runtime/ordered/state.py"
OPERATOR = "runtime/ordered/asof/operator.py"
ZONES = "analysis/ordered/asof.py"
MEANING = "algebra/ordered/asof.py"
VERSIONS = "algebra/dsl/versions/build.py"
LOWER = "runtime/plan/lower.py"

GROUP = Group(
    "rows nearest in time",
    (
        "tests/runtime/kernels/test_asof.py",
        "tests/runtime/test_asof.py",
        "tests/runtime/test_asof_few_rows.py",
        "tests/runtime/test_versioned.py",
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
        bug(
            "a deleted version is looked up",
            CANDIDATES,
            "behind[fresh] = np.where(ended, right.none, its)",
            "behind[fresh] = its",
        ),
        bug(
            "a deleted version is kept",
            CANDIDATES,
            "np.flatnonzero((place >= 0) & ~self.right.ended[self.right.source[place]])",
            "np.flatnonzero(place >= 0)",
        ),
        bug("what may be deleted is deleted", CANDIDATES, "ends.fill_null(value=False)", "ends.fill_null(value=True)"),
        bug(
            "a deletion is a version of the history",
            VERSIONS,
            'conditions.append(call("not", call("coalesce", self._deleted._term, FALSE)))',
            "pass",
        ),
        bug(
            "what is changed at once has held",
            VERSIONS,
            '= [call("lt", Attr(self._time), Attr(UNTIL))]',
            '= [call("le", Attr(self._time), Attr(UNTIL))]',
        ),
        bug("few rows: strict is not strict", FEW, "not self.node.strict) - 1", "True) - 1"),
        bug(
            "few rows: the partition before lends its last row",
            FEW,
            "np.where(places < self.offsets[among[here]], -1, places)",
            "places",
        ),
        bug(
            "few rows: a partition without new rows has those of another",
            FEW,
            "np.flatnonzero(self.partitions[among] == of)",
            "np.arange(len(of))",
        ),
        bug(
            "few rows: what has ended is looked up", FEW, "known[is_new] = ~right.ended[new[is_new]]", "known |= is_new"
        ),
        bug("few rows: what has ended is the one before", FEW, "its.set(has_none, None)", "its"),
        bug("few rows: what has ended is kept", FEW, "np.flatnonzero(~self.ended[ends])", "np.arange(len(ends))"),
        bug("few rows: the first one is kept", FEW, "ends = self.offsets[1:] - 1", "ends = self.offsets[:-1]"),
        bug("few rows: ties are in any order", FEW, "np.lexsort((place, time, of))", "np.lexsort((-place, time, of))"),
        bug(
            "few rows: kept and new ones change places",
            FEW,
            "values[is_first], values[~is_first] = first, second",
            "values[~is_first], values[is_first] = first[: len(second)], second[: len(first)]",
        ),
        bug(
            "few rows: what was there before counts",
            FEW,
            "np.flatnonzero(state.last_rows.heights(self.partitions))",
            "np.empty(0, dtype=np.int64)",
        ),
        bug("what is unchanged is written again", KEPT_STATE, "before is not None and operator.is_unchanged", "False"),
        bug(
            "what has changed is taken as it was",
            OPERATOR,
            "self.made is not None and not len(self.made[1].partitions)",
            "self.made is not None and not self.made[1].last.height",
        ),
        bug(
            "the key of a table is compared in part",
            VERSIONS,
            "if sorted(node.right_keys) != sorted(keys):",
            "if False:",
        ),
    ),
)
