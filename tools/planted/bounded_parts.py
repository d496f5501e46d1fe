"""Slips in what a batch does of a log in bounded parts, and in what it does not compute again."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

POSITIONS = "runtime/state/inputs/positions.py"
GARBAGE = "runtime/batch/garbage.py"
BOUNDED = "bounded(rows, to_merge(rows), max(_MERGED, sum(rows) // _MOST_TABLES))"

GROUP = Group(
    "bounded parts",
    (
        "tests/runtime/state/test_positions.py",
        "tests/runtime/test_garbage.py::test_what_is_kept_of_a_buffer_is_computed_once_for_its_progress",
    ),
    (
        bug("a batch writes the log of read files again, however long it is", POSITIONS, BOUNDED, "to_merge(rows)"),
        bug("tables of the log of read files stay as many as they are", POSITIONS, BOUNDED, "1"),
        bug(
            "tables of the log of read files stay small",
            POSITIONS,
            "max(_MERGED, sum(rows) // _MOST_TABLES)",
            "_MERGED",
        ),
        bug(
            "a table of the log that went into another one is lost",
            POSITIONS,
            "pa.concat_tables([read_segments(self._store, merged), table])",
            "table",
        ),
        bug(
            "what was kept of a buffer once is kept for ever",
            GARBAGE,
            "if known is None or known[0] != read:",
            "if known is None:",
        ),
        bug(
            "what is kept of a buffer is computed each time",
            GARBAGE,
            "if known is None or known[0] != read:",
            "if True:",
        ),
    ),
)
