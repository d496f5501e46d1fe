"""Chapter 2 of Körber's thesis (Marburg 2021): its definitions and figures by number, each with what it says as judge.

Streams come in batches, each in any order, and after each batch exactly those results are there that are final.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import Any, Literal

import pytest

import tidegate as tg

Event = tuple[int, int]
#: Events of a window, and its timestamp.
Window = tuple[Sequence[Event], int]
Strategy = Literal["contiguous", "next", "any"]

E = tg.stream("E", "t bigint, v bigint", progress="t")
F = tg.stream("F", "t bigint, w bigint", progress="t")
#: An event stream with duplicate timestamps, which an additional attribute orders.
TIED = tg.stream("T", "t bigint, n bigint", progress="t")
#: Events of which the sum of codes says which they are.
TRACE = tg.stream("P", "t bigint, v bigint, code bigint", progress="t")
KEYED = tg.stream("K", "t bigint, k bigint, v bigint", progress="t")
ASKED = tg.stream("A", "t bigint", progress="t")
#: The five events of Figures 2.1 to 2.5, and the stream that Figure 2.5 joins with them.
FIGURE = ((0, 2), (1, 7), (3, 5), (6, 3), (7, 4))
OTHERS = ((2, 6), (4, 6), (8, 5))
SEEDS = range(2)


def run(relation: tg.Relation, *names: str, at: str = "t", seed: int = 0, **rows: Sequence[Any]) -> list[Any]:
    """The result rows as tuples of these attributes, in order. What is there after a batch is final by `at`."""
    rng = random.Random(f"chapter 2 {seed}")
    instants = sorted({row[0] for own in rows.values() for row in own})
    cuts = sorted(rng.sample(instants, min(2, len(instants))))
    seen: list[tuple[int, list[Any]]] = []
    with tg.program(Out=relation).session() as session:
        for begin, end in pairwise((-1, *cuts, 1000)):
            for stream, own in rows.items():
                new = [row for row in own if begin < row[0] <= end]
                session.push(stream, rng.sample(new, len(new)))
                session.advance(stream, end)
            session.step()
            seen.append((end, [dict(row) for row in session.results("Out")]))
    results = seen[-1][1]
    for end, before in seen:
        assert _listed(before, names) == _listed([row for row in results if row[at] <= end], names)
    return _listed(results, names)


def _listed(rows: Sequence[Any], names: Sequence[str]) -> list[Any]:
    return sorted((tuple(row[name] for name in names) for row in rows), key=lambda row: [str(v).zfill(4) for v in row])


def events(seed: int, most: int = 9) -> list[Event]:
    """At least one, at different instants."""
    rng = random.Random(f"events {seed}")
    return [(t, rng.randrange(8)) for t in sorted(rng.sample(range(20), rng.randrange(1, most)))]


def content(window: Window) -> str | None:
    """The values of a window, in order; None of one without events."""
    return " ".join(str(v) for _, v in window[0]) or None


# --- 2.1 Data streams -------------------------------------------------------------------------------------------------

numbered = E.over(order="t", number=tg.row_number())


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_1_a_data_stream_is_totally_ordered(seed: int) -> None:
    """However its items arrive, the i-th is the i-th in order."""
    stream = events(seed)
    assert run(numbered, "number", "t", "v", seed=seed, E=stream) == [(i, *e) for i, e in enumerate(stream, 1)]


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_2_a_contiguous_subsequence_has_every_item_between_two(seed: int) -> None:
    stream = events(seed)
    inside = numbered.where(numbered.number >= 2, numbered.number <= 4)
    assert run(inside, "t", "v", seed=seed, E=stream) == stream[1:4]


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_3_a_union_has_each_item_of_both_in_one_order(seed: int) -> None:
    first, second = events(seed), events(seed + 10)
    union = E.union(F.rename(w="v"))
    assert run(union, "t", "v", seed=seed, E=first, F=second) == sorted([*first, *second])


# --- 2.2 Event streams ------------------------------------------------------------------------------------------------


def test_definition_2_4_an_event_has_attributes_and_a_timestamp() -> None:
    assert [(a.name, a.temporal) for a in E.schema.attributes] == [("t", True), ("v", False)]
    assert run(E.select("t", payload=E.v), "payload", "t", E=[(4, 7)]) == [(7, 4)]


def test_definition_2_5_ties_are_broken_by_an_additional_attribute() -> None:
    rows = [(1, 10), (1, 11), (2, 9), (2, 12)]
    ordered = TIED.over(order="t", tie="n", number=tg.row_number())
    assert run(ordered, "number", "t", "n", T=rows) == [(i, *row) for i, row in enumerate(rows, 1)]
    unordered = tg.program(Out=TIED.over(order="t", number=tg.row_number()))
    with pytest.raises(tg.TidegateError, match="TG304"):
        unordered.run({"T": tg.source(rows, ties="fail")})


def tau(stream: Sequence[Event], t: int) -> int:
    """The index, from 1 on, of the first event at `t` or later."""
    return next((i for i, event in enumerate(stream, 1) if event[0] >= t), len(stream) + 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_6_an_interval_of_time_is_a_contiguous_subsequence(seed: int) -> None:
    """[t1, t2) are the events from τ(t1) to τ(t2) − 1."""
    stream, (t1, t2) = events(seed), (4, 13)
    found = run(numbered.where(numbered.t >= t1, numbered.t < t2), "number", seed=seed, E=stream)
    assert found == [(i,) for i in range(tau(stream, t1), tau(stream, t2))]


# --- 2.3.1 Windows ----------------------------------------------------------------------------------------------------


def count_windows(stream: Sequence[Event], size: int, slide: int) -> list[Window]:
    """Definition 2.7."""
    starts = range(0, len(stream) - size + 1, slide)
    return [(stream[start : start + size], stream[start + size - 1][0]) for start in starts]


def time_windows(stream: Sequence[Event], size: int, slide: int) -> list[Window]:
    """Definition 2.8, up to the last window that an event of a bounded stream is in."""
    starts = range(stream[0][0], stream[-1][0] + 1, slide)
    return [(stream[tau(stream, start) - 1 : tau(stream, start + size) - 1], start + size - 1) for start in starts]


def active(windows: Sequence[Window], t: int) -> Window | None:
    """Definition 2.9: the last window that has its timestamp by then; None where none has."""
    return max((window for window in windows if window[1] <= t), key=lambda window: window[1], default=None)


VALUES = tg.string_agg(E.v.cast("string"), " ", by=E.t)


def of_rows(size: int, slide: int) -> tg.Relation:
    return E.windows(tg.rows(size, every=slide, align="first")).agg(seq=VALUES)


def of_time(size: int, slide: int, **aggregates: Any) -> tg.Relation:
    """A window of ours has its end and not its start: the instant before the first event is the first start."""
    bounds = tg.hopping(size, every=slide, align="first", empty=True)
    return E.windows(bounds).agg(**(aggregates or {"seq": VALUES}))


@pytest.mark.parametrize(
    ("size", "slide"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 3), (4, 2), (3, 2), (5, 3), (2, 3), (1, 4)]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_7_count_windows(seed: int, size: int, slide: int) -> None:
    stream = events(seed)
    found = run(of_rows(size, slide), "end", "seq", at="end", seed=seed, E=stream)
    assert found == [(window[1], content(window)) for window in count_windows(stream, size, slide)]


@pytest.mark.parametrize(
    ("slide", "expected"),
    [(1, [(1, "2 7"), (3, "7 5"), (6, "5 3"), (7, "3 4")]), (2, [(1, "2 7"), (6, "5 3")])],
    ids=["a", "b"],
)
def test_figure_2_1_sliding_and_tumbling_count_windows(slide: int, expected: list[Any]) -> None:
    assert run(of_rows(2, slide), "end", "seq", at="end", E=FIGURE) == expected


@pytest.mark.parametrize(("size", "slide"), [(1, 1), (2, 1), (2, 2), (5, 2), (4, 4), (7, 3)])
@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_8_time_windows(seed: int, size: int, slide: int) -> None:
    """They begin with the first event, and may be empty."""
    stream = events(seed)
    found = run(of_time(size, slide), "end", "seq", at="complete", seed=seed, E=stream)
    assert found == [(window[1], content(window)) for window in time_windows(stream, size, slide)]


@pytest.mark.parametrize(
    ("slide", "expected"),
    [
        (1, [(1, "2 7"), (2, "7"), (3, "5"), (4, "5"), (5, None), (6, "3"), (7, "3 4"), (8, "4")]),
        (2, [(1, "2 7"), (3, "5"), (5, None), (7, "3 4")]),
    ],
    ids=["a", "b"],
)
def test_figure_2_2_sliding_and_tumbling_time_windows(slide: int, expected: list[Any]) -> None:
    assert run(of_time(2, slide), "end", "seq", at="complete", E=FIGURE) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_9_the_active_window_of_rows(seed: int) -> None:
    """The last window up to an instant, which is the as-of join of the instant with the windows."""
    stream, asked = events(seed), range(22)
    windows, instants = of_rows(3, 1).as_("w"), ASKED.as_("a")
    seen = instants.asof_join(windows, left_on="a.t", right_on="w.end").select("a.t", "seq")
    of_stream = count_windows(stream, 3, 1)
    expected = [(t, None if (window := active(of_stream, t)) is None else content(window)) for t in asked]
    assert run(seen, "t", "seq", seed=seed, E=stream, A=[(t,) for t in asked]) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_9_the_active_window_of_time(seed: int) -> None:
    """Of a sliding one the events of the last instants, from the first whole window on."""
    stream, size = events(seed), 4
    asked = range(stream[0][0] + size - 1, stream[-1][0] + 1)
    instants, rows = ASKED.as_("a"), E.as_("e")
    seen = (
        instants.left_join(rows, instants.t - size < rows.t, rows.t <= instants.t)
        .group_by(instants.t)
        .agg(seq=tg.string_agg(rows.v.cast("string"), " ", by=rows.t))
    )
    windows = time_windows(stream, size, 1)
    found = run(seen, "t", "seq", seed=seed, E=stream, A=[(t,) for t in asked])
    assert found == [(t, content(window)) for t in asked if (window := active(windows, t)) is not None]


# --- 2.3.2 and 2.3.3 Filters and aggregation --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_10_a_filter_keeps_all_events_that_fulfil_it(seed: int) -> None:
    stream = events(seed)
    assert run(E.where(E.v > 3), "t", "v", seed=seed, E=stream) == [event for event in stream if event[1] > 3]


def test_figure_2_3_a_filter() -> None:
    assert run(E.where(E.v > 3), "t", "v", E=FIGURE) == [(1, 7), (3, 5), (7, 4)]


GAMMA: dict[str, Any] = {"n": tg.count(), "total": tg.sum(E.v), "least": tg.min(E.v), "most": tg.max(E.v)}


def gamma(window: Window) -> tuple[int | None, ...]:
    values = [v for _, v in window[0]]
    return (window[1], len(values), *((sum(values), min(values), max(values)) if values else (None, None, None)))


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_11_windowed_aggregation(seed: int) -> None:
    """Every window gives one event, at its timestamp."""
    stream, names = events(seed), ("end", *GAMMA)
    rows = E.windows(tg.rows(2, every=1)).agg(**GAMMA)
    assert run(rows, *names, at="end", seed=seed, E=stream) == list(map(gamma, count_windows(stream, 2, 1)))
    ticks = of_time(5, 2, **GAMMA)
    assert run(ticks, *names, at="complete", seed=seed, E=stream) == list(map(gamma, time_windows(stream, 5, 2)))


def test_figure_2_4_sums_of_a_sliding_time_window() -> None:
    """A result for every instant, w1 to w7."""
    sums = run(of_time(2, 1, total=tg.sum(E.v)), "end", "total", at="complete", E=FIGURE)
    assert sums[:7] == [(1, 9), (2, 7), (3, 5), (4, 5), (5, None), (6, 3), (7, 7)]


# --- 2.3.4 Windowed joins ---------------------------------------------------------------------------------------------


def single_event_join(event: Event, others: Sequence[Event], *, is_left: bool) -> list[tuple[int, int, int]]:
    """Definition 2.12, with sliding count windows of two events and v <= w."""
    window = active(count_windows(others, 2, 1), event[0])
    values = [] if window is None else [value for _, value in window[0]]
    pairs = [(event[1], value) if is_left else (value, event[1]) for value in values]
    return [(event[0], v, w) for v, w in pairs if v <= w]


def with_window(rows: tg.Relation, value: str, others: tg.Relation, other: str) -> tg.Relation:
    """Each row with both rows of the window that is active at its instant."""
    one, two = tg.first(others[other], by=others.t), tg.last(others[other], by=others.t)
    windows = others.windows(tg.rows(2, every=1)).agg(one=one, two=two).as_("w")
    seen = rows.as_("r").asof_join(windows, left_on="r.t", right_on="w.end", how="inner")
    first, second = (seen.select("r.t", **{value: f"r.{value}", other: f"w.{which}"}) for which in ("one", "two"))
    return first.union(second)


def fulfilled(pairs: tg.Relation) -> tg.Relation:
    return pairs.where(pairs.v <= pairs.w)


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_12_the_join_of_a_single_event(seed: int) -> None:
    others = events(seed)
    joined = fulfilled(with_window(E, "v", F, "w"))
    for t in (3, 9, 17):
        found = run(joined, "t", "v", "w", seed=seed, E=[(t, 3)], F=others)
        assert found == sorted(single_event_join((t, 3), others, is_left=True))


BOTH = fulfilled(with_window(E, "v", F, "w").union(with_window(F, "w", E, "v")))


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_13_windowed_joins(seed: int) -> None:
    """Each event of one stream with the active window of the other. Windows of time: test_windowed_joins.py."""
    left, right = events(seed), events(seed + 10)
    of_left = [pair for event in left for pair in single_event_join(event, right, is_left=True)]
    of_right = [pair for event in right for pair in single_event_join(event, left, is_left=False)]
    assert run(BOTH, "t", "v", "w", seed=seed, E=left, F=right) == sorted(of_left + of_right)


def test_figure_2_5_a_windowed_join() -> None:
    """At t + 4 one result: of the window (7 at t + 1, 5 at t + 3) only the latter fulfils v <= 6."""
    of_right = [(2, 2, 6), (4, 5, 6), (8, 3, 5), (8, 4, 5)]
    of_left = [(6, 3, 6), (6, 3, 6), (7, 4, 6), (7, 4, 6)]
    assert run(fulfilled(with_window(F, "w", E, "v")), "t", "v", "w", E=FIGURE, F=OTHERS) == of_right
    assert run(fulfilled(with_window(E, "v", F, "w")), "t", "v", "w", E=FIGURE, F=OTHERS) == of_left
    assert run(BOTH, "t", "v", "w", E=FIGURE, F=OTHERS) == sorted(of_left + of_right)


# --- 2.3.5 Sequential pattern matching --------------------------------------------------------------------------------

SYMBOLS = "abcx"


def trace_of(symbols: str, times: Sequence[int]) -> list[tuple[int, int, int]]:
    """Events of a symbol trace: their instants, symbols as numbers, and codes."""
    return [(t, SYMBOLS.index(s), 1 << i) for i, (s, t) in enumerate(zip(symbols, times, strict=True))]


def matching(symbols: str, times: Sequence[int], within: int, fits: Callable[[str, Sequence[int]], bool]) -> list[Any]:
    """Definition 2.18 of the pattern A B* C: of each matching subsequence its last instant, and who it is."""
    found = []
    for size in range(1, len(symbols) + 1):
        for places in combinations(range(len(symbols)), size):
            spelt = "".join(symbols[at] for at in places)
            spans = times[places[-1]] - times[places[0]]
            if re.fullmatch("ab*c", spelt) and spans <= within and fits(symbols, places):
                found.append((times[places[-1]], sum(1 << at for at in places)))
    return sorted(found, key=lambda row: [str(v).zfill(4) for v in row])


def skipped(symbols: str, places: Sequence[int]) -> str:
    return "".join(symbols[at] for at in range(places[0], places[-1]) if at not in places)


#: Definitions 2.15 to 2.17: what may be skipped. Of skip-till-next the norm is Table 4.1, nothing that a symbol could
#: take which may come next: behind A or B that is B or C.
FITS: dict[Strategy, Callable[[str, Sequence[int]], bool]] = {
    "any": lambda symbols, places: True,
    "next": lambda symbols, places: not {*skipped(symbols, places)} & {"b", "c"},
    "contiguous": lambda symbols, places: not skipped(symbols, places),
}


def patterns(strategy: Strategy, within: int) -> tg.Relation:
    """The mapping function sums up the codes of the events."""
    define: dict[str, Any] = {
        name: (lambda m, name=name, value=value: m[name].v == value) for value, name in enumerate("ABC")
    }
    return TRACE.sequences(
        "A B* C", define=define, within=within, matches=strategy, map=lambda m: m.rows.agg(tg.sum(TRACE.code))
    )


def test_definition_2_14_a_pattern_query_has_symbols_a_window_a_mapping_and_a_strategy() -> None:
    """The faulty cooling: a continuous rise that ends five degrees above where it began."""
    rows = [(t, degrees, 0) for t, degrees in enumerate((20, 21, 23, 25, 24, 30))]
    define: dict[str, Any] = {"B": lambda m: m.B.v > m.B.prev().v, "C": lambda m: m.C.v >= m.A.v + 5}

    def rises(within: int) -> tg.Relation:
        return TRACE.sequences(
            "A B* C", define=define, within=within, matches="contiguous", rise=lambda m: m.C.v - m.A.v
        )

    names = ("first", "last", "rise")
    assert run(rises(9), *names, at="detected", P=rows) == [(0, 3, 5), (4, 5, 6)]
    assert run(rises(2), *names, at="detected", P=rows) == [(4, 5, 6)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("strategy", "definition"),
    [("any", "2.15 skip-till-any"), ("next", "2.16 skip-till-next"), ("contiguous", "2.17 contiguous")],
    ids=lambda value: value if value[0].isdigit() else "",
)
def test_definitions_2_15_to_2_18_matches(strategy: Strategy, definition: str, seed: int) -> None:
    """Every match gives one event, at its last instant (2.18)."""
    rng = random.Random(f"trace {seed}")
    symbols = "".join(rng.choices(SYMBOLS, (3, 3, 3, 1), k=8))
    times, within = sorted(rng.sample(range(20), 8)), rng.choice((5, 9, 30))
    found = run(patterns(strategy, within), "detected", "map", at="detected", seed=seed, P=trace_of(symbols, times))
    assert found == matching(symbols, times, within, FITS[strategy]), (definition, symbols)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("contiguous", ["a2 c1"]),
        ("next", ["a1 b1 c1", "a2 c1"]),
        ("any", ["a1 b1 b2 c2", "a1 b1 c1", "a1 b1 c2", "a1 b2 c2", "a1 c1", "a1 c2", "a2 b2 c2", "a2 c1", "a2 c2"]),
    ],
)
def test_figure_2_6_matches_of_the_three_strategies(strategy: Strategy, expected: list[str]) -> None:
    """With skip-till-any the figure lists ⟨a1, c2⟩ twice and leaves out ⟨a2, c2⟩."""
    names = ("a1", "b1", "a2", "c1", "b2", "c2")
    rows = trace_of("".join(name[0] for name in names), range(6))
    codes = [code for (code,) in run(patterns(strategy, 9), "map", at="detected", P=rows)]
    assert sorted(" ".join(n for i, n in enumerate(names) if code >> i & 1) for code in codes) == expected


# --- 2.4 Situations ---------------------------------------------------------------------------------------------------

HIGH = KEYED.partition_by("k").derive(High=tg.situation(KEYED.v > 3, n=tg.count(), most=tg.max(KEYED.v))).High


def situations(stream: Sequence[Event]) -> list[tuple[int, ...]]:
    """[ts, te) of each run of events above 3, the first event after it being its end, with aggregates."""
    found, running = list[tuple[int, ...]](), list[Event]()
    for event in stream:
        if event[1] > 3:
            running.append(event)
        elif running:
            found.append((running[0][0], event[0], len(running), max(v for _, v in running)))
            running = []
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_19_a_situation_has_attributes_and_two_timestamps(seed: int) -> None:
    stream = events(seed, 16)
    found = run(HIGH, "ts", "te", "n", "most", at="te", seed=seed, K=[(t, 1, v) for t, v in stream])
    assert found == situations(stream)
    assert all(ts < te for ts, te, *_ in found)
    rows = tg.stream("I", "a bigint, b bigint", progress="b", temporal="a")
    one, other = (rows.as_intervals(start="a", end="b", name=name) for name in ("One", "Other"))
    with pytest.raises(tg.QueryError, match="TG161"):
        tg.program(Met=tg.match(one.meets(other), within=5)).explain()


@pytest.mark.parametrize("seed", SEEDS)
def test_definition_2_20_a_situation_stream_is_ordered_by_ends(seed: int) -> None:
    """Of several partitions, too: what is there after a batch has all ends up to its progress, and `run` asks so."""
    streams = {k: events(seed + 10 * k, 16) for k in (1, 2, 3)}
    rows = sorted((t, k, v) for k, stream in streams.items() for t, v in stream)
    found = run(HIGH, "te", "ts", "k", at="te", seed=seed, K=rows)
    expected = sorted((te, ts, k) for k, stream in streams.items() for ts, te, *_ in situations(stream))
    assert found == expected
