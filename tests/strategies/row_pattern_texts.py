"""Random row patterns, as nodes in the form in which the clause MATCH_RECOGNIZE is read, and random spellings of their
text.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress
from typing import Literal

import tidegate as tg
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.grouping import aggregate_of
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.ordered.sequences.definition import (
    Definition,
    Limit,
    Measure,
    Point,
    Preferred,
    Reported,
    Skip,
    within,
)
from tidegate.algebra.ordered.sequences.navigation import (
    Classifier,
    MatchNumber,
    Navigation,
    RowOf,
    RowsAggregate,
    RowValue,
    Variables,
)
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import (
    EMPTY,
    Absence,
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Step,
    absent_in,
    patterns_of,
    variables_of,
)
from tidegate.algebra.terms import Attr, Term, subterms
from tidegate.algebra.text.row_patterns.found import Navigations

#: Some are words of the clause, some no words at all.
_VARIABLES = ("A", "B", "b", "up down", "LAST", 'a "b"', "Pattern")
_ABSENT = ("N", "not there")
_REPORTED = (
    Reported(),
    Reported("all"),
    Reported("all", empty=False),
    Reported("all", unmatched=True),
)
_SKIPS: tuple[Literal["past last row", "next row"], ...] = ("past last row", "next row")
_ENDS: tuple[Literal["first", "last"], ...] = ("first", "last")


def random_stream(rng: random.Random) -> Relation:
    """A stream on a timeline of timestamps, dates or integers."""
    time = rng.choice(("timestamp", "bigint", "date"))
    columns = f"k string, t {time}, n bigint, x double, s string, ok boolean, `odd name` bigint, `order` double"
    return tg.stream("Rows", columns, progress="t")


def random_row_pattern(seed: int) -> tuple[Relation, Sequences]:
    """A stream, and a row pattern over it: the first that is drawn and valid."""
    rng = random.Random(f"row pattern {seed}")
    while True:
        nodes = _Nodes(rng)
        with suppress(tg.QueryError):
            node = nodes.node()
            assert node.schema
            return nodes.stream, node


def respelled(rng: random.Random, text: str) -> str:
    """The text with keywords in any case, and other spaces between words."""
    keyword = re.compile(
        r"\b(PARTITION|BY|ORDER|MEASURES|AS|ALL|ONE|ROWS?|PER|MATCH|AFTER|SKIP|TO|PAST|NEXT|OMIT|EMPTY|MATCHES|WITH"
        r"|UNMATCHED|WITHIN|AND|OR|SUBSET|DEFINE|FINAL|PREV|SUM|COUNT|CLASSIFIER|MATCH_NUMBER|PERMUTE)\b"
    )
    quoted = re.split(r"""("[^"]*"|'[^']*')""", text)
    for place in range(0, len(quoted), 2):
        part = keyword.sub(lambda found: rng.choice((found[0], found[0].lower(), found[0].capitalize())), quoted[place])
        quoted[place] = re.sub(r" ", lambda _: rng.choice((" ", " ", "\n", "  ", " -- AND so\n")), part)
    return "".join(quoted)


class _Nodes:
    def __init__(self, rng: random.Random) -> None:
        self.rng, self.stream = rng, random_stream(rng)
        self.navigations = Navigations(self.stream.schema)

    def node(self) -> Sequences:
        rng = self.rng
        pattern = Concatenation((Step(rng.choice(_VARIABLES)), self.pattern(3)))
        matched, absent = variables_of(pattern), absent_in(pattern)
        self.matched = matched
        self.subsets = self.some_subsets()
        measures = tuple(Measure(f"m {at}", self.value(None)) for at in range(rng.choice((0, 1, 2, 4))))
        defined = rng.sample([*matched, *(a for a in absent if a not in matched)], rng.randint(0, len(matched)))
        definitions = tuple(Definition(variable, self.condition(variable)) for variable in defined)
        excluded = any(isinstance(part, Exclusion) for part in patterns_of(pattern))
        return Sequences(
            self.stream._node,
            tuple(rng.sample(["k", "odd name"], rng.choice((0, 1, 1, 2)))),
            "t",
            rng.choice((None, "n")),
            pattern,
            definitions,
            self.in_order_of_reading([*(m.term for m in measures), *(d.condition for d in definitions)]),
            measures,
            tuple(self.limit() for _ in range(rng.choice((0, 0, 1, 1, 2)))),
            Preferred(self.skip()),
            rng.choice(_REPORTED[:3] if excluded else _REPORTED),
            tuple(self.subsets.items()),
        )

    def in_order_of_reading(self, terms: list[Term]) -> tuple[Navigation, ...]:
        """The navigations that are read, the first one first: others were drawn and not taken."""
        read = dict.fromkeys(part.name for term in terms for part in subterms(term) if isinstance(part, Attr))
        by_name = {navigation.name: navigation for navigation in self.navigations.found}
        return tuple(by_name[name] for name in read if name in by_name)

    def some_subsets(self) -> dict[str, Variables]:
        names = [name for name in ("U", "order", "V w") if name not in self.matched]
        found: dict[str, Variables] = {}
        for name in names[: self.rng.choice((0, 1, 2))]:
            members = tuple(self.rng.sample(self.matched, self.rng.randint(1, len(self.matched))))
            if members not in found.values():
                found[name] = members
        return found

    # -- patterns -----------------------------------------------------------------------------------------------------
    def pattern(self, depth: int) -> Pattern:
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(
                (Step(rng.choice(_VARIABLES)), Step("A"), EMPTY, Anchor("start"), Anchor("end"), self.absence())
            )
        parts = tuple(self.pattern(depth - 1) for _ in range(rng.choice((2, 2, 3))))
        match rng.choice(("one after the other", "or", "times", "times", "in any order", "excluded")):
            case "one after the other":
                return Concatenation(parts)
            case "or":
                return Alternation(parts)
            case "in any order":
                return Permutation(parts[: rng.choice((1, 2, 3))])
            case "excluded":
                return Exclusion(parts[0])
            case _:
                least = rng.choice((0, 0, 1, 2))
                most = rng.choice((None, max(least, 1), least + 3))
                return Repetition(parts[0], least, most, rng.random() < 0.6)

    def absence(self) -> Absence:
        rng, rows = self.rng, tuple(map(Step, _ABSENT))
        group = rng.choice((Concatenation(rows), Alternation(rows), Permutation(rows), Repetition(rows[0], 1, 2)))
        return Absence(group if rng.random() < 0.3 else rng.choice(rows), rng.choice((None, self.ticks())))

    def ticks(self) -> int:
        return self.rng.choice((0, 1, 7, 90_000_000, 5_400_000_123))

    # -- the whole match ----------------------------------------------------------------------------------------------
    def skip(self) -> Skip:
        if self.rng.random() < 0.5:
            return Skip(self.rng.choice(_SKIPS))
        return Skip(self.rng.choice(_ENDS), self.rng.choice([*self.matched, *self.subsets]))

    def limit(self) -> Limit:
        if self.rng.random() < 0.5:
            return within(self.ticks())
        return Limit(self.point(), self.point(), self.rng.choice((1, -1)) * self.ticks())

    def point(self) -> Point:
        return Point(self.rng.choice((None, *self.matched, *self.subsets)), self.rng.choice(_ENDS))

    # -- values -------------------------------------------------------------------------------------------------------
    def condition(self, here: str) -> Term:
        one, other = self.number(here), self.number(here)
        test = self.rng.choice((one > other, one == 2, one.is_null(), ~(one < 1), (one > 0) & (other <= 3)))
        return (test | self.stream.ok)._term if self.rng.random() < 0.2 else test._term

    def value(self, here: str | None) -> Term:
        if self.rng.random() < 0.3:
            text = self.navigations.expression(self.classifier(here))
            return self.rng.choice((text._term, (text == "A")._term))
        return self.number(here)._term

    def number(self, here: str | None) -> Expression:
        value = self.read(here)
        return self.rng.choice((value, value, value + 1, value * value))

    def read(self, here: str | None) -> Expression:
        rng = self.rng
        choice = rng.random()
        if choice < 0.2:
            own = self.stream[rng.choice(("n", "odd name"))]
            return own if here is not None else self.navigations.expression(RowValue("", own._term))
        if choice < 0.3 and here is None:
            return self.navigations.expression(MatchNumber(""))
        return self.navigations.expression(self.aggregate(here) if choice < 0.6 else self.row_value(here))

    def row_value(self, here: str | None) -> Navigation:
        argument = self.argument()._term
        row, final = self.row(here)
        return RowValue("", argument, row, final)

    def classifier(self, here: str | None) -> Navigation:
        row, final = self.row(here)
        return Classifier("", row, final)

    def row(self, here: str | None) -> tuple[RowOf, bool]:
        rng = self.rng
        row = RowOf(
            self.variables(here), rng.choice(_ENDS), rng.choice((0, 0, 1, 12)), rng.choice((0, 0, -1, 1, -3, 9))
        )
        return row, here is None and rng.random() < 0.3

    def variables(self, here: str | None) -> Variables:
        own = [] if here is None else [(here,)]
        return self.rng.choice([(), *((name,) for name in self.matched), *self.subsets.values(), *own])

    def argument(self) -> Expression:
        s = self.stream
        return self.rng.choice((s.n, s.n, s["odd name"], s.n * 2, s.n + s["odd name"], -s.n, tg.coalesce(s.n, 5)))

    def aggregate(self, here: str | None) -> Navigation:
        s = self.stream
        given = self.rng.choice((
            tg.count(), tg.count(), tg.count(s.s), tg.sum(self.argument()), tg.min(s.n), tg.max(self.argument()),
            tg.count_distinct(s.s), tg.try_sum(s.n),
        ))  # fmt: skip
        final = here is None and self.rng.random() < 0.3
        return RowsAggregate(aggregate_of(s, "", given, []), self.variables(here), final)
