"""The figures of the TPStream papers (EDBT 2018, section 6; thesis, section 5.7), made again with this project's
engine.

    python benchmarks/papers.py                                                  # prints them
    python benchmarks/papers.py --write docs/explanation/tpstream-figures.md     # and puts them into the page

One key, 1 Hz, situations of 10-100 s, gaps of 10-50 s; the embedded engine's kernels in memory, one thread, in time of
that thread. Fewer events than in the papers: `--events` says how many. Targets that are missed are printed as missed.
"""

from __future__ import annotations

import argparse
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import papers_latency, papers_plans
from benchmarks.pattern_runs import Events, Ran, Relations, Rows, in_turn, pattern_of, planned, run

BEGIN, END = "<!-- figures: written by benchmarks/papers.py -->", "<!-- end of figures -->"
WINDOWS = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
DISCONNECTED: dict[str, Relations] = {
    "A before B, B overlaps C": {(0, 1): "before", (1, 2): "overlaps"},
    "A starts B, B before C, C overlaps D": {(0, 1): "starts", (1, 2): "before", (2, 3): "overlaps"},
}
#: In the pattern of the papers A waits for any later B, in the other one for a B that it overlaps.
LIVE: dict[str, Relations] = {
    "A before B, B overlaps C": {(0, 1): "before", (1, 2): "overlaps"},
    "A overlaps B, B before C": {(0, 1): "overlaps", (1, 2): "before"},
}
ANY_RELATION = (
    "before", "meets", "overlaps", "finished-by", "contains", "starts", "equals", "started-by", "during", "finishes",
    "overlapped-by", "met-by", "after",
)  # fmt: skip
DRAWS = 5


class Page:
    """Tables under titles, and targets with their verdicts; printed as they come."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.missed = 0

    def table(self, title: str, rows: Rows) -> None:
        head, *body = rows
        own = [f"### {title}", "", f"| {' | '.join(head)} |", "|" + " --- |" + " ---: |" * (len(head) - 1)]
        self._add([*own, *(f"| {' | '.join(row)} |" for row in body), ""])

    def target(self, what: str, value: float, most: float) -> None:
        self.missed += value > most
        self._add([f"- {what}: {value:.2f}, target at most {most:g}: **{'met' if value <= most else 'missed'}**", ""])

    def holds(self, what: str, right: bool) -> None:
        self.missed += not right
        self._add([f"- {what}: **{'holds' if right else 'does not hold'}**", ""])

    def _add(self, lines: list[str]) -> None:
        self.lines += lines
        print("\n".join(lines), flush=True)


def main() -> None:
    """Measures and prints; targets that are missed do not fail."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=2_000_000)
    options.add_argument("--only", choices=SECTIONS, help="print this section alone")
    options.add_argument("--write", type=Path)
    chosen = options.parse_args()
    if chosen.write and chosen.only:
        options.error("the page has all sections: --write without --only")
    page = Page()
    for name, measure in SECTIONS.items():
        if chosen.only in (None, name):
            measure(page, chosen.events)
    print(f"targets missed: {page.missed}")
    if chosen.write:
        text = chosen.write.read_text()
        head, rest = text.split(BEGIN)
        tables = "\n".join([f"{chosen.events:,} events.", "", *page.lines])
        chosen.write.write_text(f"{head}{BEGIN}\n\n{tables}\n{END}{rest.split(END)[1]}")


def windows(page: Page, count: int) -> None:
    """Both disconnected patterns over the window, counting and enumerating, with memory."""
    for name, relations in DISCONNECTED.items():
        roles = 1 + max(map(max, relations))
        events = Events.generate(count, roles)
        rows: Rows = [("window", "matches", "counting", "memory", "enumerating", "memory", "situations kept")]
        by_window = {window: pattern_of(relations, roles, within=window) for window in WINDOWS}
        counts = in_turn(
            [partial(run, events, pattern, planned(pattern), counting=True) for pattern in by_window.values()]
        )
        for (window, pattern), counted in zip(by_window.items(), counts, strict=True):
            _, counting = in_memory(partial(run, events, pattern, planned(pattern), counting=True))
            listed, enumerating = in_memory(partial(run, events, pattern, planned(pattern)))
            assert counted.matches == listed.matches
            rows.append(
                (
                    f"{window:,} s",
                    f"{counted.matches:,}",
                    f"{1000 * counted.seconds:.1f} ms",
                    f"{counting / 2**20:.1f} MiB",
                    f"{1000 * listed.seconds:.1f} ms",
                    f"{enumerating / 2**20:.1f} MiB",
                    f"{counted.kept:,}",
                )
            )
        taken = [counted.seconds for counted in counts]
        page.table(f"Processing time over the window: {name}", rows)
        page.target("counting, slowest window / quickest", max(taken) / min(taken), 1.3)


def in_memory(work: Callable[[], Ran]) -> tuple[Ran, int]:
    """What a run gives, and the most bytes that it held of arrays and Python's objects."""
    tracemalloc.start()
    try:
        ran = work()
        return ran, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def patterns(page: Page, count: int) -> None:
    """Five kinds of patterns over 4 to 10 situations, window 2,000 s."""
    events = {roles: Events.generate(count // 10, roles) for roles in range(4, 11)}
    rows: Rows = [("pattern", *(f"{roles} situations" for roles in events))]
    for kind in ("equal", "meets", "chain", "star", "combined"):
        cells = []
        for roles, own in events.items():
            taken = []
            for draw in range(1 if kind in ("equal", "meets") else DRAWS):
                pattern = pattern_of(drawn(kind, roles, draw), roles, within=2_000)
                taken.append(1e7 / count * 1000 * run(own, pattern, planned(pattern), counting=True).seconds)
            low, _, high = quantiles(taken, n=4, method="inclusive") if len(taken) > 1 else (0.0, 0.0, 0.0)
            cells.append(f"{median(taken):.0f}" + (f" ({low:.0f}-{high:.0f})" if len(taken) > 1 else ""))
        rows.append((kind, *cells))
    page.table("Query patterns: ms per million events, median (and quartiles of five random patterns)", rows)


def drawn(kind: str, roles: int, draw: int) -> Relations:
    """The pairs of a pattern with their relations, at most two of which are before or after: each of these
    multiplies.
    """
    chain = [(i, i + 1) for i in range(roles - 1)]
    half = roles // 2
    star = {"star": [(0, i) for i in range(1, roles)]}
    star["combined"] = [*chain[: half - 1], *((half - 1, i) for i in range(half, roles))]
    pairs = star.get(kind, chain)
    if kind in ("equal", "meets"):
        return dict.fromkeys(pairs, "equals" if kind == "equal" else "meets")
    rng = Random(f"{kind} {roles} {draw}")
    while True:
        names = [rng.choice(ANY_RELATION) for _ in pairs]
        if sum(name in ("before", "after") for name in names) <= 2:
            return dict(zip(pairs, names, strict=True))


def application_time(page: Page, count: int) -> None:
    """How much earlier matches are detected than at their last end."""
    rows, right = papers_latency.ahead(count // 2)
    page.table("Detection ahead of the last end, mean, window 1,000 s", rows)
    page.holds("every match is detected at B's start (before, meets) or A's end, final at B's end", right)


def wall_time(page: Page, count: int) -> None:
    """Event latency and processing latency over the rate of events."""
    window = min(100_000, count)
    page.table(
        f"Latency in wall time over the rate: A before B, B overlaps C, window {window:,} s",
        papers_latency.in_wall_time(window),
    )


def plan_quality(page: Page, count: int) -> None:
    """The initial plan, the best and the worst."""
    page.table("Initial plans, window 5,000 s", papers_plans.quality(count // 10))


def adaptation(page: Page, count: int) -> None:
    """Adaptive, fixed and hand-switched plans while the occurrence ratio changes."""
    rows, work, taken = papers_plans.adaptation(count // 10)
    page.table("Adaptation: Q3, window 10,000 s, while the occurrence ratio of A:B:C changes", rows)
    page.target("candidates, adaptive / switched by hand", work, 1.03)
    page.target("time, adaptive / switched by hand, median of five pairs", taken, 1.1)


def live(page: Page, count: int) -> None:
    """Situations kept at most with and without the partner rule, beside the bound that the analysis derives for
    both.
    """
    right = True
    events = Events.generate(count, 3)
    for name, relations in LIVE.items():
        head = (
            "window",
            "kept without it",
            "kept with it",
            "bound",
            "share without",
            "share with",
            "time with / without",
        )
        rows: Rows = [head]
        for window in WINDOWS:
            pattern = pattern_of(relations, 3, within=window)
            runs = [
                partial(run, events, pattern, planned(pattern), increments=200, counting=True, freeing=freeing)
                for freeing in (False, True)
            ]
            without, with_rule = in_turn(runs, 3)
            bound = papers_latency.most_kept(window)
            right = right and with_rule.kept <= without.kept <= bound and with_rule.matches == without.matches
            shares = (f"{ran.kept / bound:.2f}" for ran in (without, with_rule))
            ratio = f"{with_rule.seconds / without.seconds:.2f}"
            rows.append((f"{window:,} s", f"{without.kept:,}", f"{with_rule.kept:,}", f"{bound:,}", *shares, ratio))
        page.table(f"Live situations against their bound, without and with the partner rule: {name}", rows)
    page.holds("never more than the bound, nor with the rule than without; the same matches", right)


SECTIONS: dict[str, Callable[[Page, int], None]] = {
    "windows": windows,
    "patterns": patterns,
    "application time": application_time,
    "wall time": wall_time,
    "plans": plan_quality,
    "adaptation": adaptation,
    "live": live,
}

if __name__ == "__main__":
    main()
