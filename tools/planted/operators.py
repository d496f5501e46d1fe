"""Slips in the operators themselves: only random trees meet all of their conditions."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

JOINS = "runtime/embedded/joins.py"
BANDS = "runtime/embedded/bands.py"
SLICES = "runtime/kernels/bands.py"
AGGREGATES = "runtime/embedded/aggregates.py"

GROUP = Group(
    "operators",
    (
        "tests/runtime/test_relational.py::test_trees_mean_the_same_embedded",
        "tests/runtime/test_aggregates.py",
        "tests/properties/test_embedded.py",
    ),
    (
        bug("strict ranges are not", BANDS, '"right" if bound.strict else "left"', '"left"'),
        bug("compiled strict ranges are not", BANDS, "limits + 1 if bound.strict else limits", "limits"),
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
            "            kept = eligible[one]\n            matched[one[kept]] = True\n",
            "            kept = eligible[one]\n            matched[one] = True\n",
        ),
        bug("latest takes the earliest", AGGREGATES, "descending=[True, False]", "descending=[False, False]"),
    ),
)
