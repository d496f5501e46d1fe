"""Slips in looking rows up by the keys and instants of a leaf that has few."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

EVALUATION = "runtime/engines/embedded/steps/evaluation.py"
SHARDING = "runtime/plan/sharding.py"
FAILURES = "algebra/typed/failures.py"
INDEX = "runtime/eval/joins/key_index.py"
CACHE = "runtime/engines/embedded/steps/segment_cache.py"
LOOK_UPS = "runtime/eval/joins/look_ups.py"
INDEXED_ROWS = "runtime/eval/joins/indexed_rows.py"

GROUP = Group(
    "look-ups",
    ("tests/runtime/test_look_ups.py", "tests/runtime/test_looked_up_joins.py"),
    (
        bug(
            "a leaf that a result may be without is required",
            SHARDING,
            "read, produced = below[0] | below[1], below[0]",
            "read = produced = below[0] | below[1]",
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
            "return begin, np.maximum(begin, end)",
            "return begin, np.where(end > begin, begin + 1, begin)",
        ),
        bug(
            "a key that is not there is the next one",
            INDEX,
            "there = np.flatnonzero(self.hashes[number] == wanted.hashes)",
            "there = np.arange(len(number))",
        ),
        bug(
            "rows at places have a NaN",
            INDEX,
            "if known.dtype == np.float64 and np.isnan(columns[name]).any():",
            "if False:",
        ),
        bug("a column with NULL is one of numbers", INDEX, " and not c.null_count())", ")"),
        bug(
            "an index takes no memory",
            CACHE,
            "        self._count(path, index.bytes)\n",
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
            "alike.setdefault((first, _looking_up(demand, job, first)), [])",
            "alike.setdefault((first, k), [])",
        ),
        bug(
            "queries with one key read alike",
            EVALUATION,
            "alike.setdefault((first, _looking_up(demand, job, first)), [])",
            "alike.setdefault((first, job.query.shard_key), [])",
        ),
        bug(
            "the rows of all segments together may be many",
            INDEXED_ROWS,
            "if not are_few(total):",
            "if not are_few(rows.height if numbers is None else len(numbers)):",
        ),
        bug(
            "rows that indexes leave no room for are not held",
            CACHE,
            "        self._make_room(size)\n",
            "",
        ),
        bug(
            "a segment counts after its rows are held",
            CACHE,
            "            self._count(path, size - self._sizes.get(path, 0))\n            self.rows[path] = rows\n",
            "            self.rows[path] = rows\n            self._count(path, size - self._sizes.get(path, 0))\n",
        ),
        bug(
            "what a segment counted too much stays",
            CACHE,
            "        self._bytes = sum(self._sizes.values())\n",
            "",
        ),
        bug(
            "an index copies the numbers of its segment",
            CACHE,
            "rows = self.rows[path] = rows.rechunk()",
            "rows = rows.rechunk()",
        ),
    ),
)
