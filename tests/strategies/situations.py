"""Random programs that derive situations and match patterns of them, and events with ties and gaps at the
boundaries.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import combinations

from tests.strategies.programs import Case, Row
from tidegate.algebra.allen import RELATIONS, relation_of
from tidegate.algebra.evaluation import EvaluationError, evaluate_term
from tidegate.algebra.functions.aggregates import TABLE, Aggregate, Function
from tidegate.algebra.nodes import Group, Imbed, Join, Node, Project, Rename, Scan, Select
from tidegate.algebra.ordered.derive import Derive
from tidegate.algebra.ordered.match.node import Emission, Match, RowIntervals
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import Row as Tuple
from tidegate.algebra.semantics import evaluate
from tidegate.algebra.terms import Attr, Lit, Term, call, conjunction, disjunction
from tidegate.algebra.types import BIGINT, DOUBLE

#: All that events of situations have, each as often as another one of its kind.
_AGGREGATES = (
    (Function.COUNT, Function.COUNT_DISTINCT),
    (Function.SUM, Function.TRY_SUM),
    (Function.AVG,),
    (Function.MIN, Function.MAX),
    (Function.FIRST,),
    (Function.LAST,),
)
assert {function for kind in _AGGREGATES for function in kind} == {
    function for function, entry in TABLE.items() if entry.of_events
}


def random_situation_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    plain = random.Random(f"plain situations {seed}").random() < 0.4
    builder = _Situations(random.Random(f"situations {seed}"), random.Random(f"aggregates {seed}"), plain)
    program = ProgramDef(tuple(builder.queries()))
    return Case(seed, program, {stream.name: builder.rows[stream.name] for stream in program.inputs})


class _Situations:
    """With `plain`, only conditions matter of one kind of events, which are more: what is stored are event runs.

    `values` draws what aggregates are of, and nothing that anything else depends on.
    """

    def __init__(self, rng: random.Random, values: random.Random, plain: bool) -> None:
        self.rng, self.values, self.plain = rng, values, plain
        self.tied = not plain and self.chance(0.25)
        self.keyed = self.chance(0.7)
        names = ("E", "F") if not plain and self.chance(0.2) else ("E",)
        self.streams = [self.stream(name) for name in names]
        self.points: set[str] = set()
        given = 0 if plain else self.rng.choice((0, 0, 1, 1, 2))
        self.intervals = [self.interval_stream(name) for name in ("V", "W")[:given]]
        self.rows = {stream.name: self.events(stream) for stream in self.streams}
        self.rows |= {stream.name: self.interval_rows(stream) for stream in self.intervals}

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def stream(self, name: str) -> StreamDef:
        attributes = (
            Attribute("k", BIGINT, nullable=True),
            Attribute("t", BIGINT, nullable=False, temporal=True),
            Attribute("n", BIGINT),
            Attribute("x", BIGINT),
            Attribute("y", DOUBLE),
        )
        return StreamDef(name, Schema(attributes), progress=("t",))

    def interval_stream(self, name: str) -> StreamDef:
        """Rows that are periods, as streams may declare them: long or short, perhaps points, in progress on either
        end.
        """
        ts, te = (
            Attribute("a", BIGINT, nullable=False, temporal=True),
            Attribute("z", BIGINT, nullable=False, temporal=True),
        )
        if self.chance(0.3):
            self.points.add(name)
        relations: list[Term] = [call("le" if name in self.points else "lt", Attr("a"), Attr("z"))]
        if self.chance(0.5):
            relations.append(call("le", Attr("z"), self.plus(Attr("a"), self.rng.choice((3, 6, 9)))))
        progress = self.rng.choice((("a",), ("z",), ("a", "z")))
        key = Attribute("k", BIGINT, nullable=True)
        return StreamDef(
            name, Schema((key, ts, te, Attribute("x", BIGINT))), progress=progress, relations=conjunction(relations)
        )

    # -- queries ------------------------------------------------------------------------------------------------------

    def queries(self) -> list[Query]:
        self.known = [self.likely() for _ in range(self.rng.choice((1, 2, 3, 3)))]
        found: list[Query] = []
        for name in "QR"[: self.rng.choice((1, 1, 2))]:
            node: Node = self.match() if self.chance(0.75) else self.rng.choice(self.known)
            found.append(Query(name, name, self.above(node)))
        return found

    def above(self, node: Node) -> Node:
        style = self.rng.random()
        completed = "te" if isinstance(node, Derive) else "detected"
        if style < 0.45:
            return node
        if style < 0.6:
            kept = [name for name in node.schema if self.chance(0.5) or name == completed]
            return Rename(Project(node, tuple(kept)), ((completed, "done"),))
        if style < 0.7:
            return Imbed(
                Select(node, call("gt", Attr(completed), Lit(2, BIGINT))), "late", self.plus(Attr(completed), 3)
            )
        if style < 0.85:
            window = Imbed(node, "w", call("ceil", Attr(completed), Lit(5, BIGINT)))
            return Group(window, ("w",), (Aggregate("n", Function.COUNT),))
        if style < 0.9 and isinstance(node, Match):
            starts = tuple(name for name in node.schema.temporal if name.endswith(".ts"))
            return Project(node, starts)
        other = self.rng.choice(self.known)
        one = Rename(Project(node, (completed,)), ((completed, "a"),))
        two = Rename(Project(other, ("ts", "te")), (("ts", "b"), ("te", "c")))
        near = conjunction(
            [call("le", Attr("a"), self.plus(Attr("c"), 4)), call("le", Attr("c"), self.plus(Attr("a"), 4))]
        )
        return Join(one, two, near, self.rng.choice(("inner", "anti")))

    def plus(self, term: Term, amount: int) -> Term:
        return call("add", term, Lit(amount, BIGINT))

    def likely(self) -> Derive:
        """A situation that mostly occurs."""
        made = self.situation()
        for _ in range(5):
            if self.found(made):
                break
            made = self.situation()
        return made

    def found(self, node: Derive | RowIntervals) -> list[Tuple]:
        """The situations of a definition in the rows; none where ties are in no order."""
        relations = {
            stream.name: [tuple(row[name] for name in stream.schema.names) for row in self.rows[stream.name]]
            for stream in (*self.streams, *self.intervals)
        }
        try:
            return evaluate(node.input if isinstance(node, RowIntervals) else node, relations)  # type: ignore[arg-type]  # values of generated rows
        except EvaluationError:
            return []

    def situation(self) -> Derive:
        stream = self.rng.choice(self.streams)
        source: Node = Scan(stream)
        if not self.plain and self.chance(0.15):
            source = Select(source, call("ge", Attr("n"), Lit(1, BIGINT)))
        least = self.rng.choice((1, 1, 1, 2, 3, 4))
        most = least + self.rng.choice((0, 1, 3)) if self.chance(0.3) else None
        return Derive(
            source,
            ("k",) if self.keyed else (),
            "t",
            "n" if self.tied else None,
            self.condition(),
            least,
            most,
            tuple(self.aggregates()),
        )

    def condition(self) -> Term:
        x, y = Attr("x"), Attr("y")
        choices = (
            call("gt", x, Lit(self.rng.choice((0, 1)), BIGINT)),
            call("lt", x, Lit(self.rng.choice((1, 2)), BIGINT)),
            call("gt", y, Lit(self.rng.choice((0.0, 0.5)), DOUBLE)),
            call("eq", x, Lit(1, BIGINT)),
            call("is_not_null", x),
        )
        return self.rng.choice(choices)

    def aggregates(self) -> list[Aggregate]:
        if self.plain or self.chance(0.5):
            return []
        kinds = self.rng.sample(_AGGREGATES, self.rng.choice((1, 1, 2)))
        return [self.aggregate(f"v{place}", self.function(kind)) for place, kind in enumerate(kinds)]

    def function(self, kind: tuple[Function, ...]) -> Function:
        """One of a kind; where ties are in an order, more often one that depends on it."""
        if self.tied and self.values.random() < 0.6:
            return self.values.choice((Function.FIRST, Function.LAST))
        return self.values.choice(kind)

    def aggregate(self, name: str, function: Function) -> Aggregate:
        if function is Function.COUNT and self.values.random() < 0.5:
            return Aggregate(name, function)
        ordered = function in (Function.FIRST, Function.LAST)
        often = ("n",) * 2 if self.tied and ordered else ()  # it differs between the events of an instant
        argument = Attr(self.values.choice(("n", "x", "y", *often)))
        return Aggregate(name, function, argument, Attr("t") if ordered else None)

    def match(self) -> Match:
        count = self.rng.choice((1, 2, 2, 3) if self.plain else (1, 2, 2, 3, 3, 4, 5))
        emission: Emission = "final" if self.chance(0.3) else "earliest"
        situations = tuple(
            self.given() if self.intervals and self.chance(0.5) else self.rng.choice(self.known) for _ in range(count)
        )
        symbols = tuple("ABCDE"[:count])
        witness = self.witness(dict(zip(symbols, situations, strict=True))) if self.chance(0.8) else {}
        parts = [self.pair(one, other, witness) for one, other in combinations(symbols, 2) if self.chance(0.75)]
        if self.chance(0.25) and count > 1:
            parts.append(self.general(symbols))
        within = None if self.chance(0.15) else self.rng.choice((3, 5, 8, 12, 20))
        if witness and within is not None:  # just met, or missed by one
            ends = [end for ends in witness.values() for end in ends]
            within = max(1, max(ends) - min(ends) + self.rng.choice((-1, 0, 0, 1, 3)))
        return Match(situations, symbols, conjunction(parts), within, emission)

    def given(self) -> RowIntervals:
        """A stream of periods, or situations that are found by another query, as they come."""
        keys = ("k",) if self.keyed else ()
        if self.chance(0.15):
            plain = tuple(one for one in self.known if not one.aggregates)
            if plain:
                return RowIntervals(self.rng.choice(plain), keys)
        stream = self.rng.choice(self.intervals)
        source: Node = Scan(stream)
        if self.chance(0.2):
            source = Select(source, call("ge", Attr("x"), Lit(1, BIGINT)))
        points = stream.name in self.points
        if points and self.chance(0.3):
            source, points = Select(source, call("lt", Attr("a"), Attr("z"))), False
        return RowIntervals(Rename(source, (("a", "ts"), ("z", "te"))), keys, points)

    def witness(self, roles: Mapping[str, Derive | RowIntervals]) -> dict[str, tuple[int, int]]:
        """Some situations of one partition, a start and an end for each role, as the rows have them; none where some
        lacks.
        """
        found = {symbol: self.periods(node) for symbol, node in roles.items()}
        common = set.intersection(*({key for key, *_ in periods} for periods in found.values()))
        if not common:
            return {}
        key = self.rng.choice(sorted(common, key=str))
        return {
            symbol: self.rng.choice([ends for of, ends in periods if of == key]) for symbol, periods in found.items()
        }

    def periods(self, node: Derive | RowIntervals) -> list[tuple[Tuple, tuple[int, int]]]:
        """Keys and ends of a definition's situations, points left out."""
        names = node.schema.names
        found: list[tuple[Tuple, tuple[int, int]]] = []
        for row in self.found(node):
            ts, te = row[names.index("ts")], row[names.index("te")]
            assert isinstance(ts, int)
            assert isinstance(te, int)
            if ts < te:
                found.append((tuple(row[names.index(key)] for key in node.keys), (ts, te)))
        return found

    def pair(self, one: str, other: str, witness: Mapping[str, tuple[int, int]]) -> Term:
        """Some relations of two situations, among them mostly the one of the witnesses."""
        few = self.chance(0.4)
        allowed = set(
            self.rng.sample(RELATIONS, self.rng.choice((0, 1) if witness and few else (1, 2) if few else (3, 5, 8)))
        )
        if witness and (not allowed or self.chance(0.9)):
            allowed.add(relation_of(*witness[one], *witness[other]))
        ends = [Attr(f"{symbol}.{end}") for symbol in (one, other) for end in ("ts", "te")]
        return disjunction([relation.condition(*ends) for relation in RELATIONS if relation in allowed])

    def general(self, symbols: tuple[str, ...]) -> Term:
        def distance() -> Term:
            one, other = self.rng.sample(symbols, 2) if len(symbols) > 1 else (symbols[0], symbols[0])
            first, second = (
                Attr(f"{one}.{self.rng.choice(('ts', 'te'))}"),
                Attr(f"{other}.{self.rng.choice(('ts', 'te'))}"),
            )
            return call(self.rng.choice(("le", "lt", "ge", "eq")), first, self.plus(second, self.rng.randint(-3, 4)))

        return distance() if self.chance(0.5) else disjunction([distance(), distance()])

    # -- rows ---------------------------------------------------------------------------------------------------------

    def events(self, stream: StreamDef) -> tuple[Row, ...]:
        keys = self.rng.sample((1, 2, 3, None), self.rng.choice((1, 2, 3))) if self.keyed else [1]
        found: list[Row] = []
        for key in keys:
            time = self.rng.randint(0, 4)
            x: int | None = 0
            count = self.rng.choice((9, 14, 18) if self.plain else (4, 9, 14, 18))
            for n in self.ties(count):
                if self.chance(0.3 if self.plain else 0.5):
                    x = self.rng.choice((0, 0, 1, 2, 2, None))
                found.append({"k": key, "t": time, "n": n, "x": x, "y": self.rng.choice((0.0, 0.5, 1.5, None))})
                time += self.rng.choice((0, 0, 1, 1, 2)) if self.tied else self.rng.choice((1, 1, 1, 2, 3))
        self.rng.shuffle(found)
        return tuple(found)

    def ties(self, count: int) -> list[int | None]:
        """What orders the events of a key, all different: as they come, or, where it breaks ties, in any order and one
        NULL.
        """
        numbers: list[int | None] = [*range(count)]
        if self.tied and self.values.random() < 0.75:
            self.values.shuffle(numbers)
            numbers[self.values.randrange(count)] = None
        return numbers

    def interval_rows(self, stream: StreamDef) -> tuple[Row, ...]:
        """Periods that overlap each other, with ends where others have theirs."""
        least = 0 if stream.name in self.points else 1
        found: list[Row] = []
        for _ in range(self.rng.choice((0, 2, 4, 7, 10))):
            start = self.rng.randint(0, 14)
            end = start + least + self.rng.choice((0, 0, 1, 2, 2, 5))
            row: Row = {
                "k": self.rng.choice((1, 2, 3, None)),
                "a": start,
                "z": end,
                "x": self.rng.choice((0, 1, 2, None)),
            }
            if evaluate_term(stream.relations, row, stream.schema) is True:  # type: ignore[arg-type]  # values of generated rows
                found.append(row)
        return tuple(found)
