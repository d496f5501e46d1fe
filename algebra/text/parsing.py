"""From text to a tree, by the grammar beside this file; what does not fit it is shown where it stands."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.errors import QueryError, Site

if TYPE_CHECKING:
    from lark import Lark, Token, Tree
    from lark.exceptions import UnexpectedInput

#: Characters of a text, to read which takes some seconds.
MAX_CHARACTERS = 250_000

#: The file with the part of the grammar that all languages have.
_TERMS = "terms.lark"
#: What errors call the tokens that are no keywords and no signs.
_CALLED = {
    "NAME": "a name",
    "QUOTED": "a name",
    "STRING": "a text in quotes",
    "NUMBER": "a number",
    "UNIT": "a unit",
    "COMPOUND": "a duration",
    "ISO": "a duration",
    "_KIND": "a duration",
    "RELATION": "a relation such as before, meets, overlaps or during",
    "$END": "the end of the text",
}
_OPERATORS = ("DIV", "IS", "AND", "OR")
#: What begins a comment elsewhere.
_COMMENTS = ("#", "//", "/*")
#: A name as MySQL, Spark and Flink quote it.
_BACK_TICKS = re.compile(r"`([^`]{1,80})`")
#: A comma behind the last of several things, before the word that follows.
_LAST_COMMA = re.compile(r",\s*(\w+)\s*$")
#: A duration has begun, and what follows it is none of its parts.
_DURATION = re.compile(r"\b(\w+)\s+[\d.]+\s*[^\W\d]*\s*$")
#: A number with a unit.
_QUANTITY = re.compile(r"[\d.]+\s*[^\W\d]+")
_ENDS_IN_QUANTITY = re.compile(rf"{_QUANTITY.pattern}\s*$")
_DURATIONS = "a duration is 5m, 1h 30m, PT1H30M, '1 hour 30 min' or INTERVAL '1' HOUR"
#: A definition begins.
_DEFINITION = re.compile(r"[^\W\d]\w*\s+AS\b", re.IGNORECASE)
#: The last condition has a `||`, which may be meant as an OR.
_OTHER_OR = re.compile(r"\|\|[^,]*$")
#: Characters of the longest keyword, and some that are too many.
_LONGEST = 24
_WORD = re.compile(r"[^\W\d]\w*")
_LAST_WORD = re.compile(r"\b([^\W\d]\w*)\s*$")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a query, and where it begins: a word or sign with its `text`, or what the grammar makes of several
    parts.
    """

    kind: str
    text: str
    parts: tuple[Part, ...]
    line: int
    column: int


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language of queries: the file of its grammar, and how that is said in it which SQL and EPL say otherwise.

    `elsewhere` has it by the first word of a clause, and there by the word or sign that does not fit, or the one
    before. `after_lists` are the clauses that may follow one in which commas stand, `before_durations` the words that a
    duration follows. `start` is the rule of a whole text, `aggregates` says where those belong that stand in a
    condition. `filtered` says how the aggregate is written that ends a text, with FILTER behind it.
    """

    grammar: str
    elsewhere: Mapping[str, Mapping[str, str]]
    after_lists: frozenset[str]
    before_durations: frozenset[str]
    start: str = "start"
    aggregates: str = "aggregates stand in RETURN; a condition speaks of one event"
    filtered: Callable[[str], str] | None = None


class Text:
    """The text of a query, which knows what stands where."""

    def __init__(self, text: str, file: str, language: Language) -> None:
        if len(text) > MAX_CHARACTERS:
            raise QueryError(
                "TG222",
                f"the text has {len(text):,} characters; a query has at most {MAX_CHARACTERS:,}",
                hint="if this is the text of one query, keep long lists of values in a table and join it",
                site=Site(file, 1, text[:200].split("\n")[0]),
            )
        self._lines, self._file, self.text, self.language = text.split("\n"), file, text, language

    def site(self, line: int, column: int) -> Site:
        """The place, both counted from 1."""
        return Site(self._file, line, self._lines[line - 1].replace("\t", " ").rstrip(), column)

    def at(self, part: Part) -> Site:
        """Where a part begins."""
        return self.site(part.line, part.column)

    def parse(self) -> Part:
        """The query in its parts; `QueryError` TG170 with the place, what was expected, and what is probably meant."""
        from lark.exceptions import UnexpectedInput

        try:
            return _part(_parser(self.language.grammar, self.language.start).parse(self.text))
        except UnexpectedInput as error:
            raise self._unexpected(error) from None

    def _unexpected(self, error: UnexpectedInput) -> QueryError:
        token, allowed = getattr(error, "token", None), set(getattr(error, "accepts", None) or ())
        allowed = allowed or set(getattr(error, "expected", None) or getattr(error, "allowed", None) or ())
        if token is not None and token.type == "$END":
            message, site = "the text ends here", self._end()
        else:
            line, column = error.line, error.column
            rest = self._lines[line - 1][column - 1 :]
            word = _WORD.match(rest)
            message, site = f"{shown(word[0] if word else rest[:1])} does not fit here", self.site(line, column)
        return QueryError(
            "TG170",
            message,
            because=(f"expected: {self._listed(allowed)}",) if allowed else (),
            hint=self._meant(site, allowed),
            site=site,
        )

    def _end(self) -> Site:
        """Behind the last character that is no space."""
        text = self.text.rstrip()
        line = text.count("\n")
        return self.site(line + 1, len(self._lines[line].rstrip()) + 1)

    def _meant(self, site: Site, allowed: Iterable[str]) -> str:
        """How it is said here, or a keyword that could stand here and nearly does, here or one word before."""
        assert site.column is not None
        elsewhere = self._said_elsewhere(site.line, site.column)
        if elsewhere:
            return elsewhere
        before, rest = self._lines[site.line - 1][: site.column - 1], self._lines[site.line - 1][site.column - 1 :]
        signs = _signs(self.language.grammar)
        # A name is compared by one of its attributes, or by a relation.
        as_name = rest.startswith(".") or (_WORD.match(rest) and "<" in {signs.get(name) for name in allowed})
        name = _LAST_WORD.search(before)
        if as_name and name is not None and is_duration(self.language, name[1]):
            return f'{name[1]} is a duration; as a name it is in double quotes: "{name[1]}"'
        words = {word.start(): word[0] for word in _WORD.finditer(site.code) if len(word[0]) <= _LONGEST}
        earlier = [words[start] for start in sorted(words) if start < site.column - 1]
        keywords = [name for name in allowed if name not in _CALLED and signs.get(name, name) == name]
        for word in (words.get(site.column - 1, ""), *earlier[-1:]):
            near = nearest(word, keywords, 1)
            if near and near[0] != word.upper():
                return f"did you mean {near[0]}?"
        if _QUANTITY.match(rest) and _ENDS_IN_QUANTITY.search(before):
            return "write both parts as one, such as 1h30m"
        begun = _DURATION.search(before)
        in_duration = begun is not None and begun[1].upper() in self.language.before_durations
        return _DURATIONS if "ISO" in allowed or in_duration else ""

    def _said_elsewhere(self, line: int, column: int) -> str:
        """How that is written here which the text writes as SQL or EPL do; empty where it is none of theirs."""
        before = "\n".join([*self._lines[: line - 1], self._lines[line - 1][: column - 1]])
        rest = self._lines[line - 1][column - 1 :]
        if quoted := _BACK_TICKS.match(rest):
            return f'names are in double quotes: "{quoted[1]}"'
        if rest.startswith(_COMMENTS):
            return "a comment begins with --"
        comma = _LAST_COMMA.search(before)
        if comma and comma[1].upper() in self.language.after_lists:
            return f"leave out the comma before {comma[1]}"
        words = [word.upper() for word in _WORD.findall(before)]
        elsewhere = self.language.elsewhere
        begins = [at for at, word in enumerate(words) if word in elsewhere]
        clause, inside = (words[begins[-1]], words[begins[-1] + 1 :]) if begins else ("", words)
        next_word = _WORD.match(rest)
        here = (next_word[0].upper(),) if next_word else (rest[:2], rest[:1])
        said = elsewhere[clause]
        if clause == "DEFINE" and _DEFINITION.match(rest):
            return said["AS"]
        if clause == "DEFINE" and _OTHER_OR.search(before):
            return "|| puts texts together: write OR"
        if here[0] == "FILTER" and self.language.filtered is not None and (own := self.language.filtered(before)):
            return own
        return next((said[key] for key in (*here, *inside[:-3:-1], *inside[:1]) if key in said), "")

    def _listed(self, allowed: Iterable[str]) -> str:
        """What could stand there, keywords last; the signs of operators of values are one thing."""
        signs = _signs(self.language.grammar)
        named = {_CALLED[name] for name in allowed if name in _CALLED}
        written = {signs[name] for name in allowed if name in signs}
        if "," in written:
            written.remove(",")
            named.add("a comma")
        if "||" in written:
            written -= {sign for sign in written if not sign.isalpha()} - {"(", ")", ";", "."} | set(_OPERATORS)
            named.add("an operator")
        return ", ".join([*sorted(named), *sorted(written, key=lambda text: (text.isalpha(), text))])


def name_of(part: Part) -> str:
    """A name as it is meant: quotes taken off."""
    written = _written(part)
    return written[1:-1].replace('""', '"') if is_quoted(part) else written


def is_quoted(part: Part) -> bool:
    """Whether a name is in double quotes."""
    return _written(part).startswith('"')


def _written(part: Part) -> str:
    return (part.parts[0] if part.parts else part).text


def _part(tree: Tree[Token] | Token) -> Part:
    if isinstance(tree, str):
        return Part(tree.type, str(tree), (), tree.line or 1, tree.column or 1)
    return Part(str(tree.data), "", tuple(map(_part, tree.children)), tree.meta.line, tree.meta.column)


@functools.cache
def _parser(grammar: str, start: str = "start") -> Lark:
    from lark import Lark

    texts = [files("tidegate.algebra.text").joinpath(name).read_text(encoding="utf-8") for name in (_TERMS, grammar)]
    return Lark("\n".join(texts), parser="lalr", propagate_positions=True, start=start)


@functools.cache
def _signs(grammar: str) -> dict[str, str]:
    """How the tokens that the grammar writes out are written: keywords in capitals, signs as themselves."""
    return {t.name: t.pattern.value.upper() for t in _parser(grammar).terminals if t.pattern.type == "str"}


def keywords(language: Language) -> frozenset[str]:
    """The words that mean something to the grammar, in capitals."""
    return frozenset(written for written in _signs(language.grammar).values() if written.replace("_", "").isalpha())


def is_duration(language: Language, name: str) -> bool:
    """Whether a name is read as a duration where either can stand, as P2D is."""
    durations = (t.pattern.to_regexp() for t in _parser(language.grammar).terminals if t.name == "ISO")
    return any(re.fullmatch(duration, name) for duration in durations)
