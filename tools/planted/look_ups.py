"""Slips in looking rows up by the keys of a leaf that has few."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

EVALUATION = "runtime/engines/embedded/steps/evaluation.py"
SHARDING = "runtime/plan/sharding.py"
FAILURES = "algebra/typed/failures.py"
INDEX = "runtime/eval/joins/key_index.py"

GROUP = Group(
    "look-ups",
    ("tests/runtime/test_look_ups.py",),
    (
        bug(
            "a leaf that a result may be without is required",
            SHARDING,
            "read, made = below[0] | below[1], below[0]",
            "read = made = below[0] | below[1]",
        ),
        bug(
            "all inputs of a union are required",
            SHARDING,
            "frozenset.intersection(*below)",
            "frozenset[int]().union(*below)",
        ),
        bug("rows without a value do not matter", SHARDING, "failures = (*failures, read)", "pass"),
        bug("a sum is never out of range", FAILURES, "return out_of_range or any(", "return any("),
        bug(
            "of rows with one key one is found",
            INDEX,
            'counts = np.searchsorted(self.hashes, wanted, side="right") - first',
            "counts = (self.hashes[np.minimum(first, len(self.hashes) - 1)] == wanted).astype(np.int64)",
        ),
        bug(
            "a key that is not there is the next one",
            INDEX,
            "hit = counts > 0",
            "counts = np.maximum(counts, 1)\n        hit = first < len(self.hashes)",
        ),
        bug(
            "rows at places have a NaN",
            INDEX,
            "if known.dtype == np.float64 and np.isnan(found[name]).any():",
            "if False:",
        ),
        bug("a column with NULL is one of numbers", INDEX, " and not one.null_count())", ")"),
        bug(
            "an index takes no memory",
            "runtime/engines/embedded/steps/segment_cache.py",
            "            self._count(path, known.bytes)\n",
            "",
        ),
        bug(
            "all rows of the others are read",
            EVALUATION,
            "if sizes[first] * SHARE > job.rows or not all(map(self.segments.in_memory, job.inputs)):",
            "if True:",
        ),
        bug(
            "each query looks its rows up by itself",
            EVALUATION,
            "alike.setdefault((first, (job.query.shard_key, *_reading(demand, job))), [])",
            "alike.setdefault((first, k), [])",
        ),
        bug(
            "queries with one key read alike",
            EVALUATION,
            "alike.setdefault((first, (job.query.shard_key, *_reading(demand, job))), [])",
            "alike.setdefault((first, job.query.shard_key), [])",
        ),
        bug(
            "the rows of all segments together may be many",
            "runtime/engines/embedded/steps/segment_reader.py",
            "            if found > small_rows.MOST:\n",
            "            if rows.height > small_rows.MOST:\n",
        ),
        bug(
            "rows that indexes leave no room for are not held",
            "runtime/engines/embedded/steps/segment_cache.py",
            "        self._make_room(size)\n",
            "",
        ),
        bug(
            "an index copies the numbers of its segment",
            "runtime/engines/embedded/steps/segment_cache.py",
            "rows = self.rows[path] = rows.rechunk()",
            "rows = rows.rechunk()",
        ),
    ),
)
