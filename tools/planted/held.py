"""Slips in what workers hold between two tasks, and in what goes to each task."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

HELD = "runtime/engines/spark/tasks/held.py"
ORDERED = "runtime/engines/spark/eval/ordered_shards.py"
GROUP = Group(
    "held",
    ("tests/runtime/test_worker_memory.py", "tests/properties/test_choices.py"),
    (
        bug(
            "an operator is held whatever files say it",
            HELD,
            "(held.part, held.reached) == (part, old)",
            "held.reached == old",
            required=True,
        ),
        bug(
            "an operator is held however far it has come",
            HELD,
            "(held.part, held.reached) == (part, old)",
            "held.part == part",
        ),
        bug("what other tasks have kept is out of date", HELD, "not in (old, new)", "!= old"),
        bug("nothing is out of date", HELD, "held.reached not in (old, new)", "False"),
        bug(
            "what is taken is held still",
            HELD,
            "held = self._held.pop((query, shard, shards), None)",
            "held = self._held.get((query, shard, shards))",
        ),
        bug(
            "an operator is held for any shard",
            HELD,
            "held = self._held.pop((query, shard, shards), None)",
            "held = next((self._held.pop(key) for key in [*self._held] if key[0] == query), None)",
        ),
        bug(
            "an operator is held for any number of shards",
            HELD,
            "held = self._held.pop((query, shard, shards), None)",
            "held = next((self._held.pop(key) for key in [*self._held] if key[:2] == (query, shard)), None)",
        ),
        bug(
            "an operator is held for any query",
            HELD,
            "held = self._held.pop((query, shard, shards), None)",
            "held = next((self._held.pop(key) for key in [*self._held] if key[1:] == (shard, shards)), None)",
        ),
        bug("operators are not held", HELD, "        self._held[query, shard, shards] = held\n", "        pass\n"),
        bug(
            "operators are held without bound",
            HELD,
            "while sum(one.bytes for one in self._held.values()) > self.most_bytes:",
            "while False:",
        ),
        bug(
            "tables are held without bound",
            HELD,
            "<= self.most_bytes:\n            self._held[path]",
            "<= 1 << 60:\n            self._held[path]",
        ),
        bug(
            "any static table is the one that is held",
            HELD,
            "        if path in self._held:\n            return self._held[path]",
            "        if self._held:\n            return next(iter(self._held.values()))",
        ),
        bug(
            "every start of a program is one run",
            "runtime/engines/spark/executor.py",
            "self.keys, shards, self.run)",
            "self.keys, shards, self.root)",
        ),
        bug("runs are held without bound", HELD, "while len(_RUNS) > MOST_RUNS:", "while False:"),
        bug(
            "a run goes on with what another holds",
            HELD,
            "_RUNS.pop(run, None) or HeldRun(LocalStore(root))",
            "next(reversed(_RUNS.values()), None) or HeldRun(LocalStore(root))",
        ),
        bug(
            "every task has the state of the first share",
            ORDERED,
            "[of_job[shard] for of_job in parts]",
            "[of_job[0] for of_job in parts]",
            required=True,
        ),
        bug(
            "what lies in the same shares is read whole",
            ORDERED,
            "found = None if state is None else plain_parts_of(job.query.name, state, shards)",
            "found = None",
        ),
        bug(
            "the operator before an increment is held",
            ORDERED,
            "HeldOperator(kept.part, job.new, kept_on)",
            "HeldOperator(kept.part, job.new, operator)",
        ),
        bug(
            "an operator is held with the files before its increment",
            ORDERED,
            "HeldOperator(kept.part, job.new, kept_on)",
            "HeldOperator(before or (), job.new, kept_on)",
        ),
        bug(
            "an operator is held a batch behind",
            ORDERED,
            "HeldOperator(kept.part, job.new, kept_on)",
            "HeldOperator(kept.part, job.old, kept_on)",
        ),
        bug(
            "what is read again lacks the last changes",
            ORDERED,
            "tables = read_part(held.store, query.name, part, ",
            "tables = read_part(held.store, query.name, part[:1], ",
        ),
        bug(
            "what is read again has come as far as the increment goes",
            ORDERED,
            "return load_operator(ordered, tables, job.old[ordered.time])",
            "return load_operator(ordered, tables, job.new[ordered.time])",
        ),
        bug(
            "of a state in other shares each task reads the first one",
            ORDERED,
            "Share(ordered.sharded_by, shard, shards)",
            "Share(ordered.sharded_by, 0, shards)",
        ),
        bug(
            "what workers do for the first time is a measure",
            "runtime/engines/spark/executor.py",
            "        if not new:\n            self.tuner",
            "        if True:\n            self.tuner",
        ),
        bug(
            "tasks do what those of another job did",
            HELD,
            "    shared = _SHARED.pop(packed, None)\n",
            "    shared = next(iter(_SHARED.values()), None)\n",
        ),
        bug("what tasks share is read by each", HELD, "    _SHARED[packed] = shared\n", ""),
        bug("what jobs shared is held without bound", HELD, "while len(_SHARED) > MOST_JOBS:", "while False:"),
        bug(
            "every task does the first work",
            "runtime/engines/spark/tasks/running.py",
            "shared[number](own)",
            "shared[0](own)",
        ),
        bug(
            "all that is loaded is looked at again",
            "runtime/engines/spark/tasks/still.py",
            "        gc.freeze()",
            "        pass",
        ),
        bug(
            "what each task has made is never let go",
            "runtime/engines/spark/tasks/still.py",
            "if number > 1 and not number & (number - 1):",
            "if number > 1:",
        ),
        bug(
            "the file of a broadcast stays",
            "runtime/engines/spark/tasks/jobs_of_texts.py",
            "            broadcast.destroy()\n",
            "            broadcast.unpersist()\n",
        ),
        bug(
            "what is large goes with the function",
            "runtime/engines/spark/tasks/jobs_of_texts.py",
            "    if 2 * len(shared) <= _known(context).most_bytes:",
            "    if True:",
        ),
        bug(
            "what is small is a broadcast",
            "runtime/engines/spark/tasks/jobs_of_texts.py",
            "    if 2 * len(shared) <= _known(context).most_bytes:",
            "    if False:",
        ),
    ),
)
