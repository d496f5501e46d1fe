"""Slips in what operators keep of partitions: when these are looked at, and what of them is written."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

CELLS = "runtime/kernels/cells.py"
POOL = "runtime/kernels/pool.py"
NUMBERS = "runtime/kernels/partition_numbers.py"
PARTITIONS = "runtime/ordered/partitions.py"
STATES = "runtime/ordered/derive/partition_states.py"
HELD = "runtime/ordered/partition_store.py"
TABLES = "runtime/ordered/derive/tables.py"
DESCRIBED = "runtime/ordered/state_tables.py"
STATE = "runtime/ordered/state.py"

GROUP = Group(
    "kept",
    (
        "tests/runtime/kernels/test_pool.py",
        "tests/runtime/kernels/test_partition_numbers.py",
        "tests/runtime/test_partition_states.py",
        "tests/runtime/test_partitions.py",
        "tests/runtime/test_state_deltas.py",
        "tests/runtime/test_state_slices.py",
        "tests/runtime/faults/test_poison.py::test_poisoned_state_of_a_pattern",
    ),
    (
        bug(
            "what becomes certain without an event is seen a tick late",
            CELLS,
            "instant = ts[place] + starts[offset]\n                    if until < instant < first:",
            "instant = ts[place] + starts[offset] + 1\n                    if until < instant < first:",
        ),
        bug(
            "what may go stays as long as nothing new comes",
            CELLS,
            "                first = min(first, gone)\n",
            "",
        ),
        bug(
            "a partition that moves takes its old place",
            POOL,
            "if total > room[partition]:",
            "if total > 2 * room[partition] + 1:",
        ),
        bug(
            "the pool is turned round where it is packed",
            POOL,
            "self._pool.take(places, axis=1)",
            "self._pool[:, places]",
        ),
        bug(
            "partitions that have gone keep their numbers",
            HELD,
            "if len(self.partitions) > LOOSE + 2 * max(self.held, read)",
            "if len(self.partitions) > LOOSE + (1 << 40)",
        ),
        bug(
            "partitions lose the numbers that the next rows have",
            HELD,
            "LOOSE + 2 * max(self.held, read)",
            "LOOSE + 2 * self.held",
        ),
        bug("due partitions are left out", HELD, "np.concatenate([due, *parts])", "np.concatenate([due[:0], *parts])"),
        bug(
            "the last word alone on what is open counts",
            DESCRIBED,
            "            later.append(part.filter(replacing).select(keys))\n",
            "",
        ),
        bug(
            "what is over is not said to be",
            TABLES,
            "was_open = before.open & ~after.open",
            "was_open = before.open & after.open",
        ),
        bug(
            "only what was over before is written",
            TABLES,
            "_chosen(_over(after.partitions, after.kept, after.number), new)",
            "_chosen(_over(after.partitions, after.kept, after.number), ~new)",
        ),
        bug(
            "situations that end before they begin are taken",
            TABLES,
            "(known & _INSTANTS)",
            "known",
        ),
        bug(
            "values of one run may be there twice",
            DESCRIBED,
            "possible &= pl.struct(self.unique).is_unique()",
            "pass",
        ),
        bug("the first values of a run count", "runtime/eval/aggregates/compiled.py", 'keep="last"', 'keep="first"'),
        bug("one different value of a run is enough", TABLES, '"append" if different else "id"', '"id"'),
        bug("rows that go leave the pool as full", POOL, "- int(self._count[partitions].sum())", ""),
        bug("a partition has room where others have theirs", POOL, "used += room[partition]", "used += total"),
        bug(
            "a partition keeps its room where the pool is packed",
            POOL,
            "self._room, self._used = first, self._count.copy(), len(places)",
            "self._used = first, len(places)",
        ),
        bug(
            "a larger pool begins empty",
            POOL,
            "            larger[:, : self._used] = self._pool[:, : self._used]\n",
            "            larger[:] = 0\n",
        ),
        bug(
            "keys that share a place share a number",
            NUMBERS,
            "while number != _FREE and known[number] != key:",
            "while False:",
        ),
        bug("a larger table forgets who was there", NUMBERS, "        _enter(known, table)\n", ""),
        bug(
            "keys seen before get new numbers in another range",
            NUMBERS,
            "            dense[places] = np.arange(len(known), dtype=np.int32)\n",
            "",
        ),
        bug(
            "a range is that of the coming keys alone", NUMBERS, "for part in (known, coming)", "for part in (coming,)"
        ),
        bug(
            "a range begins before the least key that there is",
            NUMBERS,
            "max(low - more, _LEAST)",
            "low - more",
        ),
        bug(
            "a larger table is taken before there is room for its keys",
            NUMBERS,
            "dense, offsets = np.full(room, _FREE, dtype=np.int32), np.empty(room, dtype=np.int32)\n",
            "dense = self._dense = np.full(room, _FREE, dtype=np.int32)\n"
            "            self._low, offsets = low, np.empty(room, dtype=np.int32)\n",
        ),
        bug("a key is its place in the table", NUMBERS, ".astype(np.int64) + self._low", ".astype(np.int64)"),
        bug(
            "numbers given in vain stay with their keys",
            PARTITIONS,
            "            self._numbers = None\n            raise\n",
            "            raise\n",
        ),
        bug(
            "numbers that are free are left",
            PARTITIONS,
            "itertools.chain(self._free.tolist(), itertools.count(many))",
            "itertools.count(many)",
        ),
        bug("a number is free twice", PARTITIONS, "        gone = gone[~self._is_free(len(self))[gone]]\n", ""),
        bug(
            "a number that was given is given again",
            PARTITIONS,
            "self._free[len(known) - before :]",
            "self._free[len(known) - before - 1 :]",
        ),
        bug(
            "keys keep the numbers that are free",
            PARTITIONS,
            "                del known[key]\n",
            "                pass\n",
        ),
        bug(
            "free numbers have keys where these are read again",
            PARTITIONS,
            "numbers = np.flatnonzero(~self._is_free(len(self)))",
            "numbers = np.arange(len(self))",
        ),
        bug("keys are kept for ever", PARTITIONS, "known.height > 2 * many", "known.height > many << 40"),
        bug(
            "no number is free",
            HELD,
            "        elif self._left and self.partitions.gives_again:\n",
            "        elif False:\n",
        ),
        bug(
            "a key that is entered again takes the place of another",
            NUMBERS,
            "while table[place] != _FREE:",
            "while False:",
        ),
        bug(
            "partitions with open runs lose their numbers",
            STATES,
            "return extract.open | (sizes > 0)",
            "return sizes > 0",
        ),
        bug(
            "partitions with past situations lose their numbers",
            STATES,
            "return extract.open | (sizes > 0)",
            "return extract.open",
        ),
        bug("a partition is due a tick late", HELD, "self._look[:every] <= until", "self._look[:every] < until"),
        bug(
            "what waits longer is looked at first",
            HELD,
            "self._soonest = min(self._soonest, soonest)",
            "self._soonest = soonest",
        ),
        bug(
            "once nothing is due, nothing ever is",
            HELD,
            "self._soonest = int(self._look.min())",
            "self._soonest = NO_LOOK",
        ),
        bug(
            "nothing waits where nothing has waited",
            HELD,
            "if self._look is None and soonest < NO_LOOK:",
            "if False:",
        ),
        bug("of many partitions none is due", HELD, "marked[due] = True", "marked[due] = False"),
        bug(
            "of many partitions those of one source are looked at",
            HELD,
            "for part in parts:\n",
            "for part in parts[:1]:\n",
        ),
        bug("threads write to the same places", HELD, "class _Places(threading.local):", "class _Places:"),
        bug("rows keep the numbers of their partitions", HELD, "return self._place[part]", "return part"),
        bug(
            "numbered anew, no partition is due",
            HELD,
            "partitions=np.arange(len(partitions))",
            "partitions=np.arange(len(partitions)), look=np.full(len(partitions), NO_LOOK)",
        ),
        bug(
            "what was settled before partitions are numbered anew is settled again",
            HELD,
            "            fresh.last, fresh.version = self.last, self.version\n",
            "",
        ),
        bug("partitions are held for ever", HELD, " - np.count_nonzero(self._is_held[extract.partitions])", ""),
        bug("runs are open for ever", STATES, " - np.count_nonzero(runs.start[at] != NEVER)", ""),
        bug("two increments go on from the same", HELD, "if self.version != before.version:", "if False:"),
        bug(
            "what is settled is settled again",
            HELD,
            "        if self.last is after:\n            return\n",
            "",
        ),
        bug(
            "a large state is written whole", STATE, "slices = slices and _has_slices(operator, live)", "slices = False"
        ),
        bug("many panes are written whole", STATE, '("partition", "row", "queue")', '("partition", "queue")'),
        bug(
            "a slice has the panes of all partitions",
            "runtime/ordered/windows/hopping.py",
            "return self._of(np.arange(span.first, span.end))",
            "return self.tables()",
        ),
        bug(
            "deltas go before all of a state is written again",
            STATE,
            "if renewal is not None and renewal.left.first >= renewal.left.end:",
            "if renewal is not None:",
        ),
        bug(
            "a state is written on by numbers that partitions had",
            STATE,
            "if renewal is not None and renewal.left.numbering == every.numbering:",
            "if renewal is not None:",
        ),
        bug(
            "deltas that go are merged with those that stay",
            STATE,
            "min(to_merge(rows), len(rows) - old)",
            "to_merge(rows)",
        ),
        bug("a border of integers is written in too few bytes", STATE, "if bits < most)", "if bits <= most)"),
        bug("integers are written in many bytes", STATE, "    if table.num_rows <= SMALL:\n", "    if True:\n"),
        bug(
            "integers that were written in few bytes are read as such",
            STATE,
            "return rows.cast(dict.fromkeys(narrow, pl.Int64)) if narrow else rows",
            "return rows",
        ),
        bug("large deltas are merged", STATE, "max(MERGED, live // _MOST_DELTAS))", "1 << 62)"),
        bug(
            "numbered anew, partitions have the numbering that they had",
            HELD,
            "fresh.numbering = self.numbering + 1",
            "fresh.numbering = self.numbering",
        ),
    ),
)
