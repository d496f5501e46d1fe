"""Programs: queries that feed result streams, perhaps each other's (TSA Def. 19 and 26)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidegate.algebra.errors import Site
from tidegate.algebra.nodes import Node, children, occurrences
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import Term


@dataclass(frozen=True, slots=True)
class Query:
    """A query: an expression that contributes to a result stream.

    `declared` is the result stream's definition (its G and H are promises to be proved); without it, every output
    attribute with a finite propagation function is promised to progress. `sites` says where in the user's code each
    term and node was written. An `inner` query is a stage of another one: its result is for the program's own use. Of
    one that was cut out so that its rows fold `cut` says what stayed for ever else (rule R36).
    """

    name: str
    stream: str
    node: Node
    declared: StreamDef | None = None
    site: Site | None = field(default=None, compare=False)
    sites: Mapping[Term | Node, Site] = field(default_factory=dict, compare=False, hash=False)
    inner: bool = False
    cut: str = field(default="", compare=False)

    def over(self, node: Node) -> Query:
        """The same query with another expression of the same rows, in which operators that are as before are where they
        were.
        """
        return replace(self, node=node, sites={**self.sites, **_moved(self.node, node, self.sites)})


def _moved(before: Node, after: Node, sites: Mapping[Term | Node, Site]) -> dict[Term | Node, Site]:
    """The places of operators whose inputs have changed."""
    old, new = children(before), children(after)
    if before is after or type(before) is not type(after) or len(old) != len(new):
        return {}
    moved: dict[Term | Node, Site] = {after: sites[before]} if before in sites else {}
    for first, second in zip(old, new, strict=True):
        moved.update(_moved(first, second, sites))
    return moved


@dataclass(frozen=True, slots=True)
class ProgramDef:
    """All queries of a program, in the order in which the user wrote them."""

    queries: tuple[Query, ...]

    @property
    def result_names(self) -> frozenset[str]:
        return frozenset(query.stream for query in self.queries)

    @property
    def inputs(self) -> tuple[StreamDef, ...]:
        """Streams and static tables that no query feeds, in order of first use."""
        streams: dict[str, StreamDef] = {}
        results = self.result_names
        for query in self.queries:
            for stream in occurrences(query.node):
                if stream.name not in results:
                    streams.setdefault(stream.name, stream)
        return tuple(streams.values())
