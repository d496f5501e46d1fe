"""Slips in cuts: which parts of queries become streams of their own, and whether results are final as before (R36)."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

CUTS = "analysis/cuts.py"

GROUP = Group(
    "cuts",
    ("tests/analysis/test_cuts.py", "tests/runtime/test_folding.py", "tests/properties/test_folding.py"),
    (
        bug(
            "what queries share is named in the order in which they are written",
            "analysis/pipeline.py",
            "    return ProgramDef(tuple(sorted(program.queries, key=lambda query: query.name)))\n",
            "    return program\n",
        ),
        bug(
            "a part is cut out although results are final later then",
            CUTS,
            "        if not all(_is_same(f, rest.propagation[a], stream.name, inner) for a, f in query.propagation.items()):\n",
            "        if False:\n",
        ),
        bug(
            "a part of which rows stay is cut out",
            CUTS,
            "        made = self.analyse(written, self.streams, range(len(occurrences(part))))\n",
            "        made = self.analyse(written, self.streams, ())\n",
        ),
        bug(
            "a part whose rows stay is cut out",
            CUTS,
            "{**self.streams, stream.name: stream}, (place,))\n",
            "{**self.streams, stream.name: stream}, ())\n",
        ),
        bug(
            "a part that keeps rows for ever is tried again",
            CUTS,
            "            self.staying.add(part)\n",
            "",
        ),
        bug(
            "what is left is tried for each occurrence of a part",
            CUTS,
            "                tried.add(path)\n",
            "",
        ),
        bug(
            "all occurrences of a part are looked at although the first stays",
            "analysis/pipeline.py",
            "any(facts_of(i).stays for i in bounded)",
            "any([facts_of(i).stays for i in bounded])",
        ),
        bug(
            "what has no value is set aside in a part",
            CUTS,
            " and not has_ordered_operator(part) and not _can_fail(part)",
            " and not has_ordered_operator(part)",
        ),
        bug(
            "equal parts are computed apart",
            CUTS,
            "        known = self.made.get(part)\n",
            "        known = None\n",
        ),
        bug(
            "of what instants of a part allow the least counts",
            CUTS,
            "            for chosen in product(*functions)\n",
            "            for functions_alone in functions for chosen in ((one,) for one in functions_alone)\n",
        ),
        bug(
            "a clause that undercuts another goes",
            CUTS,
            "if not any(_undercuts(o, one) for o in different if o != one))\n",
            "if not any(_undercuts(one, o) for o in different if o != one))\n",
        ),
    ),
)
