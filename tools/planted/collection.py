"""Slips where workers write segments anew."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

TASKS = "runtime/engines/spark/collection.py"
GROUP = Group(
    "collection",
    ("tests/runtime/test_collection.py", "tests/properties/test_choices.py"),
    (
        bug(
            "every task of a rewrite writes all of it",
            TASKS,
            "segments=rewrite.segments[first:end]",
            "segments=rewrite.segments",
            required=True,
        ),
        bug(
            "the last segment of a rewrite is left out",
            TASKS,
            "pairwise([*cuts, len(rewrite.segments)])",
            "pairwise([*cuts, max(1, len(rewrite.segments) - 1)])",
            required=True,
        ),
        bug(
            "what is folded is written in parts",
            TASKS,
            "if place and rewrite.settled is None and gathered",
            "if place and gathered",
        ),
        bug("a part goes on without end", TASKS, "            gathered = 0\n", ""),
        bug("the shard of a fold is forgotten", TASKS, "rewrite.buffer, rows, shard)", "rewrite.buffer, rows, 0)"),
        bug(
            "new segments are those of the first rewrite",
            "runtime/engines/spark/executor.py",
            'done[numbers[summary["number"]]] +=',
            "done[numbers[0]] +=",
            required=True,
        ),
        bug(
            "segments that were written anew are of no shard of increments",
            "runtime/engines/spark/workers.py",
            "shard=shard, layout=layout).to_json()",
            "shard=shard).to_json()",
        ),
    ),
)
