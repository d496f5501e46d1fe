"""The analysis of patterns whose matches are counted without listing them: that of the matches, by partition and
detection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tidegate.algebra.errors import Problem
from tidegate.algebra.ordered.match.counted import CountedMatches
from tidegate.algebra.program import Query
from tidegate.algebra.schema import StreamDef
from tidegate.analysis.ordered.family import Analysis, Family, StateBound, ZoneBuilder
from tidegate.analysis.ordered.match.family import MatchFamily
from tidegate.analysis.zones.zone import Zone

_LISTED: Final = MatchFamily()


class CountedMatchesFamily(Family[CountedMatches]):
    node = CountedMatches

    def zones(self, node: CountedMatches, build: ZoneBuilder) -> list[Zone]:
        return build.pruned(build.named(_LISTED.zones(node.match, build), node.schema), node.schema)

    def problems(self, node: CountedMatches, query: Query) -> list[Problem]:
        return _LISTED.problems(node.match, query)

    def with_progress(self, node: CountedMatches) -> Sequence[tuple[CountedMatches, str]]:
        return [(replace(node, of=match), text) for match, text in _LISTED.with_progress(node.match)]

    def completion_hint(self, node: CountedMatches) -> str | None:
        return _LISTED.completion_hint(node.match)

    def declarations(self, node: CountedMatches, analysed: Analysis) -> Sequence[tuple[Mapping[str, StreamDef], str]]:
        return _LISTED.declarations(node.match, analysed)

    def state(self, node: CountedMatches) -> StateBound:
        return _LISTED.state(node.match)

    def freed(self, node: CountedMatches, *, always: bool) -> Sequence[str]:
        return _LISTED.freed(node.match, always=always)

    def one_by_one(self, node: CountedMatches, *, shared: bool) -> Sequence[str]:
        return _LISTED.one_by_one(node.match, shared=shared)

    def implied(self, node: CountedMatches) -> Sequence[str]:
        return _LISTED.implied(node.match)

    def orders(self, node: CountedMatches) -> Sequence[str]:
        """The orders of the search, which ends where all that is left can be counted at once."""
        return ("matches are counted, and not listed", *_LISTED.orders(node.match))
