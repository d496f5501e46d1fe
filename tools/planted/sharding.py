"""Slips in how keys to shard by are found."""

from __future__ import annotations

from tools.planted.bugs import Bug, Group, Patch, bug

LAYOUT = "runtime/state/shard_layout.py"
GROUP = Group(
    "sharding",
    (
        "tests/runtime/test_sharding.py",
        "tests/runtime/state/test_shard_layout.py",
        "tests/runtime/test_shards.py",
        "tests/runtime/spark/test_driver.py",
        "tests/runtime/spark/test_situations.py",
    ),
    (
        bug(
            "a shard whose slices interleave has no new rows",
            "runtime/engines/spark/eval/ordered_shards.py",
            "            yield _interleaved(job)\n",
            "            pass\n",
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
        bug(
            "a task reads the row groups of one shard of the file",
            LAYOUT,
            "step = gcd(len(self.rows), wanted.shards)",
            "step = len(self.rows)",
        ),
        bug(
            "rows lie by whatever hash",
            LAYOUT,
            "if (self.key, self.hash) != (wanted.key, wanted.hash):",
            "if self.key != wanted.key:",
        ),
        bug(
            "rows lie by whatever key",
            LAYOUT,
            "if (self.key, self.hash) != (wanted.key, wanted.hash):",
            "if self.hash != wanted.hash:",
        ),
        bug(
            "shards without rows have row groups",
            LAYOUT,
            "[shard for shard, rows in enumerate(self.rows) if rows]",
            "list(range(len(self.rows)))",
        ),
        bug(
            "a file's layout is believed",
            LAYOUT,
            "if (metadata.num_row_groups, metadata.num_rows) != (len(layout.filled), sum(layout.rows)):",
            "if False:",
        ),
        bug(
            "a file's layout is believed of each row group",
            LAYOUT,
            "if any(file.metadata.row_group(group).num_rows != self.rows[filled[group]] for group in groups):",
            "if False:",
        ),
        bug(
            "rows of a shard lie in another order",
            "runtime/engines/spark/eval/lying.py",
            'order = np.argsort(shard.astype(np.uint8), kind="stable")',
            "order = np.lexsort((-np.arange(rows.height), shard))",
        ),
        bug(
            "few rows lie in no shards at all",
            "runtime/engines/spark/eval/lying.py",
            "shards = max(fewer for fewer in range(1, shards + 1) if shards % fewer == 0 and",
            "shards = max(fewer for fewer in {1, shards} if",
        ),
        bug(
            "few rows lie in shards that do not divide those of tasks",
            "runtime/engines/spark/eval/lying.py",
            "if shards % fewer == 0 and _are_enough(rows.height, fewer))",
            "if _are_enough(rows.height, fewer))",
        ),
        bug(
            "a task keeps what it reads of other shards",
            "runtime/engines/spark/eval/shards.py",
            "own = rows.filter(shard_of(share.key, shards) == shard)",
            "own = rows",
        ),
        bug(
            "the last segments that are looked at together are not",
            "runtime/engines/spark/eval/shards.py",
            "    if waiting:\n        yield",
            "    if rows > TOGETHER:\n        yield",
        ),
        bug(
            "the driver holds rows that workers read",
            "runtime/engines/spark/executor.py",
            "self.local.leave_to_others(small, large)",
            "self.local.leave_to_others(jobs, [])",
        ),
        Bug(
            "the driver holds what it writes for workers until it is written",
            (
                Patch(
                    "runtime/engines/spark/executor.py",
                    "        self.local.leave_to_others(small, large)",
                    "        pass",
                ),
                Patch(
                    "runtime/engines/spark/executor.py",
                    "        jobs, ways = [job for job, _ in placed]",
                    "        self.local.leave_to_others(small, large)\n        jobs, ways = [job for job, _ in placed]",
                ),
            ),
        ),
        bug(
            "the driver holds again what it writes of buffers that workers read",
            "runtime/engines/embedded/steps/pending_segments.py",
            "if buffer.id not in self.read_elsewhere:",
            "if True:",
        ),
    ),
)
