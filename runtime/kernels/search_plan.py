"""The parameters of the search: a pattern and an evaluation order, as arrays.

A pattern has roles 0..m-1, its symbols, with the endpoints 2*i = ts and 2*i + 1 = te of role i. Matrices are
difference bounds: entry [v, u] bounds u - v, NONE where there is no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.kernels.cells import NONE

Matrix = list[list[int]]
Edge = tuple[int, int]
Edges = dict[Edge, int]
#: A bound on a candidate: kind, endpoint bound before, distance from it.
Bound = tuple[int, int, int]

#: Bounds beyond this are none, so that they can be added to any time.
_LARGE = 1 << 62

#: Allen's relations in the order of their bits in a mask.
RELATIONS = (
    "before", "meets", "overlaps", "finished-by", "contains", "starts", "equals", "started-by", "during", "finishes",
    "overlapped-by", "met-by", "after",
)  # fmt: skip
ALL = (1 << len(RELATIONS)) - 1
#: Relations that are certain once both situations have begun: one of them is over by then.
_CERTAIN = 0b1100000000011
#: Relations that look alike until one of the situations ends.
_PREFIX_GROUPS = (0b0000000011100, 0b0000011100000, 0b0011100000000)
#: For every relation of (A, B), the (v, u, bound on u - v) that define it, by A.ts, A.te, B.ts, B.te.
_DEFINITIONS = (
    ((2, 1, -1),),
    ((1, 2, 0), (2, 1, 0)),
    ((2, 0, -1), (1, 2, -1), (3, 1, -1)),
    ((2, 0, -1), (1, 3, 0), (3, 1, 0)),
    ((2, 0, -1), (1, 3, -1)),
    ((0, 2, 0), (2, 0, 0), (3, 1, -1)),
    ((0, 2, 0), (2, 0, 0), (1, 3, 0), (3, 1, 0)),
    ((0, 2, 0), (2, 0, 0), (1, 3, -1)),
    ((0, 2, -1), (3, 1, -1)),
    ((0, 2, -1), (1, 3, 0), (3, 1, 0)),
    ((0, 2, -1), (3, 0, -1), (1, 3, -1)),
    ((0, 3, 0), (3, 0, 0)),
    ((0, 3, -1),),
)
#: Kinds of bounds on a candidate: on its ts from below and above, on its te from below and above.
TS_FROM, TS_TO, TE_FROM, TE_TO = range(4)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A conjunction of pair constraints, durations and a formula, over m roles."""

    #: int64[m]: number of the definition that role i takes its situations from.
    definition: Int64Array
    #: int64[m, m]: bit r of [i, j], i < j, is set where relation r of (i, j) is allowed; only i < j is read.
    masks: Int64Array
    #: int64[m], int64[m]: bounds on te - ts; 1 (0, where a situation may be a point) and NONE bound nothing.
    at_least: Int64Array
    at_most: Int64Array
    #: int64[Z, 2m, 2m]: closed zones of the negated formula, with ts + 1 <= te of every role known.
    zones: Int64Array
    #: int64[2m, 2m]: bounds that the formula implies, for narrowing the search: sound, not necessarily tight.
    implied: Int64Array
    #: Greatest detected - min ts, or NONE.
    within: int
    #: Detected when all ends are known, else when the match is certain.
    final: bool
    #: bool[D]: whether the situations of a definition are disjoint, as derived ones are. None: all are.
    disjoint: BoolArray | None = None

    @classmethod
    def of_pairs(cls, masks: Int64Array, *, within: int = NONE, final: bool = False) -> Pattern:
        """A pattern of pair constraints alone, in which role i has definition i."""
        roles = len(masks)
        return cls(
            definition=np.arange(roles),
            masks=masks,
            at_least=np.ones(roles, dtype=np.int64),
            at_most=np.full(roles, NONE),
            zones=np.empty((0, 2 * roles, 2 * roles), dtype=np.int64),
            implied=np.full((2 * roles, 2 * roles), NONE),
            within=within,
            final=final,
        )


@dataclass(frozen=True, slots=True)
class Steps:
    """A pattern with evaluation orders. Cell i * m + k is step k of trigger role i."""

    pattern: Pattern
    #: int64[m, m]: the roles in the order in which trigger role i binds them; [i, 0] == i.
    order: Int64Array
    #: int64[m * m + 1], int64[B, 3]: bounds on a step's candidate: kind, endpoint bound before, distance from it.
    bound_first: Int64Array
    bounds: Int64Array
    #: int64[m * m + 1], int64[P, 3]: constraints to roles bound before: that role, the relations of (it, candidate)
    #: that are allowed, and those of them that are certain when both have begun.
    pair_first: Int64Array
    pairs: Int64Array


def plan_steps(pattern: Pattern, order: Int64Array) -> Steps:
    """Computes the bounds and constraints of every step."""
    roles = len(pattern.definition)
    hull = hull_of(pattern)
    for role in range(roles):  # of durations what a step looks at: a bound that a tighter one implies is needed
        ts, te = 2 * role, 2 * role + 1
        hull[te][ts], hull[ts][te] = -int(pattern.at_least[role]), int(pattern.at_most[role])
    bound_first, bounds, pair_first, pairs = [0], list[Bound](), [0], list[tuple[int, int, int]]()
    for trigger in range(roles):
        for step in range(roles):
            candidate, earlier = int(order[trigger, step]), [int(role) for role in order[trigger, :step]]
            bounds += bounds_of_step(hull, candidate, earlier)
            bound_first.append(len(bounds))
            for role in earlier:
                mask = _mask(pattern, role, candidate)
                if mask != ALL:
                    pairs.append((role, mask, _certain(mask)))
            pair_first.append(len(pairs))
    return Steps(
        pattern,
        np.ascontiguousarray(order, dtype=np.int64),
        np.array(bound_first, dtype=np.int64),
        np.array(bounds, dtype=np.int64).reshape(-1, 3),
        np.array(pair_first, dtype=np.int64),
        np.array(pairs, dtype=np.int64).reshape(-1, 3),
    )


@dataclass(frozen=True, slots=True)
class Instant:
    """An endpoint plus a distance: no match is detected before, and each at one of its instants.

    `always`: of every match; else only of those in which the endpoint decides when a relation is certain.
    """

    end: int
    distance: int
    always: bool


def instants_of(pattern: Pattern) -> list[Instant]:
    """The instants of which the latest is the detection of a match. A formula may put it off further.

    Of a pair whose relation an end decides, that is the end that comes first in all allowed relations. Where none does,
    or where another allowed relation is certain before, some end may be.
    """
    instants: list[Instant] = []
    for role in range(len(pattern.definition)):
        ts, te = 2 * role, 2 * role + 1
        if pattern.final:
            instants.append(Instant(te, 0, True))
            continue
        instants.append(Instant(ts, max(int(pattern.at_least[role]), 1) - 1, True))
        if pattern.at_most[role] != NONE:
            instants.append(Instant(te, 0, True))
    for pair in combinations(range(0 if pattern.final else len(pattern.definition)), 2):
        deciding = _deciding(int(pattern.masks[pair]))
        instants += [Instant(2 * pair[side] + 1, 0, always) for side, always in deciding]
    return instants


def latest(instants: list[Instant], hull: Matrix) -> list[Instant]:
    """Those of the instants that no other one follows in every match, or equals."""
    left = list(instants)
    for instant in instants:
        if any(later is not instant and _follows(later, instant, hull) for later in left):
            left.remove(instant)
    return left


def triggering(pattern: Pattern) -> tuple[BoolArray, BoolArray]:
    """bool[D], bool[D]: the definitions whose situations can be the last that a match needs to be certain, by their
    starts and by their ends.

    A situation that is over when another of its match begins can not: whatever it settles, the other's start settles
    later. Not said where a formula counts on from endpoints, or where points could be over and begin at once.
    """
    starts, ends = (np.zeros(int(pattern.definition.max()) + 1, dtype=np.bool_) for _ in range(2))
    if len(pattern.zones) or pattern.at_least.min() < 1:
        return ~starts, ~ends
    for instant in latest(instants_of(pattern), hull_of(pattern)):
        (ends if instant.end % 2 else starts)[pattern.definition[instant.end // 2]] = True
    return starts, ends


def large(matrix: Matrix) -> bool:
    """Whether a bound is so large that it can not be added to any time."""
    return any(abs(bound) >= _LARGE for row in matrix for bound in row if bound != NONE)


def hull_of(pattern: Pattern) -> Matrix:
    """The closed difference bounds over 2m endpoints that hold in every match. They leave out the window."""
    roles = len(pattern.definition)
    hull = [[int(bound) for bound in row] for row in pattern.implied]
    for role in range(roles):
        tighten(hull, 2 * role + 1, 2 * role, -int(pattern.at_least[role]))
        tighten(hull, 2 * role, 2 * role + 1, int(pattern.at_most[role]))
        for other_role in range(role + 1, roles):
            ends = (2 * role, 2 * role + 1, 2 * other_role, 2 * other_role + 1)
            mask = int(pattern.masks[role, other_role])
            for v, row in enumerate(_pair_hull(mask) if mask != ALL else ()):
                for u, bound in enumerate(row):
                    tighten(hull, ends[v], ends[u], bound)
    return closed(hull)


def mask_of(pattern: Pattern, left: int, right: int) -> int | None:
    """The relations of (one, other) that are allowed; None where all are."""
    mask = _mask(pattern, left, right)
    return None if mask == ALL else mask


@cache
def exact(mask: int) -> bool:
    """Whether the difference bounds that contain the relations of a mask contain no other relation."""
    hull = _pair_hull(mask)
    for bit, definition in enumerate(_DEFINITIONS):
        if not mask >> bit & 1:
            zone = [list(row) for row in hull]
            for v, u, bound in (*definition, (1, 0, -1), (3, 2, -1)):
                tighten(zone, v, u, bound)
            if all(closed(zone)[v][v] >= 0 for v in range(4)):
                return False
    return True


def inverse(mask: int) -> int:
    """The relations of (B, A) for those of (A, B): bit r becomes bit 12 - r."""
    bits = range(len(RELATIONS))
    return sum(1 << len(RELATIONS) - 1 - bit for bit in bits if mask >> bit & 1)


def _mask(pattern: Pattern, left: int, right: int) -> int:
    return int(pattern.masks[left, right]) if left < right else inverse(int(pattern.masks[right, left]))


def _certain(mask: int) -> int:
    """The allowed relations that are certain before an end is known, because their whole prefix group is allowed."""
    return mask & _CERTAIN | sum(group for group in _PREFIX_GROUPS if group & mask == group)


def _pair_hull(mask: int) -> Matrix:
    """The least difference bounds over A.ts, A.te, B.ts, B.te that contain every allowed relation."""
    zones = []
    for bit, definition in enumerate(_DEFINITIONS):
        if mask >> bit & 1:
            zone = [[NONE] * 4 for _ in range(4)]
            for v, u, bound in (*definition, (1, 0, -1), (3, 2, -1)):
                tighten(zone, v, u, bound)
            zones.append(closed(zone))
    if not zones:
        return [[NONE] * 4 for _ in range(4)]
    return [[max(zone[v][u] for zone in zones) for u in range(4)] for v in range(4)]


def tighten(matrix: Matrix, v: int, u: int, bound: int) -> None:
    matrix[v][u] = min(matrix[v][u], bound)


@cache
def _deciding(mask: int) -> tuple[tuple[int, bool], ...]:
    """The sides of a pair whose ends may decide when it is certain, 0 and 1, each with whether that end always does.

    It may then always do so in before and meets, too: it has passed when both have begun.
    """
    certain, hull = _certain(mask), _pair_hull(mask)
    if certain == mask:
        return ()
    sides = [side for side, first in enumerate((hull[3][1], hull[1][3])) if first <= 0] or [0, 1]
    always = not certain & ~_CERTAIN and (len(sides) == 1 or hull[3][1] <= 0)
    return tuple((side, always) for side in sides)


def _follows(later: Instant, earlier: Instant, hull: Matrix) -> bool:
    """Whether an instant is in every match, and in none before the other."""
    distance = 0 if later.end == earlier.end else hull[later.end][earlier.end]
    return later.always and distance <= later.distance - earlier.distance


def closed(matrix: Matrix) -> Matrix:
    """The shortest paths between all pairs (Floyd-Warshall). Sums stay small enough to be added to a time."""
    ends = range(len(matrix))
    for via in ends:
        for v in ends:
            for u in ends:
                if matrix[v][via] != NONE and matrix[via][u] != NONE:
                    length = matrix[v][via] + matrix[via][u]
                    if length < _LARGE:
                        tighten(matrix, v, u, max(length, -_LARGE))
    return matrix


def bounds_of_step(hull: Matrix, candidate: int, earlier: list[int]) -> list[Bound]:
    """The bounds on a candidate by the endpoints bound before, without those that other bounds imply."""
    ts, te = 2 * candidate, 2 * candidate + 1
    known = {end for role in earlier for end in (2 * role, 2 * role + 1)}
    ends = [(v, u) for end in sorted(known) for endpoint in (ts, te) for v, u in ((end, endpoint), (endpoint, end))]
    edges = {(v, u): hull[v][u] for v, u in ends if hull[v][u] != NONE}
    for v, u in list(edges):
        if any(_implied(hull, edges, (v, via), (via, u), known) for via in {*known, ts, te} - {v, u}):
            del edges[v, u]
    kinds = {ts: (TS_FROM, TS_TO), te: (TE_FROM, TE_TO)}
    return [(kinds[v][0], u, -bound) if v in kinds else (kinds[u][1], v, bound) for (v, u), bound in edges.items()]


def _implied(hull: Matrix, edges: Edges, first: Edge, second: Edge, known: set[int]) -> bool:
    """Whether the path along both edges is as tight as the direct edge and neither edge was left out."""
    (v, via), (_, u) = first, second
    if NONE in (hull[v][via], hull[via][u]) or hull[v][via] + hull[via][u] > hull[v][u]:
        return False
    return all(edge in edges or len(known & {*edge}) != 1 for edge in (first, second))
