"""Slips in what a checkpoint knows of Spark's sources."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

KNOWN = "runtime/engines/spark/input/known_sources.py"

GROUP = Group(
    "known sources",
    ("tests/runtime/spark/test_known_sources.py",),
    (
        bug(
            "sources in the order of the queries",
            KNOWN,
            "KnownSources(tuple(sorted(streams)))",
            "KnownSources(tuple(streams))",
        ),
        bug(
            "any other sources have a part begun anew",
            KNOWN,
            "        if begun is not None and begun.streams:\n",
            "        if False:\n",
        ),
        bug(
            "a part without streaming DataFrames stays",
            KNOWN,
            "        if begun is not None:\n            _discard(store)\n",
            "",
        ),
        bug(
            "a part is begun anew at each start",
            KNOWN,
            "        if begun == known:\n            return\n",
            "",
        ),
        bug(
            "the record of a run that planned nothing counts",
            KNOWN,
            "        store.delete(FILE)  # of a run that ended before Spark planned a batch\n",
            "",
        ),
        bug("a record may lack", KNOWN, "    if not there and not known.streams:\n", "    if not there:\n"),
        bug(
            "a record that says nothing may not lack",
            KNOWN,
            "    if not there and not known.streams:\n",
            "    if False:\n",
        ),
        bug(
            "what was replaced stays",
            KNOWN,
            "        store.delete_all(_REPLACED)  # of a run that ended while it did\n",
            "",
        ),
        bug(
            "the clock goes on only with rows",
            "runtime/engines/spark/run.py",
            " or (clock and self.by_clock)\n",
            "\n",
        ),
        bug(
            "a start does not look at the clock",
            "runtime/engines/spark/run.py",
            "        due = self.by_clock or not self.setup.streams\n",
            "        due = not self.setup.streams\n",
        ),
    ),
)
