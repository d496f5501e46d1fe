"""Slips in what rows give a pattern, in closing what is open, in pinned orders and in the bound of what is held."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GIVEN = "runtime/ordered/match/intervals.py"
MATCHES = "runtime/ordered/match/operator.py"
SEARCH = "runtime/kernels/search.py"
FEDERATION = "analysis/federation/federation.py"
MATCH = "analysis/ordered/match/family.py"
PIPELINE = "analysis/pipeline.py"
BOUNDS = "analysis/ordered/match/bounds.py"
SITUATIONS = "runtime/ordered/derive/derivation.py"
INCREMENTS = "runtime/batch/increments.py"
RUN_STATE = "runtime/batch/state.py"
CLOSING = "runtime/batch/end_of_input.py"

GROUP = Group(
    "given",
    (
        "tests/runtime/test_intervals.py",
        "tests/runtime/kernels/test_search.py::test_the_reach_of_a_cell_does_not_fall",
        "tests/runtime/test_closing.py",
        "tests/runtime/test_closing_cuts.py",
        "tests/runtime/test_match_order.py",
        "tests/runtime/test_situation_state.py",
        "tests/runtime/spark/test_closing.py",
    ),
    (
        bug(
            "given situations are searched as if they were disjoint",
            MATCHES,
            "disjoint=np.arange(len(definitions) + len(given)) < len(definitions)",
            "disjoint=np.ones(len(definitions) + len(given), dtype=np.bool_)",
            required=True,
        ),
        bug(
            "rows are searched in the order in which they came",
            GIVEN,
            "rows.sort(START, maintain_order=True)",
            "rows",
            required=True,
        ),
        bug(
            "an end that the row says is withheld",
            MATCHES,
            "(te > detected) & (definition not in intervals)",
            "te > detected",
        ),
        bug(
            "no situation given may be a point",
            MATCHES,
            "return (0 if situation.points else 1), NONE",
            "return 1, NONE",
        ),
        bug(
            "a match does not wait for the rows that it is made of",
            MATCH,
            "                awaited.update(places)\n",
            "                awaited.update(places if not awaited else ())\n",
        ),
        bug(
            "the reach of a given situation is that of its neighbour",
            SEARCH,
            "reach[place] = max(reach[place], reach[place - 1])",
            "reach[place] = reach[place - 1]",
        ),
        bug(
            "matches of given situations pass by other instants than their detection",
            PIPELINE,
            " and all(a == completed for completed in alone)",
            "",
        ),
        bug(
            "rows that may end before they begin are taken",
            MATCH,
            "least = 0 if intervals.points else -1",
            "least = 1",
        ),
        bug(
            "what is open is closed a tick early",
            SITUATIONS,
            "np.full(len(partitions), at, dtype=np.int64)",
            "np.full(len(partitions), at - 1, dtype=np.int64)",
        ),
        bug(
            "what is open is closed before an event",
            SITUATIONS,
            "late = runs.last[partitions] >= at",
            "late = runs.last[partitions] > at",
        ),
        bug(
            "what is open is closed before all streams have ended",
            INCREMENTS,
            "if ordered is None or closing is None or new[ordered.time] != INF:",
            "if ordered is None or closing is None:",
        ),
        bug(
            "the manifest does not say that situations were closed",
            RUN_STATE,
            "return extra if self.closing is None else {**extra, CLOSING: self.closing.to_json()}",
            "return extra",
        ),
        bug(
            "where situations end is forgotten by a restart",
            CLOSING,
            "return [self.at, [[",
            "return [None, [[",
        ),
        bug(
            "events do not say that the instant of closing has passed",
            CLOSING,
            "(result.greatest, result.punctuation)",
            "(result.punctuation,)",
        ),
        bug(
            "progress of a stream that ends in the same batch was never declared",
            "runtime/engines/embedded/batches.py",
            "given.close_at, given.declared, waiting, following)",
            "given.close_at, {}, waiting, following)",
            required=True,
        ),
        bug(
            "an instant that progress has just come to is taken for a later one",
            CLOSING,
            "self.at <= passed",
            "self.at < passed",
        ),
        bug(
            "the test kit forgets progress of a stream that ends in the same step",
            "runtime/testkit/drive.py",
            "(*waiting.declared.items(), *waiting.advances.items())",
            "waiting.advances.items()",
        ),
        bug(
            "progress that was called before the end of a stream is forgotten on Spark",
            "runtime/engines/spark/calls.py",
            "            self._declared[key] = max(value, self._declared.get(key, value))\n",
            "            self._declared[key] = 0\n",
        ),
        bug(
            "the first instant of closing that was said counts",
            "runtime/engines/spark/closing.py",
            "last = self._files[-1]",
            "last = self._files[0]",
        ),
        bug(
            "a pinned order is given up",
            "runtime/ordered/match/order.py",
            "if self.pinned or not",
            "if not",
        ),
        bug(
            "a checkpoint depends on the order of evaluation",
            "runtime/plan/lower.py",
            ' and not f.metadata.get("advice")',
            "",
        ),
        bug(
            "one situation more fits into a window than is said",
            BOUNDS,
            "(int(instants) - 1) // apart + 1",
            "(int(instants) - 1) // apart",
        ),
    ),
)
