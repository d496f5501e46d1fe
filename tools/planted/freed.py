"""Slips in what frees situations of a pattern before window and horizon do."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

RULE = "analysis/ordered/match/partners.py"
KERNEL = "runtime/kernels/partners.py"
MATCHES = "runtime/ordered/match/operator.py"
STORE = "runtime/ordered/partition_store.py"

GROUP = Group(
    "freed situations",
    (
        "tests/analysis/test_situation_partners.py",
        "tests/runtime/kernels/test_partners.py",
        "tests/runtime/test_situation_partners.py",
        "tests/properties/test_situations.py",
        "tests/properties/test_interval_sequences.py",
    ),
    (
        bug(
            "a partner that can still come is taken as gone",
            KERNEL,
            "        if latest > until:\n",
            "        if latest > until + 1:\n",
            required=True,
        ),
        bug(
            "a partner that can come no more is waited for",
            KERNEL,
            "        if latest > until:\n",
            "        if latest >= until:\n",
        ),
        bug(
            "open partners are overlooked",
            KERNEL,
            "        if useful[stop] and ts_from",
            "        if ts_to < ts_from and ts_from",
            required=True,
        ),
        bug(
            "a match is over though one of it is open",
            KERNEL,
            "        unsettled |= partner == _OPEN\n",
            "",
            required=True,
        ),
        bug(
            "partners are looked for on the wrong side",
            KERNEL,
            "        ts_from = own_ts - bounds[j, i]\n",
            "        ts_from = own_ts + bounds[j, i]\n",
            required=True,
        ),
        bug(
            "a partner that just fits is too early",
            KERNEL,
            "        te_from = own_ts - bounds[j + 1, i]\n",
            "        te_from = own_ts - bounds[j + 1, i] + 1\n",
        ),
        bug(
            "an open partner must have ended by now",
            KERNEL,
            "ts_to and te_to > until:",
            "ts_to and te_to > until + 1:",
        ),
        bug(
            "an open partner that has lasted too long counts",
            KERNEL,
            "if bounds[j, j + 1] == NONE or ts[stop] + bounds[j, j + 1] > until:",
            "if bounds[j, j + 1] != OPEN - 1:",
        ),
        bug(
            "what is open is taken to end now",
            KERNEL,
            "least_te = until + 1 if own_te == OPEN else own_te",
            "least_te = until if own_te == OPEN else own_te",
        ),
        bug(
            "what has gone is a partner",
            KERNEL,
            "        if useful[place]:\n            return _OVER\n",
            "        if ts[place] <= ts_to:\n            return _OVER\n",
        ),
        bug(
            "given situations are asked for",
            KERNEL,
            "        if not derived[definition[other_role]]:\n",
            "        if derived[definition[other_role]] and not derived[definition[other_role]]:\n",
            required=True,
        ),
        bug(
            "a situation goes that another name needs",
            KERNEL,
            "                        if definition[role] == derivation:\n",
            "                        if definition[role] == derivation and waits == NEVER and role <= derivation:\n",
        ),
        bug(
            "time alone frees nothing",
            MATCHES,
            "np.minimum(look, next_look)",
            "next_look",
        ),
        bug(
            "a given row that ends later is taken as over",
            KERNEL,
            "    unsettled = own_te > until\n",
            "    unsettled = own_te == OPEN\n",
            required=True,
        ),
        bug(
            "rows without situations in their partition have those of another",
            STORE,
            "places = np.full(rows.height, len(partitions))",
            "places = np.full(rows.height, max(0, len(partitions) - 1))",
        ),
        bug(
            "a look at given rows reads all partitions",
            MATCHES,
            "extract = states.extract(partitions)\n            every",
            "states.extract(states.all_partitions())\n            extract = states.extract(partitions)\n            every",
        ),
        bug(
            "open situations are no partners of given rows",
            MATCHES,
            "every = _all_runs(self.derivation, extract.runs, count)\n            situations",
            "every = Runs.empty(len(extract.partitions), count)\n            situations",
            required=True,
        ),
        bug(
            "given rows are judged by where nothing has been read",
            "runtime/ordered/operators.py",
            "        reached = job.new[job.query.ordered.time]\n",
            "        reached = job.old[job.query.ordered.time]\n",
        ),
        bug(
            "a sweep frees none of the rows that an operator judges",
            "runtime/eval/purge_rows.py",
            "rows[ROW].filter(pl.Series(self.sweep.judged(self.query, leaf, rows)))",
            "rows[ROW]",
        ),
        bug(
            "a look frees the rows that an operator needs",
            "runtime/eval/dependents.py",
            "holding & sweep.judged(query, leaf, rows)",
            "holding & ~sweep.judged(query, leaf, rows)",
            required=True,
        ),
        bug(
            "the bounds of one case are those of all",
            RULE,
            "for zone in zones])\n",
            "for zone in zones[:1]])\n",
            required=True,
        ),
        bug(
            "a derivation goes as soon as one of its symbols can",
            RULE,
            "longest = max(min(waits",
            "longest = min(min(waits",
        ),
    ),
)
