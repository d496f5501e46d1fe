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
            "if known.dtype == np.float64 and np.isnan(found[name]).any():",
            "if False:",
        ),
        bug("a column with NULL is one of numbers", INDEX, " and not one.null_count())", ")"),
        bug(
            "an index takes no memory",
            CACHE,
            "        self._count(path, made.bytes)\n",
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
            "if found > small_rows.MOST:",
            "if (rows.height if numbers is None else len(numbers)) > small_rows.MOST:",
        ),
        bug(
            "rows that indexes leave no room for are not held",
            CACHE,
            "        self._make_room(size)\n",
            "",
        ),
        bug(
            "an index copies the numbers of its segment",
            CACHE,
            "rows = self.rows[path] = rows.rechunk()",
            "rows = rows.rechunk()",
        ),
        bug("a segment has an index at its second look", CACHE, "looks <= LOOKS", "looks < LOOKS"),
        bug(
            "looks at a segment that went count for the next one",
            CACHE,
            "            self._looks.pop(path, None)\n",
            "",
        ),
        bug(
            "indexes have no instants",
            EVALUATION,
            "self.segments.indexed(segments, _key(query, k), times.get(k))",
            "self.segments.indexed(segments, _key(query, k), None)",
        ),
        bug(
            "queries that look other rows up share them",
            EVALUATION,
            "return job.query.shard_key, look_ups(job.query.tree, first), *_reading(demand, job)",
            "return job.query.shard_key, *_reading(demand, job)",
        ),
        bug(
            "a row without an instant wants rows",
            EVALUATION,
            "rows = rows.drop_nulls({bound.column for bound in (*look_up.lower, *look_up.upper)})",
            "pass",
        ),
        bug(
            "lower bounds are upper ones",
            LOOK_UPS,
            "(lower if is_lower else upper).setdefault",
            "(upper if is_lower else lower).setdefault",
        ),
        bug(
            "a constant on the other side counts the wrong way",
            LOOK_UPS,
            "Bound(column, by - other_by + strict)",
            "Bound(column, by + other_by + strict)",
        ),
        bug("a strict bound is a looser one", LOOK_UPS, "else -int(one.strict)", "else int(one.strict)"),
        bug(
            "one row decides in every join",
            LOOK_UPS,
            'if on_left and node.kind in ("semi", "anti") else',
            "if on_left else",
        ),
        bug(
            "the right side of a semi-join is decided",
            LOOK_UPS,
            'if on_left and node.kind in ("semi", "anti") else',
            'if node.kind in ("semi", "anti") else',
        ),
        bug(
            "a condition that can fail limits look-ups",
            LOOK_UPS,
            "if isinstance(node, Join) and not has_fallible_term(node):",
            "if isinstance(node, Join):",
        ),
        bug(
            "leaves of a right side are counted from the left one",
            LOOK_UPS,
            "return _origin(right, name, leaf - len(occurrences(left)))",
            "return _origin(right, name, leaf)",
        ),
        bug(
            "an attribute that is made is one of the stream",
            LOOK_UPS,
            "return None if name == made else _origin(input_, name, leaf)",
            "return _origin(input_, name, leaf)",
        ),
        bug(
            "rows of a key are in no order",
            INDEX,
            "if (places[1:] < places[:-1]).any():",
            "if False:",
        ),
        bug(
            "the last instant is out of range",
            INDEX,
            'np.searchsorted(self.places, last, side="right")',
            "np.searchsorted(self.places, last)",
        ),
        bug(
            "an instant before all others is the first one",
            INDEX,
            "np.maximum(wanted.high[there], least - 1)",
            "np.maximum(wanted.high[there], least)",
        ),
        bug(
            "an instant after all others is the last one",
            INDEX,
            "np.minimum(np.maximum(wanted.low[there], least), most + 1)",
            "np.minimum(np.maximum(wanted.low[there], least), most)",
        ),
        bug(
            "rows that two rows want are found twice",
            INDEX,
            "        first[1:] = np.maximum(first[1:], reached[:-1])\n",
            "",
        ),
        bug(
            "a slice hides only the next one",
            INDEX,
            "reached = np.maximum.accumulate(end[order])",
            "reached = end[order]",
        ),
        bug(
            "bounds beyond 64 bits are at the other end",
            INDEX,
            "return np.clip(values, INT64_MIN - min(by, 0), INT64_MAX - max(by, 0)) + by",
            "return values + by",
        ),
        bug("places take more than 64 bits", INDEX, " or (keys + 1) * width >= _MOST:", ":"),
        bug("an instant may be missing", INDEX, " or instants.null_count() or", " or"),
        bug(
            "the first candidate is a partner",
            INDEXED_ROWS,
            "partners = np.flatnonzero(holds(lefts, rows))",
            "partners = np.arange(len(rows))",
        ),
        bug(
            "rows without a partner in the last round have none",
            INDEXED_ROWS,
            "np.concatenate([*found, index.rows_in(begin, end)])",
            "np.concatenate([index.rows[:0], *found])",
        ),
        bug(
            "a round leaves a candidate out",
            INDEXED_ROWS,
            "begin[left] += counts",
            "begin[left] += counts + 1",
        ),
        bug(
            "left rows that have a partner look for more",
            INDEXED_ROWS,
            "            self.undecided[decided] = False\n",
            "",
        ),
    ),
)
