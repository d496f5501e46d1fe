"""Slips in deriving situations and in finding their matches, increment by increment."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

DERIVE = "runtime/kernels/situations.py"
CELLS = "runtime/kernels/cells.py"
SEARCH = "runtime/kernels/search.py"
SITUATIONS = "runtime/ordered/derive/derivation.py"
MATCHES = "runtime/ordered/match/operator.py"
ORDERED = "runtime/ordered/derive/situations.py"
EVENTS = "runtime/ordered/derive/events.py"
RUN_PARTIALS = "runtime/ordered/derive/run_partials.py"
RUN_VALUES = "runtime/ordered/derive/run_values.py"

GROUP = Group(
    "situations",
    (
        "tests/runtime/test_situations.py",
        "tests/runtime/test_situation_ties.py",
        "tests/runtime/kernels/test_situations.py",
        "tests/runtime/kernels/test_search.py",
        "tests/runtime/test_intervals.py",
        "tests/runtime/test_operator_state.py",
        "tests/properties/test_situations.py",
    ),
    (
        bug(
            "a situation ends a tick late",
            DERIVE,
            "te_out[count] = time\n",
            "te_out[count] = time + 1\n",
            required=True,
        ),
        bug(
            "situations of no duration are kept",
            DERIVE,
            "if start[partition, symbol] < time:",
            "if start[partition, symbol] <= time:",
        ),
        bug(
            "an ended situation stays open",
            DERIVE,
            "                        count += 1\n                    start[partition, symbol] = NEVER\n",
            "                        count += 1\n",
        ),
        bug("a least duration just met is too short", SITUATIONS, "(lasts >= least[", "(lasts > least["),
        bug("a greatest duration just met is too long", SITUATIONS, "(lasts <= most[", "(lasts < most["),
        bug(
            "what is kept is purged a tick early by the window",
            CELLS,
            "ts[place] + within > until",
            "ts[place] + within > until + 1",
            required=True,
        ),
        bug(
            "what is kept is purged a tick early by its horizon",
            CELLS,
            "te[place] + horizon > until",
            "te[place] + horizon > until + 1",
            required=True,
        ),
        bug(
            "what ends as far as progress reaches triggers nothing",
            CELLS,
            "(time > after) & (time <= until)",
            "(time > after) & (time < until)",
        ),
        bug(
            "a shared endpoint is no meeting", SEARCH, "    if te < other_ts:", "    if te <= other_ts:", required=True
        ),
        bug("equal ends count as the later one", SEARCH, "1 if te > other_te else", "1 if te >= other_te else"),
        bug("starts is taken for during", SEARCH, "if ts == other_ts else 9", "if ts == other_ts - 1 else 9"),
        bug(
            "every allowed relation counts as a whole group",
            SEARCH,
            "(pairs[place, 2] >> relation)",
            "(pairs[place, 1] >> relation)",
            required=True,
        ),
        bug("the later end decides", SEARCH, "min(other_te, te))\n    return", "max(other_te, te))\n    return"),
        bug("a least duration is certain a tick late", SEARCH, "ts + max(at_least, 1) - 1", "ts + at_least"),
        bug(
            "a greatest duration is certain at once",
            SEARCH,
            "        if at_most != NONE:\n            instant = max(instant, te)",
            "        if at_most != NONE:\n            instant = max(instant, ts)",
        ),
        bug(
            "the window counts from the last start",
            SEARCH,
            "start = min(stack[_START, step - 1], ts[place])",
            "start = max(stack[_START, step - 1], ts[place])",
            required=True,
        ),
        bug(
            "a match that just fits into the window is missed",
            SEARCH,
            "instant - stack[_START, last] > within else instant",
            "instant - stack[_START, last] >= within else instant",
        ),
        bug(
            "final matches come before the last end",
            SEARCH,
            "    if final:\n        instant = max(instant, te)",
            "    if final:\n        instant = max(instant, ts)",
        ),
        bug("a distance just met is refuted", SEARCH, "ends[u] - ends[v] > bound)", "ends[u] - ends[v] >= bound)"),
        bug("a distance is refuted before it has passed", SEARCH, "ends[v] + max(bound, 0)", "ends[v] + min(bound, 0)"),
        bug(
            "candidates are looked for from a tick too late",
            SEARCH,
            "ts_from = max(ts_from, stack[_INSTANT, step - 1] - within)",
            "ts_from = max(ts_from, stack[_INSTANT, step - 1] - within + 1)",
        ),
        bug(
            "a match is found once for each of its triggers",
            SEARCH,
            "                place = quiet[place]\n",
            "                place = place + 0\n",
            required=True,
        ),
        bug(
            "a match is reported again in the next increment",
            SEARCH,
            "if after < instant <= until",
            "if instant <= until",
        ),
        bug(
            "given situations are taken to end in the order of their starts",
            SEARCH,
            "if disjoint.all() else",
            "if True else",
        ),
        bug(
            "aggregates of what is kept are dropped",
            MATCHES,
            "live = np.concatenate([change.after.number, open_numbers(runs)])",
            "live = open_numbers(runs)",
        ),
        bug("an end is shown before it is known", MATCHES, "(te > detected) &", "(te > detected + 1) &"),
        bug(
            "aggregates of what just ended leave out its last events",
            MATCHES,
            "number[place], te <= detected, detected",
            "number[place], te < detected - 1, detected - 1",
        ),
        bug(
            "runs are numbered anew after a restart",
            MATCHES,
            "numbers=following(tables))",
            "numbers=0)",
        ),
        bug(
            "values that were counted before are counted again",
            RUN_VALUES,
            'tuple(new.join(old, on=new.columns, how="anti") for new, old in pairs)',
            "tuple(new for new, _ in pairs)",
        ),
        bug(
            "values that come after the detection are counted",
            RUN_VALUES,
            "filter(pl.col(self.time) <= pl.col(until))",
            "filter(pl.col(self.time) <= pl.col(until) + 9)",
        ),
        bug(
            "first and last of a situation ignore the order of ties",
            RUN_PARTIALS,
            "partial(self.group, events, ordered_by=self.time)",
            "partial(self.group, events)",
            required=True,
        ),
        bug(
            "no value is NULL instead of none",
            RUN_PARTIALS,
            "pl.col(aggregate.name).fill_null(0)",
            "pl.col(aggregate.name)",
        ),
        bug(
            "partitions of NULL are new each time",
            "runtime/ordered/partitions.py",
            "nulls_equal=True",
            "nulls_equal=False",
        ),
        bug("events at the last progress are read twice", ORDERED, "[time > old]", "[time >= old]"),
        bug("events as far as progress reaches are left out", ORDERED, "[time <= new]", "[time < new]"),
        bug(
            "streams that are cut alike are one",
            "runtime/plan/lower.py",
            '_stored(f"rows {leaf}"',
            '_stored("rows"',
            required=True,
        ),
        bug(
            "state of an operator is not carried on",
            "runtime/engines/embedded/executor.py",
            "state=self.operators.keep(batch, job, after))",
            "state=job.state)",
            required=True,
        ),
        bug(
            "keys in another order have other names",
            "algebra/ordered/match/node.py",
            "len(situation.keys) == len(node.keys) and not set(situation.keys) & {ours for _, ours in pairs}",
            "len(situation.keys) == len(node.keys)",
        ),
        bug(
            "during is its converse",
            "algebra/dsl/situations.py",
            "DURING",
            "CONTAINS",
        ),
    ),
)
