"""Slips in how what an operator finds is shared out by instants."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

CUTS = "runtime/tuning/cuts.py"
OPERATOR = "runtime/ordered/match/operator.py"
PORTIONS = "runtime/engines/spark/eval/portions.py"
SHARES = "runtime/engines/spark/eval/ordered_shards.py"
GROUP = Group(
    "operator-portions",
    ("tests/runtime/test_operator_portions.py",),
    (
        bug(
            "a match at a cut is found twice",
            OPERATOR,
            "max(low, ticks(self.since))",
            "max(low, ticks(self.since) - 1)",
            required=True,
        ),
        bug(
            "a match right after a cut is found by nobody",
            OPERATOR,
            "max(low, ticks(self.since))",
            "max(low, ticks(self.since) + 1)",
            required=True,
        ),
        bug(
            "a situation triggers once, whatever portion looks for it",
            OPERATOR,
            "find_triggers(situations, matching.from_start, matching.from_end, first, high)",
            "find_triggers(situations, matching.from_start, matching.from_end, first + 1, high)",
        ),
        bug(
            "a portion has the situations alone that begin in it",
            OPERATOR,
            "closed.where(closed.ts > after - within)",
            "closed.where(closed.ts > after)",
            required=True,
        ),
        bug(
            "a portion lacks the situations that are as long ago as a match may last",
            OPERATOR,
            "closed.where(closed.ts > after - within)",
            "closed.where(closed.ts > after - within + 1)",
        ),
        bug("the operator after a portion finds less for ever", OPERATOR, "            since=None,\n", ""),
        bug(
            "a portion goes an instant too far",
            SHARES,
            "new = {**job.new, attribute: instant}",
            "new = {**job.new, attribute: instant + 1}",
            required=True,
        ),
        bug(
            "a portion ends before its last instant",
            SHARES,
            "new = {**job.new, attribute: instant}",
            "new = {**job.new, attribute: instant - 1}",
            required=True,
        ),
        bug(
            "a share's task finds what a portion finds",
            SHARES,
            "last = operator.finding_after(cuts[-1]) if cuts else None",
            "last = operator.finding_after(cuts[0]) if cuts else None",
            required=True,
        ),
        bug(
            "a portion finds what those before it find",
            SHARES,
            "cuts[portion - 1] if portion else job.old[ordered.time])",
            "job.old[ordered.time])",
            required=True,
        ),
        bug(
            "a portion reads what comes within its instants alone",
            SHARES,
            "step = _step(target, _up_to(job, ordered.time, cuts[portion]), finding, shard, shards)",
            "within = replace(job, old={**job.old, ordered.time: [job.old[ordered.time], *cuts][portion]})\n"
            "        step = _step(target, _up_to(within, ordered.time, cuts[portion]), finding, shard, shards)",
            required=True,
        ),
        bug(
            "a portion begins without what was kept",
            SHARES,
            "finding = operator.finding_after(cuts[portion - 1]",
            "finding = start_operator(ordered).finding_after(cuts[portion - 1]",
            required=True,
        ),
        bug(
            "a portion begins with the state of the first share",
            SHARES,
            "portions += [[number, shard, portion, parts[number][shard], some]",
            "portions += [[number, shard, portion, parts[number][0], some]",
            required=True,
        ),
        bug(
            "a portion keeps from others what it has begun with",
            SHARES,
            "        target.held.operators.keep(query.name, shard, shards, HeldOperator(before, job.old, operator))\n",
            "        pass\n",
        ),
        bug(
            "a portion that fails leaves what it has begun with",
            SHARES,
            "    finding = operator.finding_after(cuts[portion - 1]",
            "    if before is not None:\n"
            "        target.held.operators.keep(query.name, shard, shards, HeldOperator(before, job.old, operator))\n"
            "    finding = operator.finding_after(cuts[portion - 1]",
        ),
        bug(
            "a portion reads all segments",
            SHARES,
            "inputs=relevant(job.query, job.inputs, job.old, new), new=new)",
            "new=new)",
        ),
        bug(
            "portions of an operator that has none yield what its task yields",
            SHARES,
            "    lines: list[str] = []\n    if finding is not None:\n",
            "    lines: list[str] = []\n    finding = finding or operator\n    if finding is not None:\n",
        ),
        bug(
            "a portion whose slices interleave fails",
            SHARES,
            "        yield _interleaved(jobs[number])\n",
            "        raise\n",
        ),
        bug(
            "nobody learns what portions take",
            SHARES,
            "lines += _stored(target, job, step, shard, len(cuts) + 1, began)",
            "lines += _stored(target, job, step, shard, len(cuts), began)",
        ),
        bug(
            "what all portions read would be shared by them",
            SHARES,
            "divided = 0.0 if searched is None else searched + ended - stored",
            "divided = ended - began",
        ),
        bug(
            "what is known of other shares says which are divided",
            PORTIONS,
            " is not None and len(of) == shards}",
            " is not None}",
        ),
        bug(
            "there is a core for each share",
            PORTIONS,
            "return min(shards, self.cores or shards)",
            "return shards",
        ),
        bug(
            "an increment is cut at any instants of its rows",
            PORTIONS,
            "leaf.buffer.instants if at is None else (at, *leaf.buffer.instants)",
            "leaf.buffer.instants",
        ),
        bug("cuts are not within the increment", CUTS, "< cut < high:", "<= cut <= high:"),
        bug(
            "rows of a segment all come at its end",
            CUTS,
            "np.clip((instant - first + 1) / (last - first + 1), 0.0, 1.0)",
            "(instant >= last)",
        ),
        bug("an increment is cut as if it had all rows of its segments", CUTS, "begin + (end - begin) *", "end *"),
    ),
)
