"""Slips in what a batch merges of the log of read files, in bounded parts."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

POSITIONS = "runtime/state/inputs/positions.py"
BOUNDED = "bounded(rows, to_merge(rows), max(_MERGED, sum(rows) // _MOST_TABLES))"

GROUP = Group(
    "bounded parts",
    ("tests/runtime/state/test_positions.py",),
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
    ),
)
