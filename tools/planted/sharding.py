"""Slips in how keys to shard by are found."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GROUP = Group(
    "sharding",
    ("tests/runtime/test_sharding.py", "tests/runtime/test_shards.py", "tests/runtime/spark/test_situations.py"),
    (
        bug(
            "a shard whose slices interleave has no new rows",
            "runtime/engines/spark/eval/ordered_shards.py",
            'lines = [json.dumps({"query": job.job.query.name, "interleaved": True})]',
            "lines = []",
        ),
        bug(
            "shards by the padded side of an outer join",
            "runtime/plan/sharding.py",
            'if kind == "inner":\n                    keys[right_key]',
            'if kind != "semi":\n                    keys[right_key]',
        ),
        bug(
            "shards of a grouping by what it does not group by",
            "runtime/plan/sharding.py",
            "return _kept(_keys(input_, leaves, first), keys)",
            "return _keys(input_, leaves, first) or {}",
        ),
        bug(
            "every shard has the static side of a union",
            "runtime/plan/sharding.py",
            "if keys is None:  # its rows would stand in every shard\n            return {}",
            "if keys is None:\n            continue",
        ),
        bug(
            "a part is common whatever its leaves are shared out by",
            "runtime/plan/shared_parts.py",
            "self.relevant[read], self.keys and self.keys[read]",
            "self.relevant[read]",
        ),
        bug(
            "a segment is read for the first leaf that wants it only",
            "runtime/engines/spark/eval/shards.py",
            "for use in uses:\n",
            "for use in uses[:1]:\n",
        ),
    ),
)
