"""Slips in the search of matches by ranges, and in what it is told ahead."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

SEARCH = "runtime/kernels/ranges/range_search.py"
STEPS = "runtime/kernels/ranges/range_plan.py"
PLAN = "runtime/kernels/search_plan.py"

GROUP = Group(
    "ranges",
    (
        "tests/runtime/kernels/test_ranges.py",
        "tests/runtime/kernels/test_search.py",
        "tests/analysis/test_detection.py",
    ),
    (
        bug(
            "a range begins behind a start that just fits",
            SEARCH,
            "if ts[middle] >= ts_from and te[middle] >= te_from:",
            "if ts[middle] > ts_from and te[middle] >= te_from:",
        ),
        bug(
            "nearby a range is looked for by starts alone",
            SEARCH,
            "while near < stop and (ts[near] < ts_from or te[near] < te_from):",
            "while near < stop and ts[near] < ts_from:",
        ),
        bug(
            "a range that begins before the last one is looked for behind it",
            SEARCH,
            "if near > low and ts[near - 1] >= ts_from and te[near - 1] >= te_from:",
            "if near > high and ts[near - 1] >= ts_from and te[near - 1] >= te_from:",
            required=True,
        ),
        bug(
            "a candidate that ends as late as it may is left out",
            SEARCH,
            "ts[place] > ts_to or te[place] > te_to:",
            "ts[place] > ts_to or te[place] >= te_to:",
        ),
        bug(
            "triggered candidates are found once for each trigger",
            SEARCH,
            "skips = role < trigger and",
            "skips = role > trigger and",
            required=True,
        ),
        bug(
            "a full block goes on with the next row",
            SEARCH,
            "known[_NEXT], known[_CANDIDATE], known[_NEAR] = row, place, near",
            "known[_NEXT], known[_CANDIDATE], known[_NEAR] = row + 1, -1, near",
            required=True,
        ),
        bug(
            "a range is limited by the bounds of another row",
            SEARCH,
            "column[row] = old[rows[row]]",
            "column[row] = old[row]",
        ),
        bug(
            "candidates are of the partition of another row",
            SEARCH,
            "before[_CELL, rows[row]]",
            "before[_CELL, row]",
            required=True,
        ),
        bug(
            "limits of a candidate's length are not looked at",
            SEARCH,
            "return te == OPEN or least",
            "return True or least",
        ),
        bug(
            "the searched partitions need triggered situations alone",
            SEARCH,
            "        if role < trigger:\n            place = quiet[place]\n        if place >=",
            "        if role != trigger:\n            place = quiet[place]\n        if place >=",
        ),
        bug(
            "matches by ranges are reported again in the next increment",
            SEARCH,
            "if when > until or (when <= after and not zones.shape[0]):",
            "if when > until:",
        ),
        bug(
            "matches that a formula puts off are reported as if it did not",
            SEARCH,
            "when = _by_formula(zones, within, final, when, matched[reported], start, ts, te, endpoints)",
            "when = min(when, _by_formula(zones, within, final, when, matched[reported], start, ts, te, endpoints))",
        ),
        bug(
            "the window does not count what a formula puts off",
            SEARCH,
            "return OPEN if within != NONE and instant - start > within else instant",
            "return instant",
        ),
        bug(
            "relations that bounds do not tell apart are searched by ranges",
            STEPS,
            "all(exact(int(pattern.masks[pair])) for pair in combinations(roles, 2))",
            "all(one.always for one in instants)",
            required=True,
        ),
        bug(
            "situations that overlap are searched by ranges",
            STEPS,
            "disjoint = pattern.disjoint is None or pattern.disjoint.all()",
            "disjoint = True",
            required=True,
        ),
        bug(
            "the window of ranges is a tick longer",
            STEPS,
            "pattern.within - instant.distance",
            "pattern.within - instant.distance + 1",
        ),
        bug(
            "endpoints that the next step asks for are not carried on",
            STEPS,
            "for later in bounds[step + 1 :]",
            "for later in bounds[step + 2 :]",
            required=True,
        ),
        bug("lengths that follow from others are no limits", STEPS, "-hull[te][ts], hull[ts][te],", "1, NONE,"),
        bug(
            "the first start of a match is its last",
            STEPS,
            "for role in roles], _mirrored(hull))",
            "for role in roles], hull)",
        ),
        bug(
            "the second end decides when a pair is certain",
            PLAN,
            "enumerate((hull[3][1], hull[1][3]))",
            "enumerate((hull[1][3], hull[3][1]))",
            required=True,
        ),
        bug(
            "a least duration is certain as it begins",
            PLAN,
            "Instant(ts, max(int(pattern.at_least[role]), 1) - 1, True)",
            "Instant(ts, 0, True)",
        ),
        bug(
            "instants that others follow are the last ones",
            PLAN,
            "distance <= later.distance - earlier.distance",
            "distance >= later.distance - earlier.distance",
        ),
        bug(
            "what triggers by its end does by its start",
            PLAN,
            "(ends if instant.end % 2 else starts)[",
            "(starts if instant.end % 2 else ends)[",
            required=True,
        ),
        bug(
            "a distance that a pattern states is a tick shorter for the search",
            "analysis/ordered/match/detection.py",
            "-added[0].c - 1)",
            "-added[0].c - 2)",
        ),
    ),
)
