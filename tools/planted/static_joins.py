"""Slips in where static tables are joined, and in which files and rows are set aside."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

LOWER = "runtime/plan/lower.py"
INTAKE = "runtime/ingest/ingest.py"
INPUTS = "runtime/ingest/inputs.py"

GROUP = Group(
    "static joins",
    ("tests/runtime/test_static_joins.py", "tests/runtime/test_live_state.py", "tests/runtime/test_bad_files.py"),
    (
        bug(
            "of a left join with a table only rows that match are stored",
            LOWER,
            'isinstance(node, Join) and node.kind == "inner" and not is_static(child)',
            'isinstance(node, Join) and node.kind in ("inner", "left") and not is_static(child)',
        ),
        bug(
            "ranges that overlap are periods of which one holds",
            "runtime/eval/static_matches.py",
            "all(self._matches(table, keys, one) > 1 for one in ranges)",
            "not ranges",
        ),
        bug(
            "ranges of other keys count",
            "runtime/eval/static_matches.py",
            'pl.col("group").first().over(keys)',
            "group=pl.lit(0)",
        ),
        bug(
            "a row is stored for each of its matches",
            LOWER,
            "            return multiplies(node) or _multiplied(",
            "            return _multiplied(",
        ),
        bug(
            "an event below an operator is stored for each of its matches",
            LOWER,
            "if reading.time is None or reading.conditions or not _multiplied(reading.input, layout.multiplies):",
            "if True:",
        ),
        bug(
            "events are shared out by a key that they have only when they are read",
            LOWER,
            "for outer, name in later[part].items() if name in stored_columns",
            "for outer, name in later[part].items()",
        ),
        bug(
            "partial aggregates are stored only of rows that the first reader keeps",
            LOWER,
            "_kept(part, scan, disjunction(self.kept[key]))",
            "_kept(part, scan, disjunction(self.kept[key][:1]))",
        ),
        bug(
            "a file that the file system refuses is set aside",
            INPUTS,
            "refused = isinstance(error, OSError) and error.errno is not None",
            "refused = False",
        ),
        bug(
            "a file that is set aside is not counted",
            INTAKE,
            "        self.done.unreadable += 1\n",
            "",
        ),
    ),
)
