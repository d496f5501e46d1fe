"""Slips in schedules: what a query that lags goes by, and who has the next turn."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GARBAGE = "runtime/batch/garbage.py"
RUNNER = "runtime/batch/loop.py"
INCREMENTS = "runtime/batch/increments.py"
RUN_STATE = "runtime/batch/state.py"
SCHEDULER = "runtime/batch/scheduler.py"

ALLOWED = "{q.name: q.propagate(progress.bounds(self.plan), progress.queries[q.name]) for q in self.plan.queries}"

GROUP = Group(
    "schedules",
    ("tests/runtime/test_schedule.py", "tests/properties/test_schedules.py"),
    (
        bug(
            "rows are kept by what inputs allow, not by the query's own progress",
            GARBAGE,
            "return self.plan.buffer_keep(buffer, progress.queries)",
            f"return self.plan.buffer_keep(buffer, {ALLOWED})",
            required=True,
        ),
        bug(
            "segments are kept by what inputs allow",
            GARBAGE,
            "return self.plan.buffer_keeps(buffer, progress.queries)",
            f"return self.plan.buffer_keeps(buffer, {ALLOWED})",
        ),
        bug(
            "rows are swept by what inputs allow",
            GARBAGE,
            "self.plan, buffers, stored, progress.queries, bounds",
            f"self.plan, buffers, stored, {ALLOWED}, bounds",
        ),
        bug(
            "who reads a result takes it to be as far as its query could be",
            "runtime/plan/progress.py",
            "b[key] = min(b.get(key, INF), self.queries[query.name][a])",
            "b[key] = min(b.get(key, INF), query.propagate(b, self.queries[query.name])[a])",
            required=True,
        ),
        bug(
            "a query without a turn is taken to have progressed",
            INCREMENTS,
            "        self.skipped = {**scheduler.skipped, **here}\n",
            "        self.skipped = {**scheduler.skipped, **here}\n"
            "        for level in self.plan.levels():\n"
            "            self.progress.queries |= reach(self.plan, level, self.progress)\n",
        ),
        bug(
            "a restart forgets the last turns",
            RUN_STATE,
            "            scheduler.from_json(last.extra.get(SKIPPED)),\n",
            "            {},\n",
            required=True,
        ),
        bug(
            "a batch that fails uses up a turn",
            RUNNER,
            "        return evaluation\n",
            "        self.state = replace(self.state, skipped=evaluation.skipped)\n        return evaluation\n",
        ),
        bug(
            "what has ended waits for its turn",
            SCHEDULER,
            "        if INF not in self.progress.inputs.values() and not any(map(self._reads_itself_only, levels)):\n",
            "        if self.progress:\n",
            required=True,
        ),
        bug(
            "an inner query goes on though nobody asks",
            SCHEDULER,
            "        if not query.facts.query.inner or stream in wanted or stream not in waiting:\n",
            "        if True:\n",
        ),
        bug(
            "an inner query waits for the last of those that read it",
            SCHEDULER,
            "        if not query.facts.query.inner or stream in wanted or stream not in waiting:\n",
            "        if not query.facts.query.inner or stream not in waiting:\n",
        ),
        bug("a turn comes a batch late", SCHEDULER, "self.seq >= next_", "self.seq > next_"),
        bug("who was put off is not more urgent", SCHEDULER, " + self._put_off(stream)\n", "\n"),
        bug(
            "a component's queries have schedules of their own",
            "runtime/plan/schedule.py",
            "by_stream |= dict.fromkeys(component.streams, value)",
            "by_stream |= given",
        ),
    ),
)
