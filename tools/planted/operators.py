"""Slips in the operators themselves: only random trees meet all of their conditions."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

JOINS = "runtime/eval/joins/ranges.py"
BANDS = "runtime/eval/joins/bands.py"
SLICES = "runtime/kernels/band_join.py"
AGGREGATES = "runtime/eval/aggregates/partials.py"
EVALUATION = "runtime/engines/embedded/steps/evaluation.py"

GROUP = Group(
    "operators",
    (
        "tests/runtime/test_joins.py",
        "tests/runtime/test_relational.py::test_trees_mean_the_same_embedded",
        "tests/runtime/test_aggregates.py",
        "tests/properties/test_embedded.py",
    ),
    (
        bug(
            "partial results of several segments are of different groups",
            EVALUATION,
            "job.query.groups_once and len(job.inputs[0]) == 1",
            "job.query.groups_once",
        ),
        bug(
            "partial results of strata are of different groups",
            "runtime/plan/lower.py",
            "groups_once=not of_strata",
            "groups_once=True",
        ),
        bug(
            "strict ranges are not",
            BANDS,
            "int(bound.strict) - bound.offset, above=False",
            "-bound.offset, above=False",
        ),
        bug(
            "strict ranges from above are not",
            BANDS,
            "-int(bound.strict) - bound.offset, above=True",
            "-bound.offset, above=True",
        ),
        bug("slices end before the last", SLICES, "values[middle] <= high[row]", "values[middle] < high[row]"),
        bug(
            "NULL conditions hold in joins",
            JOINS,
            "condition.fill_null(value=False)",
            "condition.fill_null(value=True)",
        ),
        bug(
            "left joins pad by the unfiltered condition",
            JOINS,
            "            kept = eligible[lefts]\n            matched[lefts[kept]] = True\n",
            "            kept = eligible[lefts]\n            matched[lefts] = True\n",
        ),
        bug(
            "intervals that overlap are found twice",
            BANDS,
            "below.left, (_Bound(above.left, strict=True),)",
            "below.left, (_Bound(above.left, strict=False),)",
        ),
        bug(
            "partners that fail the rest of a condition count",
            JOINS,
            "any(band.rest or band.flipped for band in self.bands)",
            "any(band.flipped for band in self.bands)",
        ),
        bug("pairs are seen from the first on again", JOINS, "        first = last\n", "        first = last + 1\n"),
        bug(
            "rows without a group have the first one",
            JOINS,
            "np.full(count, -1, dtype=np.int64)",
            "np.full(count, 0, dtype=np.int64)",
        ),
        bug("latest takes the earliest", AGGREGATES, "descending=[True, False]", "descending=[False, False]"),
    ),
)
