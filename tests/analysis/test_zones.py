"""Zones against brute force on small grids of integers (rule R4)."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.algebra.time import INF
from tidegate.analysis.zones.normal_form import Bound
from tidegate.analysis.zones.zone import NONE, Conflict, Edge, Hidden, Layout, Matrix, Zone, chain, close, hull, reduced

N = 4
ROWS: tuple[Hidden, ...] = tuple(("x", i, "t") for i in range(N))
NAMES = tuple(f"a{i}" for i in range(N))
LAYOUT = Layout(ROWS, {name: i for i, name in enumerate(NAMES)})
GRID = np.array(list(product(range(-4, 5), repeat=N)), dtype=np.int64)

constraints = st.lists(
    st.tuples(st.integers(0, N - 1), st.integers(0, N - 1), st.integers(-3, 3)).filter(lambda c: c[0] != c[1]),
    max_size=7,
)
Constraints = list[tuple[int, int, int]]


def bounds(given_: Constraints) -> list[Bound]:
    return [Bound(NAMES[v], NAMES[w], c) for w, v, c in given_]


def satisfying(given_: Constraints) -> Matrix:
    mask = np.ones(len(GRID), dtype=bool)
    for w, v, c in given_:
        mask &= GRID[:, v] - GRID[:, w] <= c
    return GRID[mask]


def inside(matrix: Matrix, points: Matrix) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    differences = points[:, None, :] - points[:, :, None]
    return np.asarray((differences <= matrix[None]).all(axis=(1, 2)))


def matrix_of(given_: Constraints) -> Matrix:
    matrix = np.full((N, N), NONE, dtype=np.int64)
    np.fill_diagonal(matrix, 0)
    for w, v, c in given_:
        matrix[w, v] = min(matrix[w, v], c)
    return matrix


@given(constraints)
def test_edge_by_edge_is_the_same_as_closing_at_once(given_: Constraints) -> None:
    zone = Zone.free(LAYOUT).conjoin(bounds(given_))
    closed = close(matrix_of(given_))
    if isinstance(zone, Conflict):
        assert closed is None
    else:
        assert closed is not None
        assert (zone.matrix == closed).all()


@given(constraints)
def test_a_zone_holds_exactly_the_satisfying_assignments(given_: Constraints) -> None:
    zone = Zone.free(LAYOUT).conjoin(bounds(given_))
    points = satisfying(given_)
    if isinstance(zone, Conflict):
        assert len(points) == 0
    else:
        assert inside(zone.matrix, GRID).sum() == len(points)


@given(constraints)
def test_distances_are_attained(given_: Constraints) -> None:
    """A finite bound is the largest difference that occurs: instants far enough apart are within the grid's reach."""
    zone = Zone.free(LAYOUT).conjoin(bounds(given_))
    if isinstance(zone, Conflict):
        return
    points = satisfying(given_)
    for w, v in product(range(N), repeat=2):
        distance = zone.distance(ROWS[w], ("a", NAMES[v]))
        largest = int((points[:, v] - points[:, w]).max(initial=-(10**6)))
        assert largest <= distance
        if distance != INF and len(points) and zone_fits_grid(zone):
            assert largest == distance


def zone_fits_grid(zone: Zone) -> bool:
    finite = zone.matrix[zone.matrix < NONE]
    return bool((np.abs(finite) <= 4).all())


@given(constraints)
def test_hiding_is_projection(given_: Constraints) -> None:
    """Each point of the smaller zone extends to a point of the larger one: hiding after closure is exact."""
    zone = Zone.free(LAYOUT).conjoin(bounds(given_))
    if isinstance(zone, Conflict):
        return
    small = zone.arranged(Layout(ROWS[:2], {NAMES[0]: 0, NAMES[1]: 1}))
    wide = np.array(list(product(range(-2, 3), range(-2, 3), range(-14, 15), range(-14, 15))), dtype=np.int64)
    projected = {tuple(point[:2]) for point in wide[inside(zone.matrix, wide)].tolist()}
    expected = {p for p in product(range(-2, 3), repeat=2) if inside(small.matrix, np.array([p], dtype=np.int64))[0]}
    assert projected == expected


@given(constraints)
def test_a_reduced_matrix_closes_to_the_same(given_: Constraints) -> None:
    closed = close(matrix_of(given_))
    if closed is None:
        return
    small = reduced(closed)
    again = close(matrix_of(list(small)))
    assert again is not None
    assert (again == closed).all()
    for left_out in range(len(small)):
        fewer = close(matrix_of([*small[:left_out], *small[left_out + 1 :]]))
        assert fewer is not None
        assert not (fewer == closed).all(), "a constraint of the reduced form is superfluous"


@given(constraints, constraints)
def test_the_hull_is_closed_and_contains_both(one: Constraints, other: Constraints) -> None:
    matrices = [closed for given_ in (one, other) if (closed := close(matrix_of(given_))) is not None]
    if not matrices:
        return
    around = hull(matrices)
    closed = close(around)
    assert closed is not None
    assert (closed == around).all()
    assert all((matrix <= around).all() for matrix in matrices)


@given(constraints)
def test_a_conflict_shows_a_cycle_of_given_constraints(given_: Constraints) -> None:
    zone = Zone.free(LAYOUT).conjoin(bounds(given_))
    if not isinstance(zone, Conflict):
        return
    cycle = zone.cycle()
    assert sum(edge.c for edge in cycle) < 0
    assert all(edge.v == after.w for edge, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    assert {(ROWS.index(e.w), ROWS.index(e.v), e.c) for e in cycle} <= set(given_)


@given(constraints)
def test_a_chain_adds_up_to_the_distance(given_: Constraints) -> None:
    zone = Zone.free(LAYOUT).conjoin(bounds(given_))
    if isinstance(zone, Conflict):
        return
    for w, v in product(ROWS, repeat=2):
        edges = zone.chain(w, v)
        distance = zone.distance(w, v)
        if w != v and distance != INF:
            assert sum(edge.c for edge in edges) == distance
            assert edges[0].w == w
            assert edges[-1].v == v
        else:
            assert edges == ()


@given(constraints)
def test_a_point_lies_in_its_zone(given_: Constraints) -> None:
    zone = Zone.free(LAYOUT).conjoin(bounds(given_))
    if not isinstance(zone, Conflict):
        point = zone.point()
        assert all(point[ROWS[v]] - point[ROWS[w]] <= c for w, v, c in given_)


@given(constraints, constraints)
def test_a_product_constrains_each_side_by_itself(one: Constraints, other: Constraints) -> None:
    first, second = Zone.free(LAYOUT).conjoin(bounds(one)), Zone.free(LAYOUT).conjoin(bounds(other))
    if isinstance(first, Conflict) or isinstance(second, Conflict):
        return
    moved: tuple[Hidden, ...] = tuple(("x", N + i, "t") for i in range(N))
    both = first.product(second, Layout(ROWS + moved, {}))
    assert (both.view(ROWS) == first.matrix).all()
    assert (both.view(moved) == second.matrix).all()
    assert both.distance(ROWS[0], moved[0]) == INF


def test_bounds_beyond_the_largest_are_weakened_not_wrapped() -> None:
    rows: tuple[Hidden, ...] = tuple(("x", i, "t") for i in range(200))
    names = [f"n{i}" for i in range(200)]
    zone = Zone.free(Layout(rows, {name: i for i, name in enumerate(names)}))
    up = zone.conjoin([Bound(names[i + 1], names[i], 2**54) for i in range(199)])
    down = zone.conjoin([Bound(names[i + 1], names[i], -(2**54)) for i in range(199)])
    assert isinstance(up, Zone)
    assert isinstance(down, Zone)
    assert up.distance(rows[0], rows[100]) == 100 * 2**54
    assert up.distance(rows[0], rows[199]) == INF
    assert down.distance(rows[0], rows[199]) == -(2**61)


def test_a_variable_that_a_zone_lacks_is_free() -> None:
    zone = Zone.free(LAYOUT)
    assert zone.distance(("x", 9, "t"), ROWS[0]) == INF
    assert zone.view([ROWS[0], ("x", 9, "t")]).tolist() == [[0, NONE], [NONE, 0]]


def test_the_shortest_of_parallel_constraints_is_in_the_chain() -> None:
    a, b = ROWS[:2]
    assert chain([Edge(a, b, 5), Edge(a, b, 2), Edge(a, b, 9)], a, b) == (Edge(a, b, 2),)


def test_a_variable_that_a_zone_lacks_is_as_far_from_itself_as_any() -> None:
    assert Zone.free(LAYOUT).distance(("x", 9, "t"), ("x", 9, "t")) == 0
