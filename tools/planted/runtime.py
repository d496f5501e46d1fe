"""Slips in how engines obey the rules, and in rewrites."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

RUNNER = "runtime/batch/loop.py"
INCREMENTS = "runtime/batch/increments.py"
ADMISSION = "runtime/ingest/admission.py"
PROGRESS = "runtime/plan/progress.py"
STEPS = "runtime/plan/steps.py"
LOWER = "runtime/plan/lower.py"
READER = "runtime/engines/embedded/steps/segment_reader.py"
REWRITES = "algebra/rewrites/"

GROUP = Group(
    "runtime",
    ("tests/properties/test_embedded.py",),
    (
        bug(
            "collection before passing",
            INCREMENTS,
            "                jobs += self._jobs(query, relevant(query, offered(query, self.segments), old, new), old, new)\n"
            "            self.progress.queries[query.name] = new\n",
            "                self.progress.queries[query.name] = new\n"
            "                self.segments = self.garbage.collected(self.executor, self.batch, self.segments, self.progress)\n"
            "                jobs += self._jobs(query, relevant(query, offered(query, self.segments), old, new), old, new)\n"
            "            self.progress.queries[query.name] = new\n",
            required=True,
        ),
        bug(
            "late rule < for <=",
            ADMISSION,
            "else pl.col(name) <= b",
            "else pl.col(name) < b",
            required=True,
        ),
        bug(
            "results progress with the fastest query",
            PROGRESS,
            "b[key] = min(b.get(key, INF), self.queries[query.name][a])",
            "b[key] = max(b.get(key, -INF), self.queries[query.name][a])",
        ),
        bug(
            "progress can go back",
            PROGRESS,
            "self.inputs[stream, attribute] = max(known, value)",
            "self.inputs[stream, attribute] = value if known != value else known",
        ),
        bug(
            "a shared buffer keeps what all readers need",
            STEPS,
            "return disjunction([*dict.fromkeys(kept.condition",
            "return conjunction([*dict.fromkeys(kept.condition",
        ),
        bug(
            "a shared segment goes with its first reader",
            STEPS,
            "return lambda bounds: any(one.segment(bounds)",
            "return lambda bounds: all(one.segment(bounds)",
        ),
        bug(
            "partial aggregates a tick late",
            STEPS,
            '_compare("le", c, value, schema[c].type)',
            '_compare("lt", c, value, schema[c].type)',
        ),
        bug(
            "partial aggregates go a tick early",
            STEPS,
            "Case(tuple(old), within=",
            "Case(tuple((x, b + 1) for x, b in old), within=",
        ),
        bug(
            "segments go with their earliest row",
            "runtime/batch/garbage.py",
            "tuple(s for s in stored if needed(s.bounds))",
            "tuple(s for s in stored if needed({x: (low, low) for x, (low, _) in s.bounds.items()}))",
        ),
        bug(
            "rows are stored after the increments",
            RUNNER,
            "                return ingested, self._increments(batch, state, self._ahead(batch, work, state))\n",
            "                evaluation = self._increments(batch, self.state, self._ahead(batch, work, state))\n"
            "                stored = self.admission.admitted(evaluation.state(), work, ingested, clock)\n"
            "                evaluation.before, evaluation.progress = stored, stored.progress\n"
            "                evaluation.segments = stored.segments\n"
            "                return ingested, evaluation\n",
        ),
        bug(
            "a restart forgets the progress of queries",
            PROGRESS,
            "                self.queries[name][attribute] = value",
            "                self.queries[name][attribute] = -INF",
        ),
        bug(
            "late by all attributes instead of any",
            ADMISSION,
            "        for name, b in intake.progress.items()\n        if b != -INF\n    ]\n",
            "        for name, b in intake.progress.items()\n        if b != -INF and name == min(intake.progress)\n    ]\n",
        ),
        bug(
            "distinct counts merge as sums",
            LOWER,
            "MERGEABLE = frozenset(function for function, entry in TABLE.items() if entry.merges)",
            "MERGEABLE = frozenset(TABLE)",
        ),
        bug(
            "partials although a promise is no key",
            LOWER,
            "    if any(a not in key_shifts for a in facts.propagation):\n        return None\n",
            "",
        ),
        bug(
            "merged partials lose a part",
            READER,
            "return pl.concat([self._load(segment) for segment in segments])",
            "return self._load(segments[-1])",
        ),
        bug(
            "selections go through the right of anti-joins",
            REWRITES + "select_through_join.py",
            'if kind == "inner":',
            'if kind in ("inner", "left"):',
        ),
        bug(
            "anti-join conditions filter the left",
            REWRITES + "select_in_join.py",
            'if kind in ("inner", "semi"):',
            'if kind in ("inner", "semi", "anti"):',
        ),
    ),
)
