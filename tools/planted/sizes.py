"""Slips beyond the sizes that are compiled into kernels: few rows show none of them."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GROUP = Group(
    "compiled sizes",
    ("tests/properties/test_large.py", "tests/runtime/test_situation_partners.py"),
    (
        bug(
            "a range that begins far on is looked for behind the last step",
            "runtime/kernels/ranges/range_search.py",
            "            low = near + 1\n            near += width\n",
            "            near += width\n            low = near\n",
        ),
        bug(
            "a cascade of partners ends after a round",
            "runtime/kernels/partners.py",
            "            if settled:\n                break",
            "            if not settled:\n                break",
        ),
        bug(
            "what a cut cascade has not come to is of no use",
            "runtime/kernels/partners.py",
            "            if settled:\n                break",
            "            if settled:\n                break\n        if not settled:\n"
            "            useful[offsets[first_cell] : offsets[first_cell + definitions]] = False",
        ),
    ),
)
