"""Slips in how shards that take long are evaluated in portions."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

DIVISIONS = "runtime/engines/spark/eval/divisions.py"
TASKS = "runtime/engines/spark/eval/portions.py"
SHARDS = "runtime/engines/spark/eval/shards.py"
GROUP = Group(
    "portions",
    ("tests/runtime/test_portions.py",),
    (
        bug(
            "portions of the side that pads or lacks rows",
            DIVISIONS,
            'case Product() | Join(_, _, _, "inner"):',
            "case Product() | Join():",
            required=True,
        ),
        bug(
            "groups are divided row by row",
            DIVISIONS,
            "return _Divisible(self.kept(names).terms, by_row=False)",
            "return _Divisible(self.kept(names).terms, self.by_row)",
            required=True,
        ),
        bug(
            "groups are divided by what they do not group by",
            DIVISIONS,
            "return _Divisible(self.kept(names).terms, by_row=False)",
            "return _Divisible(self.terms, by_row=False)",
            required=True,
        ),
        bug("a shard is divided by its key", DIVISIONS, "if attributes_of(term) != {key}]", "if term]"),
        bug(
            "a value divides sooner than an instant",
            DIVISIONS,
            "(not attributes_of(term) <= instants, repr(term))",
            "(False, repr(term))",
        ),
        bug(
            "doubles divide",
            DIVISIONS,
            "for a in stream.schema.attributes if a.type != DOUBLE}",
            "for a in stream.schema.attributes}",
        ),
        bug("terms that are doubles divide", DIVISIONS, " or term_type(term, schema) == DOUBLE:", ":"),
        bug(
            "shards are divided whatever was recorded",
            TASKS,
            "for choice in tuner.take(found, steps) if choice.way.tasks > 0}",
            "for choice in found if choice.way.tasks > 0}",
        ),
        bug(
            "a shard that was recorded in no portions is evaluated nowhere",
            TASKS,
            " for choice in tuner.take(found, steps) if choice.way.tasks > 0}",
            " for choice in tuner.take(found, steps)}",
            required=True,
        ),
        bug(
            "what cannot be divided is told as if it were",
            TASKS,
            "        if query in divisible and (query, shard) in wanted\n",
            "        if (query, shard) in wanted\n",
        ),
        bug("portions overlap", TASKS, "rows.slice(low, high - low)", "rows.slice(low, high - low + 1)"),
        bug(
            "a shard is evaluated beside its portions",
            SHARDS,
            "if here := [job for job in jobs if job.query.name not in elsewhere]:",
            "if here := list(jobs):",
            required=True,
        ),
        bug(
            "every portion has what has no value",
            TASKS,
            "return rows if portion == 0 else rows.clear()",
            "return rows",
        ),
        bug(
            "the smallest leaf is divided",
            TASKS,
            "return max(divisions(job.query), key=rows, default=None)",
            "return min(divisions(job.query), key=rows, default=None)",
        ),
        bug(
            "a shard took what its longest portion took",
            TASKS,
            "self.evaluated + portion.evaluated",
            "max(self.evaluated, portion.evaluated)",
        ),
        bug(
            "what some portions took is what all took",
            TASKS,
            " and all(len(some) == some[0][0] for some in by_shard.values()):",
            ":",
        ),
        bug(
            "what a worker does for the first time says how long it takes",
            SHARDS,
            "if query in target.held.evaluated:",
            "if query:",
        ),
        bug(
            "a query is divided whatever the others take",
            TASKS,
            "return [sum(of[shard].seconds for of in known.values()) for shard in range(shards)]",
            "return [max((of[shard].seconds for of in known.values()), default=0.0) for shard in range(shards)]",
        ),
    ),
)
