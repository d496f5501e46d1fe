"""Slips in when matches of a pattern are certain, and in what holds of them."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

ALLEN = "algebra/allen.py"
PATTERN = "analysis/ordered/match/pattern.py"
DETECTION = "analysis/ordered/match/detection.py"
MATCHES = "analysis/ordered/match/matches.py"

GROUP = Group(
    "patterns",
    (
        "tests/algebra/test_allen.py",
        "tests/analysis/test_matches.py",
        "tests/analysis/test_detection.py",
        "tests/properties/test_detection.py",
        "tests/properties/test_matches.py",
    ),
    (
        bug(
            "the zone around many cases is the first of them",
            "analysis/zones/zone.py",
            "matrix = hull([zone.matrix for zone in zones])",
            "matrix = first.matrix",
        ),
        bug(
            "zones around many cases pass for exact",
            MATCHES,
            '"all alternatives before")], False',
            '"all alternatives before")], True',
        ),
        bug(
            "finishes is its mirror image, as in the papers",
            ALLEN,
            'conjunction([call("lt", a_ts, b_ts), call("eq", a_te, b_te)])',
            'conjunction([call("lt", b_ts, a_ts), call("eq", a_te, b_te)])',
        ),
        bug(
            "periods that only meet intersect",
            ALLEN,
            'call("lt", a_ts, b_te), call("lt", b_ts, a_te)',
            'call("le", a_ts, b_te), call("lt", b_ts, a_te)',
        ),
        bug(
            "the last end decides within a prefix group",
            DETECTION,
            "return min(a_te, b_te)",
            "return max(a_te, b_te)",
        ),
        bug(
            "a minimum duration is certain a tick late",
            DETECTION,
            "else ts + least - 1",
            "else ts + least",
        ),
        bug(
            "a bound that is just met counts as violated",
            DETECTION,
            "if d < NONE and u - v > d)",
            "if d < NONE and u - v >= d)",
        ),
        bug(
            "a zone dies before what it bounds from is known",
            DETECTION,
            "(v + max(d, 0) for",
            "(v + d for",
        ),
        bug(
            "an end that tells first is no trigger",
            DETECTION,
            "if 0 < d < NONE and start + least > d)",
            "if 0 < d < NONE and start + least > d + 1)",
        ),
        bug(
            "a window that is just met is missed",
            DETECTION,
            "detected - min(starts) > detection.within",
            "detected - min(starts) >= detection.within",
        ),
        bug(
            "points are taken for intervals",
            PATTERN,
            "Bound(symbol.ts, symbol.te, 0 if symbol.points else -1)",
            "Bound(symbol.ts, symbol.te, -1)",
        ),
        bug(
            "relations of points by masks",
            PATTERN,
            "if len(involved) != 2 or any(self.symbols[k].points for k in involved):",
            "if len(involved) != 2:",
        ),
        bug(
            "shifts are taken for order",
            PATTERN,
            "if all(bound.c in (0, -1) for bound in bounds_of(part)) else None",
            "if all(abs(bound.c) <= 1 for bound in bounds_of(part)) else None",
        ),
        bug(
            "matches are certain a tick late",
            MATCHES,
            "Bound(v, DETECTED, -d, general.source)",
            "Bound(v, DETECTED, -d - 1, general.source)",
        ),
        bug(
            "horizons without the ends that might have been",
            MATCHES,
            "parts += [Bound(symbol.ts, other, interval_bound(symbol).c), disjoin((same, unknown))]",
            "parts += [Bound(symbol.ts, other, interval_bound(symbol).c), same]",
        ),
        bug(
            "horizons without minimum durations",
            MATCHES,
            "        if symbol.at_least is not None and symbol.at_least > 1:\n            yield Bound(DETECTED, symbol.ts, symbol.at_least - 1)\n",
            "",
        ),
        bug(
            "the wrong end comes first in overlapped by",
            MATCHES,
            "_B_ENDS_FIRST = (Allen.CONTAINS, Allen.STARTED_BY, Allen.OVERLAPPED_BY)",
            "_B_ENDS_FIRST = (Allen.CONTAINS, Allen.STARTED_BY)",
        ),
    ),
)
