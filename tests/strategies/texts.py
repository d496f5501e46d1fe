"""Random queries of the text language, by its grammar: what may be written, in any of the ways in which it may be."""

from __future__ import annotations

import random

import tidegate as tg
from tidegate.algebra.allen import INTERSECTS, RELATIONS
from tidegate.algebra.dsl.relation import Relation

_ATTRIBUTES = {
    "n": "bigint",
    "speed": "double",
    "order": "double",  # a word that means something elsewhere
    "odd name": "bigint",
    "word": "string",
    "ok": "boolean",
    "price": "decimal(10,2)",
    "day": "date",
    "gap": "interval day to second",
}


def random_stream(seed: int) -> Relation:
    """A stream on a timeline of timestamps, dates or integers."""
    time = random.Random(f"texts {seed}").choice(("timestamp", "timestamp", "bigint", "date"))
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in {"k": "bigint", "t": time, **_ATTRIBUTES}.items())
    return tg.stream("Events", schema, progress="t")


def random_query(seed: int) -> str:
    """A query over the stream of the same seed."""
    return _Texts(random.Random(f"texts {seed}")).query()


class _Texts:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.timeline = rng.choice(("timestamp", "timestamp", "bigint", "date"))
        self.alias = rng.choice(("", "", "E", "Ev"))
        self.symbols = list("ABCD"[: rng.choice((1, 2, 2, 3, 4))])
        self.keys = rng.sample(["k", "n", "word", "odd name"], rng.choice((0, 1, 1, 2)))
        self.compared = dict[str, str]()

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def word(self, text: str) -> str:
        """A keyword in some case."""
        return self.rng.choice((text, text.lower(), text.capitalize()))

    def space(self) -> str:
        return self.rng.choice((" ", " ", "\n", "  ", " -- a comment; AND 'more'\n"))

    def join(self, *parts: str) -> str:
        return self.space().join(part for part in parts if part)

    def name(self, name: str) -> str:
        return f'"{name}"' if not name.isidentifier() or (name != "order" and self.chance(0.1)) else name

    def attribute(self, name: str) -> str:
        prefix = f"{self.alias or 'Events'}." if self.chance(0.5) else ""
        return prefix + self.name(name)

    # -- clauses ------------------------------------------------------------------------------------------------------

    def query(self) -> str:
        order = self.join(self.word("ORDER"), self.word("BY"), self.attribute("t"))
        order += f", {self.attribute('n')}" if self.chance(0.3) else ""
        keys = ", ".join(self.attribute(key) for key in self.keys)
        partition = self.join(self.word("PARTITION"), self.word("BY"), keys) if keys else ""
        clauses = [order if self.chance(0.7) or ", " in order else "", partition]
        self.rng.shuffle(clauses)
        alias = self.join(self.word("AS") if self.chance(0.5) else "", self.alias) if self.alias else ""
        define = self.join(self.word("DEFINE"), ", ".join(map(self.definition, self.symbols)))
        pattern = self.pattern()
        within = self.join(self.word("WITHIN"), self.duration(1000)) if self.chance(0.8) else ""
        returns = self.join(self.word("RETURN"), self.items()) if self.chance(0.8) else ""
        emit = (
            self.join(self.word("EMIT"), self.word(self.rng.choice(("EARLIEST", "FINAL")))) if self.chance(0.3) else ""
        )
        end = ";" if self.chance(0.5) else ""
        return self.join(self.word("FROM"), "Events", alias, *clauses, define, pattern, within, returns, emit, end)

    def definition(self, symbol: str) -> str:
        limit = self.rng.choice(("", "", "least", "most", "between"))
        if limit == "between":
            limits = self.join(self.word("BETWEEN"), self.duration(5), self.word("AND"), self.duration(500, least=400))
        else:
            limits = self.join(self.word("AT"), self.word(limit.upper()), self.duration(90)) if limit else ""
        return self.join(symbol, self.word("AS"), self.condition(3), limits)

    def duration(self, most: int, least: int = 1) -> str:
        amount = self.rng.randint(least, most)
        if self.timeline == "bigint":
            return str(amount)
        if self.timeline == "date":
            return self.rng.choice((str(amount), f"{amount} days", f"{amount}d", f"{24 * amount} HOURS"))
        return self.rng.choice(
            (f"{amount}s", f"{amount} SECONDS", f"{amount / 4}s", f"{amount}.5 ms 3us", f"{amount}s 250ms")
        )

    def pattern(self) -> str:
        if len(self.symbols) < 2:
            return ""
        constraints = [self.constraint() for _ in range(self.rng.choice((0, 1, 2, 3)))]
        if not constraints:
            return ""
        return self.join(self.word("PATTERN"), f" {self.word('AND')} ".join(constraints))

    def constraint(self) -> str:
        return self.rng.choice((";", " ; ")).join(self.alternative() for _ in range(self.rng.choice((1, 1, 2, 3))))

    def alternative(self) -> str:
        one, other = self.rng.sample(self.symbols, 2)
        known = [*(relation.value for relation in RELATIONS), INTERSECTS]
        relations = self.rng.sample(known, self.rng.choice((1, 1, 2, 4)))
        names = [self.word(name.replace("_", self.rng.choice((" ", "-", "_")))) for name in relations]
        return self.join(one, ";".join(names), other)

    def items(self) -> str:
        found = []
        for number in range(self.rng.choice((1, 2, 4))):
            symbol = self.rng.choice(self.symbols)
            function = self.rng.choice(("min", "max", "first", "last", "count", "count_distinct", "SUM", "Avg"))
            of = self.rng.choice(
                ("n", "speed", "price") if function in ("SUM", "Avg") else ("n", "word", "odd name", "k")
            )
            choices = [f"{function}({symbol}.{self.name(of)})", f"count({symbol})", f"{symbol}.ts", f"{symbol}.te"]
            choices += [self.attribute(key) for key in self.keys] + ["detected"] * (number == 0)
            text = self.rng.choice(choices)
            found.append(self.join(text, self.word("AS"), self.rng.choice((f"r{number}", f'"r {number}"'))))
        return ", ".join(found)

    # -- conditions ---------------------------------------------------------------------------------------------------

    def condition(self, depth: int) -> str:
        if depth and self.chance(0.5):
            inner = [self.condition(depth - 1) for _ in range(self.rng.choice((2, 2, 3)))]
            match self.rng.choice(("and", "or", "not", "brackets")):
                case "not":
                    return f"{self.word('NOT')} ({inner[0]})" if self.chance(0.7) else f"not {self.comparison(1)}"
                case "brackets":
                    return f"({inner[0]})"
                case op:
                    return f" {self.word(op.upper())} ".join(f"({one})" if self.chance(0.4) else one for one in inner)
        return self.comparison(2)

    def comparison(self, depth: int) -> str:
        op = self.rng.choice(("=", "==", "<>", "!=", "≠", "<", "<=", "≤", ">", ">=", "≥", "<=>"))
        choice = self.rng.random()
        if choice < 0.4:
            return f"{self.number(depth)} {op} {self.number(depth)}"
        if choice < 0.5:
            return f"{self.attribute(self.rng.choice(list(_ATTRIBUTES)))} {self.rng.choice(('IS NULL', 'is not null'))}"
        if choice < 0.6:
            speed = self.rng.choice(("70 mph", "70mph", "-3.5 mph", "-(5 mph)"))
            return f"{self.attribute('speed')} {op} {speed}"
        if choice < 0.7:
            gap = self.rng.choice(("5s", "1.5 MINUTES", "2 h", "DURATION '1h 5s'", "'3s'"))
            return f"{self.attribute('gap')} {op} {gap}"
        if choice < 0.8:
            return f"{self.string()} {op} {self.string()}"
        if choice < 0.85:
            return self.rng.choice(("TRUE", "false", self.attribute("ok"), f"{self.attribute('ok')} = true"))
        if choice < 0.9:
            return f"{self.attribute('day')} {op} " + self.rng.choice(("DATE '2026-01-31'", "'2026-01-31'"))
        if choice < 0.95:
            return f"{self.attribute('price')} {op} " + self.rng.choice(("DECIMAL '1.50'", "5", "decimal '-0.05'"))
        return f"starts_with({self.string()}, {self.string()})"

    def number(self, depth: int) -> str:
        if depth == 0 or self.chance(0.3):
            constants = ("0", "7", "-3", "2.5", "1e3", ".5", "-0.0", "9007199254740993", "- 4")
            attribute = self.attribute(self.rng.choice(("n", "speed", "order", "odd name")))
            return self.rng.choice(
                (attribute, attribute, self.rng.choice(constants), f"-{attribute}", f"-(-{attribute})")
            )
        one, other = self.number(depth - 1), self.number(depth - 1)
        match self.rng.choice(("sign", "sign", "sign", "function")):
            case "function":
                return self.rng.choice((
                    f"abs({one})", f"least({one}, {other})", f"coalesce({one}, NULL, {other})", f"try_div({one}, {other})",
                    f"if({self.comparison(0)}, {one}, {other})", f"power({one}, {other})", f"length({self.string()})",
                ))  # fmt: skip
            case _:
                sign = self.rng.choice(("+", "-", "*", "/"))
                return f"{self.bracketed(one)} {sign} {self.bracketed(other)}"

    def bracketed(self, text: str) -> str:
        return f"({text})" if self.chance(0.5) else text

    def string(self) -> str:
        word = self.attribute("word")
        return self.rng.choice(
            (word, word, "'it''s'", "''", f"upper({word})", f"{word} || 'x' || {word}", f"concat({word}, 'a', 'b')")
        )
