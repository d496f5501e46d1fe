"""Slips in recursion."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

RECURSION = "analysis/recursion.py"
FACTS = "analysis/facts.py"
INCREMENTS = "runtime/batch/increments.py"
EXECUTOR = "runtime/engines/embedded/executor.py"

GROUP = Group(
    "recursion",
    ("tests/properties/test_recursive.py", "tests/properties/test_endless.py", "tests/runtime/test_recursion.py"),
    (
        bug(
            "all candidates pass at once, by the rules",
            "tests/properties/drive.py",
            "limit = min(r for _, r, _ in candidates) + rank.step",
            "limit = max(r for _, r, _ in candidates) + rank.step",
            required=True,
        ),
        bug(
            "all candidates pass at once, embedded",
            EXECUTOR,
            "limit = min(least) + rank.step",
            "limit = min(least) + 10**12",
            required=True,
        ),
        bug(
            "a step too long",
            RECURSION,
            "scale, step = gain.denominator, gain.numerator",
            "scale, step = gain.denominator, gain.numerator + 1",
            required=True,
        ),
        bug(
            "the fastest way round is the step",
            RECURSION,
            "return max(means, default=Fraction(-1))",
            "return min(means, default=Fraction(-1))",
            required=True,
        ),
        bug(
            "ticks are not scaled",
            RECURSION,
            "scale, step = gain.denominator, gain.numerator",
            "scale, step = 1, -(-gain.numerator // gain.denominator)",
            required=True,
        ),
        bug(
            "the sign of potentials",
            FACTS,
            "return min(self.scale * row[a] - potential for",
            "return min(self.scale * row[a] + potential for",
            required=True,
        ),
        bug(
            "the sign of potentials in conditions",
            FACTS,
            "(limit + potential - 1) // self.scale",
            "(limit - potential - 1) // self.scale",
            required=True,
        ),
        bug(
            "no potentials",
            RECURSION,
            "potentials[edge.target] = min(potentials[edge.target], limit)",
            "potentials[edge.target] = 0",
            required=True,
        ),
        bug(
            "the rank of the latest instant",
            FACTS,
            "return min(self.scale * row[a] - potential for",
            "return max(self.scale * row[a] - potential for",
            required=True,
        ),
        bug(
            "the limit is within the stratum",
            FACTS,
            "(limit + potential - 1) // self.scale",
            "(limit + potential) // self.scale",
            required=True,
        ),
        bug(
            "progress rises before the loop, and with it the admission filters",
            INCREMENTS,
            "        limit, idle, told = None, 0, TOLD_STEPS\n",
            "        limit, idle, told = None, 0, TOLD_STEPS\n        self.progress.queries |= new\n",
            required=True,
        ),
        bug(
            "garbage is collected within the loop",
            INCREMENTS,
            "            limit = stratum.limit\n",
            "            limit = stratum.limit\n            self.progress.queries |= new\n"
            "            self.segments = self.garbage.collected(self.executor, self.batch, self.segments, self.progress)\n",
            required=True,
        ),
        bug(
            "rows without a value are looked for among what was there before the batch",
            INCREMENTS,
            "read = relevant(query, offered(query, found), old, new[query.name])",
            "read = relevant(query, offered(query, self.segments), old, new[query.name])",
        ),
        bug(
            "rows without a value leave a recursion without a word",
            EXECUTOR,
            "            if job.query.name in self._unsettled.names:\n",
            "            if not jobs:\n",
        ),
        bug(
            "a recursion fails where its buffer has no value for a row",
            INCREMENTS,
            "            if leaf.buffer and query.name not in queries\n",
            "            if leaf.buffer and (query.name not in queries or query.stream in plan.facts.recursions)\n",
        ),
        bug(
            "a partner is looked at that is beyond all bounds beside what can fail",
            "algebra/semantics.py",
            "    implied = [_infallible(part, schema, otherwise=TRUE) for part in hard]\n",
            "    implied: list[Term] = []\n",
        ),
        bug("a recursion says at each step how far it is", INCREMENTS, "told *= 10", "told += 1"),
        bug("a recursion of many steps says nothing", INCREMENTS, "if steps == told or stops:", "if False:"),
        bug(
            "a batch that leaves strata to the next promises all that it could",
            INCREMENTS,
            "min(new[query.name][a], reached[a])",
            "new[query.name][a]",
            required=True,
        ),
        bug(
            "a batch that leaves strata to the next promises a tick of these",
            INCREMENTS,
            "min(new[query.name][a], reached[a])",
            "min(new[query.name][a], reached[a] + 1)",
            required=True,
        ),
        bug(
            "strata are left to the next batch where several instants are promised",
            INCREMENTS,
            "may_stop = not finished and all(len(p) == 1 for p in new.values())",
            "may_stop = not finished",
        ),
        bug(
            "strata are left to the next batch where there may be none",
            INCREMENTS,
            "may_stop = not finished and all",
            "may_stop = all",
        ),
        bug(
            "a batch takes all strata, however many",
            INCREMENTS,
            "stops = may_stop and steps >= MOST_STEPS",
            "stops = False",
        ),
        bug(
            "nobody goes on with what a batch has left",
            "runtime/batch/state.py",
            "return any(skipped.because == scheduler.UNFINISHED for skipped in self.skipped.values())",
            "return False",
        ),
        bug(
            "a service that ends with what is there leaves steps of a recursion",
            "runtime/cli/operation.py",
            "if not (session.waiting_files() or session._runner.state.is_unfinished):",
            "if not session.waiting_files():",
        ),
        bug(
            "progress of a component starts from below",
            RECURSION,
            "dict.fromkeys(by_attribute, INF) for name, by_attribute",
            "dict.fromkeys(by_attribute, -INF) for name, by_attribute",
            required=True,
        ),
        bug(
            "former progress enters the fixpoint",
            RECURSION,
            "                known[key] = INF\n",
            "                known.setdefault(key, INF)\n",
            required=True,
        ),
        bug(
            "later strata do not read what earlier ones found",
            INCREMENTS,
            "                added = offered(query, fresh)\n",
            "                added = offered(query, {})\n",
            required=True,
        ),
        bug(
            "rows that matter for ever keep a recursion from being endless",
            "analysis/state/relevance.py",
            "segment_may_stay(view, bounds, p) and (_ends(view) or not _has_begun(view, bounds, p))",
            "segment_may_stay(view, bounds, p)",
        ),
        bug(
            "rows that begin to matter later are not waited for",
            "analysis/state/relevance.py",
            "and (_ends(view) or not _has_begun(view, bounds, p))",
            "and _ends(view)",
        ),
        bug(
            "rows that cease to matter later are not waited for",
            "analysis/state/relevance.py",
            "and (_ends(view) or not _has_begun(view, bounds, p))",
            "and not _has_begun(view, bounds, p)",
        ),
        bug(
            "the first of a segment's rows is waited for, not the last",
            "analysis/state/relevance.py",
            "greatest(bounds, x) - view.behind(a, x) <= p.get(a, -INF) + 1",
            "least(bounds, x) - view.behind(a, x) <= p.get(a, -INF) + 1",
        ),
    ),
)
