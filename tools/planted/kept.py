"""Slips in what operators keep of partitions: when these are looked at, and what of them is written."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

LAYOUT = "runtime/kernels/layout.py"
STATES = "runtime/embedded/partition_states.py"
TABLES = "runtime/embedded/kept_tables.py"

GROUP = Group(
    "kept",
    (
        "tests/runtime/kernels/test_shelf.py",
        "tests/runtime/test_kept_layers.py",
        "tests/runtime/faults/test_poison.py::test_poisoned_state_of_a_pattern",
    ),
    (
        bug(
            "what becomes certain without an event is seen a tick late",
            LAYOUT,
            "instant = ts[place] + starts[offset]\n                    if until < instant < first:",
            "instant = ts[place] + starts[offset] + 1\n                    if until < instant < first:",
        ),
        bug(
            "what may go stays as long as nothing new comes",
            LAYOUT,
            "                first = min(first, gone)\n",
            "",
        ),
        bug(
            "a slot that moves takes its old place",
            "runtime/kernels/shelf.py",
            "if total > room[slot]:",
            "if total > 2 * room[slot] + 1:",
        ),
        bug(
            "the pool is turned round where it is packed",
            "runtime/kernels/shelf.py",
            "self._pool.take(places, axis=1)",
            "self._pool[:, places]",
        ),
        bug(
            "partitions that have gone keep their slots",
            STATES,
            "if len(self.partitions) > LOOSE + 2 * self.held",
            "if len(self.partitions) > LOOSE + (1 << 40)",
        ),
        bug(
            "due partitions are left out", STATES, "np.concatenate([due, *parts])", "np.concatenate([due[:0], *parts])"
        ),
        bug("the first word on what is open counts", TABLES, "filter(IS_OPEN).max()", "filter(IS_OPEN).min()"),
        bug(
            "what is over is not said to be",
            TABLES,
            "was_open = before.open & ~after.open",
            "was_open = before.open & after.open",
        ),
        bug(
            "only what was over before is written",
            TABLES,
            "_chosen(_over(after.slots, after.kept, after.number), new)",
            "_chosen(_over(after.slots, after.kept, after.number), ~new)",
        ),
        bug(
            "situations that end before they begin are taken",
            "runtime/embedded/kept_checks.py",
            "(known & _INSTANTS & _numbered(NUMBER))",
            "(known & _numbered(NUMBER))",
        ),
        bug(
            "values of one run may be there twice",
            "runtime/embedded/kept_checks.py",
            "_numbered(needed[0]) & pl.col(needed[0]).is_unique()",
            "_numbered(needed[0])",
        ),
        bug("the first values of a run count", TABLES, 'keep="last"', 'keep="first"'),
    ),
)
