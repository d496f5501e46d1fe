"""Slips in what a checkpoint knows of Spark's sources."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

KNOWN = "runtime/spark/known_sources.py"

GROUP = Group(
    "known sources",
    ("tests/runtime/spark/test_known_sources.py",),
    (
        bug(
            "sources in the order of the queries",
            KNOWN,
            "KnownSources(tuple(sorted(streams)), clock)\n            #",
            "KnownSources(tuple(streams), clock)\n            #",
        ),
        bug(
            "a run without a record has its sources by name",
            KNOWN,
            "return KnownSources(tuple(streams), len(",
            "return KnownSources(tuple(sorted(streams)), len(",
        ),
        bug("a clock counts as a source", KNOWN, "> len(streams) + 1)", "> len(streams))"),
        bug("a clock is never seen", KNOWN, "> len(streams) + 1)", "> len(streams) + 2)"),
        bug(
            "a clock comes to sources that are no files",
            KNOWN,
            "files and (begun.clock",
            "(begun.clock",
        ),
        bug(
            "a clock stays that is not wanted",
            KNOWN,
            "(begun.clock != clock or",
            "(clock and not begun.clock or",
        ),
        bug("a clock that is missing is no matter", KNOWN, "    if clock and not begun.clock:\n", "    if False:\n"),
        bug(
            "a clock that is not wanted is refused",
            KNOWN,
            "    if clock and not begun.clock:\n",
            "    if clock != begun.clock:\n",
        ),
        bug(
            "the record of a run that planned nothing counts",
            KNOWN,
            "            store.delete(FILE)  # of a run that ended before Spark planned a batch\n",
            "",
        ),
        bug("a record is not looked for", KNOWN, "if not store.exists(FILE):", "if True:"),
        bug(
            "the sources of another program",
            KNOWN,
            "    if sorted(found.streams) != sorted(streams):\n",
            "    if False:\n",
        ),
        bug(
            "the order of a record counts",
            KNOWN,
            "    if sorted(found.streams) != sorted(streams):\n",
            "    if found.streams != tuple(streams):\n",
        ),
        bug(
            "what was replaced stays",
            KNOWN,
            "        store.delete_all(_REPLACED)  # of a run that ended while it did\n",
            "",
        ),
    ),
)
