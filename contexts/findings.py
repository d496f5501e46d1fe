"""What looks like a mistake in a model of contexts as a whole: contexts that never hold or never end, idle transitions.

Nothing is said that is not so whatever rows come. Transitions are judged one by one, and any rows may come that the
conditions of a query do not exclude, also rows of all queries at one instant. With these, reachability over single
contexts is exact: a query stands in *one of* its contexts, and each of these may hold for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tidegate.algebra.errors import Problem, QueryError, Site
from tidegate.algebra.ordered.transitions.definition import ContextType
from tidegate.algebra.program import Query
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.report.predicate_sets import never_a_row
from tidegate.analysis.validity.validity import contradictions
from tidegate.contexts.asked import Asked
from tidegate.contexts.explained import ends
from tidegate.contexts.relations import Relations

#: The code of all findings.
CODE = "TG188"


def findings(
    default: str, types: Sequence[ContextType], asked: Sequence[Asked], site: Site | None = None
) -> list[Problem]:
    """The findings on a model, TG188; none where nothing is wrong or nobody knows. `site` is where it was made."""
    found = _Findings(default, tuple(types), tuple(asked), site)
    return [*found.without_rows(), *found.never_holding(), *found.idle(), *found.never_ending(), *found.never_cleared()]


def same_instants(relations: Relations, site: Site | None = None) -> list[Problem]:
    """A finding for each two contexts that hold at the same instants."""
    return [
        Problem(
            CODE,
            f"{one} and {other} hold at the same instants",
            site,
            ("whatever begins or ends one of them does so to the other",),
            "one of them is enough",
        )
        for one, other in relations.same()
    ]


@dataclass(slots=True)
class _Findings:
    default: str
    types: tuple[ContextType, ...]
    asked: tuple[Asked, ...]
    site: Site | None
    #: Why a query never has a row, by its number.
    dead: dict[int, Problem] = field(init=False)
    reachable: set[str] = field(init=False)

    def __post_init__(self) -> None:
        problems = ((number, _no_rows(one)) for number, one in enumerate(self.asked))
        self.dead = {number: problem for number, problem in problems if problem is not None}
        self.reachable = self._reachable()

    def _alive(self) -> list[Asked]:
        """The queries that may have rows."""
        return [one for number, one in enumerate(self.asked) if number not in self.dead]

    def _counting(self) -> list[Asked]:
        """The queries that may have rows in a context that may hold."""
        return [one for one in self._alive() if not self.reachable.isdisjoint(one.transition.within)]

    def _reachable(self) -> set[str]:
        """The contexts that may hold at some time: the default one, and what begins while one of them holds."""
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_node(self.default)
        for one in self._alive():
            if one.transition.action != "terminate":
                graph.add_edges_from((name, one.transition.context) for name in one.transition.within)
        return {self.default, *nx.descendants(graph, self.default)}

    def without_rows(self) -> Iterator[Problem]:
        """Queries whose conditions no row satisfies."""
        for number, why in self.dead.items():
            one = self.asked[number]
            because = (why.message, *why.because, *([] if why.site is None else [str(why.site)]))
            yield Problem(CODE, f"{one.transition} never fires: its query has no rows", one.site, because, why.hint)

    def never_holding(self) -> Iterator[Problem]:
        """Contexts that nothing begins while one holds that may."""
        for name in self._names():
            if name in self.reachable:
                continue
            begun = [one for one in self.asked if one.transition.context == name]
            begun = [one for one in begun if one.transition.action != "terminate"]
            because = tuple(f"{one.transition}{_at(one)} {self._why_idle(one)}" for one in begun)
            hint = f"name contexts that hold: within={self.default!r}" if begun else f"add initiate({name!r}, when=...)"
            if begun and all(self.asked.index(one) in self.dead for one in begun):
                hint = "let one of these have rows"
            yield Problem(
                CODE, f"{name} never holds", self.site, because or ("no query initiates it, or switches to it",), hint
            )

    def _why_idle(self, one: Asked) -> str:
        if self.asked.index(one) in self.dead:
            return "has no rows"
        within = [name for name in one.transition.within if name != one.transition.context]
        if not within:
            return "waits for the context itself"
        return f"waits for {' or '.join(within)}, which never hold{'s' if len(within) == 1 else ''}"

    def idle(self) -> Iterator[Problem]:
        """Queries that stand in contexts that never hold, or ask for what is so already."""
        held_by = {type_.name: type_.held_by for type_ in self.types}
        for one in self._alive():
            transition, context = one.transition, one.transition.context
            alone = {*transition.within} == {context}
            if self.reachable.isdisjoint(transition.within):
                never = ", ".join(transition.within)
                because, hint = f"it stands in {never}, which never holds", "let something begin that context first"
                yield Problem(CODE, f"{transition} never fires", one.site, (because,), hint)
            elif (
                alone
                and transition.action == "initiate"
                and held_by[context] == "transition"
                # What ends the context at the same instant lets the initiation begin a new window.
                and not self._ending(context)
            ):
                because = f"it stands in {context} alone, which holds then, and nothing ends it"
                hint = f"name contexts in which {context} does not hold yet, such as within={self.default!r}"
                yield Problem(CODE, f"{transition} does nothing", one.site, (because,), hint)
            elif alone and transition.action == "switch" and context == self.default:
                because = f"{context} is the default context: where it holds there is nothing to end"
                others = [name for name in self._names() if name != context]
                hint = f"name the contexts that it ends, such as within={others[0]!r}"
                yield Problem(CODE, f"{transition} does nothing", one.site, (because,), hint)

    def never_ending(self) -> Iterator[Problem]:
        """Contexts that may hold and that no query ends."""
        for name in self._names():
            if name == self.default or name not in self.reachable or self._ending(name):
                continue
            begun = [one for one in self._counting() if one.transition.context == name]
            because = tuple(f"{one.transition} begins it{_at(one)}" for one in begun)
            dead = [one for one in self.asked if ends(one, name)]
            because += tuple(f"{one.transition}, which would end it, has no rows" for one in dead)
            hint = f"add terminate({name!r}, when=...), or a switch(..., within={name!r})"
            yield Problem(CODE, f"{name} never ends once it holds", begun[0].site, because, hint)

    def never_cleared(self) -> Iterator[Problem]:
        """Contexts that hold by causes, of which one that is NULL is never cleared. A switch ends them whatever these
        are.
        """
        for type_ in self.types:
            ending = self._ending(type_.name)
            if type_.held_by == "transition" or not ending or type_.name not in self.reachable:
                continue
            if not all(_clears_one_cause(one) and not _cause_may_be_null(one) for one in ending):
                continue
            for one in self._counting():
                if one.transition.action != "terminate" and one.transition.context == type_.name and one.cause is None:
                    because = "it gives no cause, which is NULL; only these clear causes, and theirs are never NULL"
                    lines = (because, *(f"{other.transition}{_at(other)}" for other in ending))
                    message = f"{type_.name} never ends once {one.transition} has counted"
                    yield Problem(CODE, message, one.site, lines, "give it a cause: cause=...")

    def _ending(self, context: str) -> list[Asked]:
        """The queries that may end windows of a context."""
        return [one for one in self._alive() if ends(one, context)]

    def _names(self) -> list[str]:
        return [type_.name for type_ in self.types]


def _no_rows(one: Asked) -> Problem | None:
    """Why a deriving query never has a row; None where it may, or nobody knows."""
    query = Query(one.transition.context, one.transition.context, one.rows._node, None, one.site, one.rows._sites)
    if (problem := never_a_row(query)) is not None:
        return problem
    try:
        problems = contradictions(query, federation(query.node, sites=query.sites))
    except QueryError:
        return None
    return problems[0] if problems else None


def _clears_one_cause(one: Asked) -> bool:
    """Whether a query that ends a context does so only as it takes its last cause away. The cause of a switch is one of
    the context that it begins.
    """
    return one.transition.action == "terminate" and one.transition.one_cause


def _cause_may_be_null(one: Asked) -> bool:
    return one.cause is None or one.rows.select(cause=one.cause).schema["cause"].nullable


def _at(one: Asked) -> str:
    """Where a query was written, behind what it does."""
    return "" if one.site is None else f" ({one.site.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{one.site.line})"
