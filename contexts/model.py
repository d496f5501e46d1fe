"""A model of application contexts: its types, its deriving queries, and what it says to other queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidegate.algebra.diagnostics.shown import kind_of, shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.relation import is_identifier, listed, what_else
from tidegate.algebra.dsl.contexts.handle import Contexts, require_since
from tidegate.algebra.dsl.contexts.look_up import LookUp
from tidegate.algebra.dsl.expression import Origin
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.over.build import require_once
from tidegate.algebra.dsl.relation import Column, Relation
from tidegate.algebra.dsl.sources import Result
from tidegate.algebra.dsl.windows.between import Between, between
from tidegate.algebra.errors import Problem, QueryError, Site
from tidegate.algebra.ordered.transitions.definition import (
    BEGAN,
    CHANGE,
    CONTEXT,
    END,
    START,
    TIME,
    Action,
    ContextType,
    HeldBy,
    Transition,
)
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.printing.drawing import svg
from tidegate.algebra.printing.graph import mermaid
from tidegate.algebra.printing.plans import DisplayText, preformatted
from tidegate.algebra.program import ProgramDef
from tidegate.algebra.schema import checked_name
from tidegate.contexts.asked import CAUSE, NUMBER, SINCE, Asked, types_of
from tidegate.contexts.checks import require_context, require_contexts, require_types
from tidegate.contexts.explained import context_graph, explained
from tidegate.contexts.findings import findings, same_instants
from tidegate.contexts.named import named_result
from tidegate.contexts.reads import require_free_name, require_other_contexts
from tidegate.contexts.relations import Relations, relations_of


@checked_calls
class ContextModel(Contexts):
    """Contexts of which some hold in each partition, and the queries by which they begin and end.

    `initiate`, `switch` and `terminate` each make a new model with one deriving query more. `relation.in_context` keeps
    the rows at whose instant a context holds; `changes`, `windows` and `starts` are relations themselves.

    From the papers: CAESAR Def. 4.

    Examples:
        >>> traffic
        contexts Traffic by car: clear, slow
          switch slow in clear
          switch clear in slow
    """

    __slots__ = ("_asked", "_default", "_keys", "_name", "_result", "_site", "_types")

    def __init__(
        self,
        name: str,
        keys: tuple[str, ...],
        default: str,
        types: tuple[ContextType, ...],
        asked: tuple[Asked, ...],
        site: Site | None = None,
    ) -> None:
        self._name, self._keys, self._default, self._types, self._asked = name, keys, default, types, asked
        self._site = site
        self._result: Result | None = None

    def __repr__(self) -> str:
        names = ", ".join(type_.name for type_ in self._types)
        return "\n  ".join(
            [
                f"contexts {self._name} by {', '.join(self._keys) or '()'}: {names}",
                *(str(one.transition) for one in self._asked),
            ]
        )

    @called(when=("TG114", 'say at which rows: initiate("congestion", when=slow_minutes)'))
    def initiate(
        self,
        context: str,
        *,
        when: Relation,
        within: str | Iterable[str] | None = None,
        by: Column | Iterable[Column] | None = None,
        at: Column | None = None,
        since: Column | None = None,
        cause: Column | None = None,
        values: Mapping[str, Column] | None = None,
    ) -> ContextModel:
        """The model with a query that begins a context at each of its rows, where the context does not hold yet.

        `within`: the contexts in which the query stands, all of them where it is left out. A row counts if one of them
        holds before its instant. `by`, `at`: the keys and the instant of a row, where they are not called as the keys
        of the model are, or where rows hold several instants. `since`: where the match of a row began: it has to lie in
        one window; one later than the row's instant is taken for that. `cause`: what the context holds for, where it
        holds until its causes are cleared. `values`: attributes that the window keeps of its row.

        Examples:
            >>> stopping = traffic.initiate("slow", when=cars.where(cars.speed == 0), within="clear")
            >>> stopping
            contexts Traffic by car: clear, slow
              switch slow in clear
              switch clear in slow
              initiate slow in clear
        """
        with Here() as site:
            if context == self._default:
                raise QueryError(
                    "TG187",
                    f"{context} is the default context: it holds where no other does, and nobody initiates it",
                    hint=f'end the others: switch({context!r}, when=...) or terminate("...", when=...)',
                    site=site,
                )
            return self._with("initiate", context, when, within, by, at, since, cause, values or {}, site)

    @called(when=("TG114", 'say at which rows: switch("congestion", when=slow_minutes)'))
    def switch(
        self,
        context: str,
        *,
        when: Relation,
        within: str | Iterable[str] | None = None,
        by: Column | Iterable[Column] | None = None,
        at: Column | None = None,
        since: Column | None = None,
        cause: Column | None = None,
        values: Mapping[str, Column] | None = None,
    ) -> ContextModel:
        """The model with a query that at each of its rows ends those of the contexts `within` that hold, and begins
        another one.

        To the default context it only ends them, and has neither `cause` nor `values`; to a context itself it begins a
        new window. The other options are those of `initiate`.

        Examples:
            >>> model = tg.context_model("Traffic", by="car", default="clear", contexts="slow")
            >>> model.switch("slow", when=cars.where(cars.speed < 70), within="clear")
            contexts Traffic by car: clear, slow
              switch slow in clear
        """
        with Here() as site:
            return self._with("switch", context, when, within, by, at, since, cause, values or {}, site)

    @called(when=("TG114", 'say at which rows: terminate("congestion", when=fast_minutes)'))
    def terminate(
        self,
        context: str,
        *,
        when: Relation,
        by: Column | Iterable[Column] | None = None,
        at: Column | None = None,
        since: Column | None = None,
        cause: Column | None = None,
    ) -> ContextModel:
        """The model with a query that ends a context at each of its rows. It stands in this context.

        `cause`: only this cause is taken away, and the context ends as none is left. Without it the context ends
        whatever its causes. The other options are those of `initiate`.

        Examples:
            >>> model = tg.context_model("Traffic", by="car", default="clear", contexts="slow")
            >>> model.terminate("slow", when=cars.where(cars.speed >= 85))
            contexts Traffic by car: clear, slow
              terminate slow in slow
        """
        with Here() as site:
            if context == self._default:
                raise QueryError(
                    "TG187",
                    f"{context} is the default context: it ends where another one begins, and by nothing else",
                    hint='begin another: initiate("...", when=...)',
                    site=site,
                )
            return self._with("terminate", context, when, context, by, at, since, cause, {}, site)

    def explain(self) -> DisplayText:
        """Each context with what begins and ends it, and each query with what it implies: the contexts in which it
        stands where it names none, what a switch ends, how causes count.

        Examples:
            >>> print(traffic.explain())
            contexts Traffic by car
            clear, the default: since ever, and wherever no other context holds
              begins      as the last of the others ends
              ends        as another one begins
            slow
              begins      switch slow in clear
              ends        switch clear in slow
            0: switch slow in clear
              where       clear holds before the row's instant
              does        begins slow, unless it holds
            1: switch clear in slow
              where       slow holds before the row's instant
              does        ends slow; clear holds where none is left
        """
        return DisplayText(
            explained(self._name, self._keys, self._default, self._types, self._asked, self._relations())
        )

    def mermaid(self) -> str:
        """The contexts as a graph, as text for Mermaid: an arrow for each transition, dotted where the context that it
        leaves goes on.

        Examples:
            >>> print(traffic.mermaid())
            flowchart LR
              n0(["clear<br/>the default"])
              n1["slow<br/>until it is ended"]
              n0 -->|"switch"| n1
              n1 -->|"switch"| n0
        """
        return mermaid(context_graph(self._default, self._types, self._asked))

    def svg(self) -> str:
        """The same as a picture.

        Examples:
            >>> traffic.svg()
            '<svg ...</svg>...'
        """
        return svg(context_graph(self._default, self._types, self._asked), "Contexts and transitions")

    def _repr_html_(self) -> str:
        """For notebooks: the picture, and what is wrong."""
        problems = "\n\n".join(map(str, self.check()))
        return f"<div>{self.svg()}{preformatted(repr(self))}{preformatted(problems) if problems else ''}</div>"

    @property
    def changes(self) -> Result:
        """Every window as it starts and as it ends, each at its instant: the keys, `context`, `change` (start or end),
        `time`, `began` and the values of the initiating row.

        `began` is NULL where the default context has held since ever. It is a result of the program, named as the
        model is, which all queries in its contexts read.

        Examples:
            >>> show(traffic.changes.select("context", "change", "time", "began"))
            clear, end, 1, None
            clear, end, 5, 2
            clear, start, 2, 2
            slow, end, 2, 1
            slow, start, 1, 1
            slow, start, 5, 5
        """
        with Here() as site:
            if self._result is None:
                self._result = self._named(site)
            return self._result

    def windows(self, context: str) -> Relation:
        """The windows (began, ended] of a context, each once it has ended. One of the default context that has held
        since ever is not among them.

        Examples:
            >>> show(traffic.windows("slow").select("car", "began", "ended"))
            red, 1, 2
        """
        with Here():
            return self._changed(context, END).rename(**{TIME: "ended"})

    def starts(self, context: str) -> Relation:
        """The windows of a context as they begin, with the values of the initiating row.

        Examples:
            >>> show(traffic.starts("slow").select("car", "began"))
            red, 1
            red, 5
        """
        with Here():
            return self._changed(context, START).drop(BEGAN).rename(**{TIME: BEGAN})

    def as_windows(self, context: str, *, empty: bool = False) -> Between:
        """The windows (began, ended] of a context as windows between rows: `relation.windows(these, by=...).agg(...)`
        has aggregates of the rows in each, as it ends. `empty=True`: also of windows without rows. Of the default
        context the first window is none of these: it has held since ever, and has no beginning.

        Examples:
            >>> show(cars.windows(traffic.as_windows("slow"), by="car").agg(n=tg.count(), fastest=tg.max(cars.speed)))
            red, 1, 2, 1, 90.0
        """
        with Here():
            starts, ends = self._changed(context, START), self._changed(context, END)
            return between(starts, ends, by=self._keys, empty=empty, opens_at=TIME, closes_at=TIME)

    def check(self) -> list[Problem]:
        """What is wrong with the model as a whole; none where nothing is, or nobody knows.

        Problems of its deriving queries, which programs that read it are refused with, and else TG188: a query that
        never has a row, contexts that never hold or never end, transitions that never fire or do nothing. A finding is
        so whatever rows come. A program that reads the model runs all the same.

        Examples:
            >>> model = tg.context_model("Traffic", by="car", default="clear", contexts=("slow", "closed"))
            >>> for problem in model.initiate("slow", when=cars.where(cars.speed < 70)).check():
            ...     print(problem.code, problem.message)
            TG188 closed never holds
            TG188 slow never ends once it holds
        """
        refused: list[Problem] = []
        try:
            self.changes  # noqa: B018  # analysed for its problems
        except QueryError as error:
            refused = list(error.problems)
            # TG204 of a query without rows is said as a finding, with what follows from it.
            broken = [problem for problem in refused if problem.code != "TG204"]
            if broken or not self._asked:
                return broken
        found = findings(self._default, self._types, self._asked, self._site)
        return [*found, *same_instants(self._relations(), self._site)] or refused

    def _relations(self) -> Relations:
        """What is known of how its contexts lie to each other."""
        try:
            fed_by = self.changes._fed_by
        except QueryError:
            return Relations()
        node = None if fed_by is None else fed_by.node
        return relations_of(node) if isinstance(node, Transitions) else Relations()

    def _is_read_by(self, program: ProgramDef) -> bool:
        """Whether a program reads the contexts of this very model, and not those of another one with its name."""
        return self._result is not None and any(query is self._result._fed_by for query in program.queries)

    def _inside(
        self,
        rows: Relation,
        contexts: tuple[str, ...],
        by: Column | Iterable[Column] | None,
        at: Column | None,
        since: str | None,
        values: Mapping[str, str],
        site: Site | None,
    ) -> Relation:
        look_up = self._look_up(rows, contexts, by, at, "in_context")
        require_since(since, look_up.at, rows.schema)
        if len({*contexts}) > 1 and values and (self._default in contexts or {*values.values()} != {BEGAN}):
            raise QueryError(
                "TG187",
                f"values of {len(contexts)} contexts",
                hint='ask for one context with values=...; of several without the default one "began" is known, of the '
                "first",
            )
        for name in values.values():
            self._require_of_window(contexts[0], name)
        return replace(look_up, since=since).inside(contexts, values, site)

    def _require_of_window(self, context: str, name: str) -> None:
        """That windows have an attribute of this name; `QueryError` TG101 where they have none."""
        of_window = [known for known in self.changes.schema if known not in (*self._keys, CONTEXT, CHANGE, TIME)]
        if name not in of_window:
            hint = f"a window has {', '.join(of_window)}"
            raise QueryError("TG101", f"a window of {context} has no {shown(name)}", hint=hint)

    def _outside(
        self,
        rows: Relation,
        contexts: tuple[str, ...],
        by: Column | Iterable[Column] | None,
        at: Column | None,
        site: Site | None,
    ) -> Relation:
        return self._look_up(rows, contexts, by, at, "not_in_context").outside(contexts, site)

    def _look_up(
        self,
        rows: Relation,
        contexts: tuple[str, ...],
        by: Column | Iterable[Column] | None,
        at: Column | None,
        where: str,
    ) -> LookUp:
        require_contexts(contexts, self._types, where)
        require_free_name(self._name, rows, "in its contexts")
        keys = self._named_keys(rows, by, where)
        return LookUp(self.changes, self._default, self._keys, rows, keys, rows._order(at, where, "at"))

    def _named_keys(self, rows: Relation, by: Column | Iterable[Column] | None, where: str) -> tuple[str, ...]:
        """The attributes of a relation that are the keys of the model."""
        try:
            keys = tuple(rows._name_of(key, where) for key in listed(self._keys if by is None else by))
        except QueryError as error:
            if by is not None or error.code != "TG101":
                raise
            (problem,) = error.problems
            hint = f"name what stands for the keys of the model, {', '.join(self._keys)}: by=...; {problem.hint}"
            raise QueryError("TG101", problem.message, hint=hint) from None
        if len(keys) != len(self._keys):
            raise QueryError(
                "TG187",
                f"{where} names {len(keys)} keys, and the model has {len(self._keys)}: {', '.join(self._keys)}",
                hint="by=(...) names the attribute of each key, in their order",
            )
        return keys

    def _changed(self, context: str, change: str) -> Relation:
        require_context(context, self._types, "windows")
        changes = self.changes
        rows = changes.where(changes[CONTEXT] == context, changes[CHANGE] == change, changes[BEGAN].is_not_null())
        return rows.drop(CONTEXT, CHANGE)

    def _with(
        self,
        action: Action,
        context: str,
        when: Relation,
        within: str | Iterable[str] | None,
        by: Column | Iterable[Column] | None,
        at: Column | None,
        since: Column | None,
        cause: Column | None,
        values: Mapping[str, Column],
        site: Site | None,
    ) -> ContextModel:
        require_context(context, self._types, action)
        if not isinstance(when, Relation):
            raise QueryError("TG114", f"{action} got {what_else(when)}", hint="when=... takes a relation")
        standing = [type_.name for type_ in self._types] if within is None else listed(within)
        require_contexts(standing, self._types, action)
        held_by = next(type_.held_by for type_ in self._types if type_.name == context)
        if context == self._default and (cause is not None or values):
            given = "cause" if cause is not None else "values"
            raise QueryError(
                "TG187",
                f"{context} is the default context: it holds where no other does, and keeps no {given} of a row",
                hint=f"leave {given}= out; attributes of a window are those of the context that the row begins",
            )
        if cause is not None and held_by == "transition":
            raise QueryError(
                "TG187",
                f"{context} does not hold by causes",
                hint=f'say so: tg.context_model(..., causes={{{context!r}: "bag"}})',
            )
        keys = self._named_keys(when, by, action)
        if not isinstance(values, Mapping):
            raise QueryError("TG114", f"values={shown(values)}", hint='write values={"speed": minutes.speed}')
        taken = next(
            (name for name in values if name in (*self._keys, CONTEXT, CHANGE, TIME, BEGAN, NUMBER, SINCE, CAUSE)), None
        )
        if taken is not None:
            raise QueryError("TG103", f"a window has {taken!r} of its own", hint="choose another name")
        transition = Transition(action, context, tuple(dict.fromkeys(standing)), cause is not None)
        require_free_name(self._name, when, f"by {action} {context}")
        require_other_contexts(self._name, when, transition)
        asked = Asked(
            transition,
            when,
            keys,
            when._order(at, action, "at"),
            None if since is None else when._column(since),
            None if cause is None else when._column(cause),
            {checked_name(name, "an attribute"): when._column(column) for name, column in values.items()},
            within is None,
            site,
        )
        types_of((*self._asked, asked))
        return ContextModel(self._name, self._keys, self._default, self._types, (*self._asked, asked), self._site)

    def _named(self, site: Site | None) -> Result:
        """The changes as a result with the model's name."""
        if not self._asked:
            raise QueryError(
                "TG187",
                f"{self._name} has no query that begins a context",
                hint='add one: model = model.initiate("congestion", when=...)',
            )
        types = types_of(self._asked)
        relations = [one.candidates(number, self._keys, types) for number, one in enumerate(self._asked)]
        first, *others = relations
        candidates = first.union(*others) if others else first
        carried = tuple(name for name in types if name not in (SINCE, CAUSE))
        node = Transitions(
            candidates._node,
            self._keys,
            TIME,
            self._types,
            self._default,
            tuple(one.transition for one in self._asked),
            NUMBER,
            SINCE if SINCE in types else None,
            CAUSE if CAUSE in types else None,
            carried,
        )
        relation = candidates._with(node, dict.fromkeys(node.schema, Origin(self._name)), site)
        return named_result(self._name, relation, site)


@called(
    by=("TG114", 'name the attributes that say of what the contexts are: by="segment"; by=() for one of all rows'),
    default=("TG114", 'name the context that holds where no other does: default="clear"'),
    contexts=("TG114", 'name the other contexts: contexts=("congestion", "accident")'),
)
def context_model(
    name: str,
    *,
    by: str | Iterable[str],
    default: str,
    contexts: str | Iterable[str],
    causes: Mapping[str, HeldBy] | None = None,
) -> ContextModel:
    """A model of application contexts, without deriving queries so far: `initiate`, `switch` and `terminate` add them.

    Contexts hold in each partition by itself, that is, of rows with the same values of `by`. `default` holds exactly
    where none of `contexts` does, first of all since ever. Several contexts may hold at once. `causes`: contexts that
    hold until all their causes are cleared, each with how these are counted: `"bag"`, where one that was given twice
    has to be cleared twice, or `"set"`. `QueryError` TG187 for a model that is none.

    From the papers: CAESAR Def. 4.

    Examples:
        >>> tg.context_model("Traffic", by="car", default="clear", contexts=("slow", "stopped"))
        contexts Traffic by car: clear, slow, stopped
    """
    with Here() as site:
        keys = tuple(listed(by))
        for key in keys:
            if not is_identifier(key):
                raise QueryError(
                    "TG114", f"by has {kind_of(key)}, {shown(key)}", hint='by="segment" names an attribute'
                )
        require_once(keys)
        types = require_types(default, listed(contexts), causes or {})
        return ContextModel(checked_name(name, "a model of contexts"), keys, default, types, (), site)
