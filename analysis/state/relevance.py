"""Relevance: which buffered rows matter to the result rows that pass in one increment (rule R15)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import FALSE, TRUE, Attr, Lit, Term, call, conjunction, disjunction
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.federation.views import Necessary, View
from tidegate.analysis.state.keep import (
    Keep,
    fits,
    greatest,
    keep_condition,
    progress_of,
    segment_may_stay,
    staying,
    still_to_pass,
)
from tidegate.analysis.state.thresholds import Case, Extents, KnownThresholds, Thresholds

Progress = Mapping[str, Extended]


@dataclass(frozen=True, slots=True, eq=False)
class Relevance:
    """The relevance condition of an occurrence, for the progress p before and p' after an increment.

    In the same view as for keep, in addition, for some promised a_j: `max over x of (r.x - d(a_j, x)) <= p'_j`, and for
    every promised a_k `p'_j + d(a_j, a_k) > p_k`. p' must not lie below p.
    """

    stream: StreamDef
    views: tuple[View, ...]
    needed: tuple[Necessary, ...]
    promised: tuple[str, ...]
    known: KnownThresholds

    def at(self, old: Progress, new: Progress) -> Thresholds:
        """The condition for an increment; of queries whose names alone differ, one and the same."""
        progress = progress_of(self.promised, old), progress_of(self.promised, new)
        return self.known.at(progress, partial(self._at, old, new))

    def row(self, row: Mapping[str, int], old: Progress, new: Progress) -> bool:
        """Whether the row is relevant, by the definition."""
        return any(
            fits(view, row)
            and still_to_pass(view, row, old)
            and (
                not view.promised
                or any(
                    max((row[x] - view.behind(a, x) for x in view.columns), default=-INF) <= new.get(a, -INF)
                    and can_pass(view, a, old, new)
                    for a in view.promised
                )
            )
            for view in self.views
        )

    def condition(self, old: Progress, new: Progress) -> Term:
        """The rule as a condition over the stream's attributes; for rows that keep the stream's relations, the same."""
        return self.at(old, new).condition

    def segment(self, bounds: Extents, old: Progress, new: Progress) -> bool:
        """Whether a segment with these least and greatest values may hold a relevant row; False: none is."""
        return self.at(old, new).segment(bounds)

    def _at(self, old: Progress, new: Progress) -> Thresholds:
        cases = (_mattering(view, old, new) for view in self.views)
        build = partial(self._condition, dict(old), dict(new))
        return Thresholds(tuple(case for case in cases if case is not None), build)

    def _condition(self, old: Progress, new: Progress) -> Term:
        cases: dict[Term, None] = {}
        for view, needed in zip(self.views, self.needed, strict=True):
            kept = keep_condition(self.stream, needed, old)
            passing = self._passing(view, needed, old, new)
            if FALSE not in (kept, passing):
                cases[conjunction([kept, passing])] = None
        return disjunction(list(cases))

    def _passing(self, view: View, needed: Necessary, old: Progress, new: Progress) -> Term:
        if not view.promised:
            return TRUE
        early: list[Term] = []
        for a, bounds in needed.behind:
            if not can_pass(view, a, old, new):
                continue
            limit = new[a]
            if limit == INF:
                return TRUE
            early.append(
                conjunction([call("le", Attr(x), Lit(int(limit) + d, self.stream.schema[x].type)) for x, d in bounds])
            )
        return disjunction(early)

    def may_change(self, bounds: Extents, p: Progress) -> bool:
        """Whether rows of a segment may begin or cease to matter to results as these get beyond p; False: none does.

        In a view without upper bounds on promised attributes a row matters for ever, once results have got to where it
        begins to. Of several views that became one, each is looked at.
        """
        return any(
            segment_may_stay(view, bounds, p) and (_ends(view) or not _has_begun(view, bounds, p))
            for view in self._cases()
        )

    def _cases(self) -> Iterator[View]:
        for view in self.views:
            yield from (view,) if len(view.zones) == 1 else view.parts()


def _mattering(view: View, old: Progress, new: Progress) -> Case | None:
    """What a view asks of rows that matter for an increment; None where no result of it can pass."""
    kept = staying(view, old)
    if kept is None or not view.promised:
        return kept
    within = tuple(
        tuple((x, limit) for x in view.columns if (limit := new[a] + view.behind(a, x)) != INF)
        for a in view.promised
        if can_pass(view, a, old, new)
    )
    if not within:
        return None
    return replace(kept, within=within if all(within) else ())


def _ends(view: View) -> bool:
    return any(view.ahead(x, a) != INF for x in view.columns for a in view.promised)


def _has_begun(view: View, bounds: Extents, p: Progress) -> bool:
    """Whether all rows of a segment lie early enough for all results beyond p."""
    return all(
        view.behind(a, x) == INF or greatest(bounds, x) - view.behind(a, x) <= p.get(a, -INF) + 1
        for x in view.columns
        for a in view.promised
    )


def relevance(keep: Keep) -> Relevance:
    """The relevance condition of the occurrence whose keep condition this is."""
    return Relevance(keep.stream, keep.views, keep.needed, keep.promised, keep.known)


def can_pass(view: View, a: str, old: Progress, new: Progress) -> bool:
    """Whether a result row of the view can pass now by a: it reaches p'_a and stays above every old progress."""
    reached = new.get(a, -INF)
    return reached != -INF and all(
        old.get(k, -INF) != INF and reached + view.across(a, k) > old.get(k, -INF) for k in view.promised
    )
