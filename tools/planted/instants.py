"""Slips in what makes equal terms over instants one variable."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

INSTANTS = "analysis/zones/instants.py"
PRUNING = "analysis/zones/pruning.py"

GROUP = Group(
    "instants",
    ("tests/analysis/test_instants.py", "tests/properties/test_writings.py", "tests/properties/test_smt.py"),
    (
        bug(
            "a rounding that is written again is another instant",
            INSTANTS,
            "        if not isinstance(row, Rounding) or row.unit == 1:\n            return False\n",
            "        if row:\n            return False\n",
        ),
        bug(
            "a rounding of a rounding is that of its instant whatever the units",
            INSTANTS,
            "            if unit % row.unit == 0:\n",
            "            if unit >= row.unit:\n",
        ),
        bug(
            "the phase within a finer rounding is lost",
            INSTANTS,
            "by = row.offset + by // row.unit * row.unit",
            "by = row.offset + by",
        ),
        bug(
            "a finer rounding of a coarser one is not seen to change nothing",
            INSTANTS,
            "            elif row.unit % unit == 0:\n                return ShiftedInstant(row, by // unit * unit)\n",
            "",
        ),
        bug(
            "a finer rounding of a coarser one keeps what was added",
            INSTANTS,
            "return ShiftedInstant(row, by // unit * unit)",
            "return ShiftedInstant(row, by)",
        ),
        bug(
            "the rounding of a least instant does not know of the instants",
            INSTANTS,
            "        if isinstance(row, Extreme) and all(",
            "        if isinstance(row, Extreme) and not all(",
        ),
        bug(
            "terms of all zones are read in the first one's layout",
            INSTANTS,
            "        groups.setdefault(key, []).append(zone)\n",
            "        groups.setdefault(tuple(zone.layout.attributes), []).append(zone)\n",
        ),
        bug(
            "what a zone says of roundings alone is no reason to keep it",
            PRUNING,
            "if is_copy(row) or isinstance(row, Rounding))",
            "if is_copy(row))",
        ),
    ),
)
