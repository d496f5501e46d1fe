"""The search for regular expressions finds what Python's finds, and no text takes it long."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

import polars as pl
import pytest

import tidegate as tg
from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.patterns import EXTRACT, LIKE, MATCHES, REPLACE, like_pattern, read_pattern
from tidegate.algebra.typed import pattern_search
from tidegate.algebra.typed.pattern_search import END, search

ATOMS = ("a", "b", "c", ".", "[ab]", "[^a]", r"\d", "^", "$", r"\.", r"[\]a-c\\]", r"\n")
REPETITIONS = ("", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}")


def drawn(rng: random.Random, depth: int = 2) -> str:
    def atom() -> str:
        nested = depth > 0 and rng.random() < 0.3
        return rng.choice(("(", "(?:")) + drawn(rng, depth - 1) + ")" if nested else rng.choice(ATOMS)

    def sequence() -> str:
        return "".join(atom() + rng.choice(REPETITIONS) for _ in range(rng.randint(0, 4)))

    return "|".join(sequence() for _ in range(rng.choice((1, 1, 2, 3))))


def test_it_finds_what_python_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same match, with the same groups, from any character on."""
    monkeypatch.setattr(pattern_search, "_SHORT", -1)
    rng = random.Random(5)
    found = 0
    for _ in range(4_000):
        try:
            pattern = read_pattern(drawn(rng)).text
            own = re.compile(pattern.replace(END, r"\Z"))
        except (QueryError, re.error):
            continue
        for _ in range(3):
            text = "".join(rng.choice("aabbc.1\n]\\") for _ in range(rng.randint(0, 7)))
            start = rng.choice((0, 0, rng.randint(0, len(text))))
            match = own.search(text, start)
            places = search(pattern, text, start)
            if match is None:
                assert places is None, (pattern, text, start)
                continue
            assert places is not None, (pattern, text, start)
            found += 1
            for group in range(own.groups + 1):
                assert places[2 * group : 2 * group + 2] == tuple(
                    None if place < 0 else place for place in match.span(group)
                ), (pattern, text, start)
    assert found > 2_000


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (read_pattern("^(?:a+)+$").text, "a" * 60 + "!"),
        (read_pattern("(?:a|a)*b").text, "a" * 200),
        (read_pattern("a?" * 30 + "a{30}b").text, "a" * 30),
        (read_pattern("(?:a{1,20}){1,20}b").text, "a" * 300),
        (like_pattern("%a%b%c%d%e%").text, "abcd" * 2_000),
    ],
    ids=["repetitions of repetitions", "alternatives", "optional letters", "counted repetitions", "LIKE"],
)
def test_no_text_takes_long(pattern: str, text: str) -> None:
    began = time.process_time()
    assert search(pattern, text) is None
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [
        ("(?:a{1000}){1000}", 1_001_000),
        (".{1000}" * 11, 11_000),
        ("[^é]{1000}" * 4, 12_000),
        (r"(?:\W{101}){50}", 10_150),
        (".?" * 9_900, 10_002),
        (".{0,3}" * 3_300, 10_004),
        ("|" * 300_000, 10_001),
        ("." * 9_000 + "|" * 90_000, 10_001),
    ],
    ids=["repetitions", "any", "set", "class", "optional ones", "repetitions of any", "nothing", "or nothing"],
)
def test_a_pattern_of_many_steps_is_refused(pattern: str, steps: int) -> None:
    """Rust would refuse it, too, but only when rows come."""
    with pytest.raises(QueryError, match=rf"TG134 no regular expression: it has {steps:,} steps, and at most 10,000"):
        read_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        ".{1000}" * 9 + "a{990}",
        "[^é]{1000}" * 3,
        r"(?:\W{1000}){4}\W{980}\D{10}\S{5}",
        "(?:a{1000}){9}",
        "[^" + "".join(chr(0x400 + 997 * n) for n in range(20)) + "]{800}",
        "[à日😀]{1000}" * 4,
        ("[^" + "".join(chr(0x10000 + 3001 * n) for n in range(3)) + "]{833}") * 3,
        "(?:[^" + "".join(chr(0x10000 + 3001 * n) for n in range(64)) + "]{146}){2}",
        "(?:b" * 49 + "(?:a|[^c]d)?" + "|c[de])?" * 49 + "z",
        ".?" * 4_000 + "x?.*" * 498 + "y",
        ".{0,1000}" * 9 + ".{0,988}y",
        "(?:y" + "|.?|" * 2_498 + ")y",
    ],
    ids=[
        "any",
        "set",
        "classes",
        "repetitions",
        "a large set",
        "a set of few",
        "far",
        "many far",
        "deep",
        "optional ones",
        "many optional ones",
        "alternatives",
    ],
)
def test_what_is_allowed_rust_compiles(pattern: str) -> None:
    rows = pl.DataFrame({"txt": ["x"]})
    assert rows.select(pl.col("txt").str.contains(read_pattern(pattern).for_others())).item() is False


def test_a_pattern_of_like_has_ten_thousand_characters_at_most() -> None:
    relation = tg.stream("S", "txt string, t bigint", progress="t")
    rows = [{"txt": "x" * 9_999, "t": 1}, {"txt": "x", "t": 2}]
    done = tg.program(Out=relation.where(relation.txt.like("_" * 9_999 + "%"))).run({"S": rows})
    assert [row["t"] for row in done.rows("Out")] == [1]
    with pytest.raises(QueryError, match="TG134 no pattern of like: it has 10,001 steps"):
        relation.txt.like("_" * 10_001)


def test_a_border_may_be_optional() -> None:
    assert search(read_pattern("^?a").text, "ba") == (1, 2)


def test_the_functions_that_take_patterns() -> None:
    like, matches, extract, replace = (kernel.python for kernel in (LIKE, MATCHES, EXTRACT, REPLACE))
    assert like is not None
    assert matches is not None
    assert extract is not None
    assert replace is not None
    assert [like(text, "a%b_") for text in ("abc", "a..bc\n", "ab")] == [True, False, False]
    assert [matches(text, "a+$") for text in ("baa", "ab")] == [True, False]
    assert [extract(text, "(a)?(b)", 1) for text in ("ab", "cb", "c")] == ["a", "", None]
    assert [extract("cab", "(a)?(b)", group) for group in range(3)] == ["ab", "a", "b"]
    assert replace("aab ab b", "a+b", "$1") == "$1 $1 b"
    assert replace("aaa", "a", "") == ""
    assert replace("b", "a", "c") == "b"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?:b" * 51 + ")" * 51, "parentheses are nested more than 50 deep"),
        ("(?:" * 5_000 + "b" + ")" * 5_000, "parentheses are nested more than 50 deep"),
        ("(a?)" * 101, "it has more than 100 groups"),
        ("a{٣}", "{ begins no repetition"),
        ("[a-\\n]", "a range of characters from the later to the earlier"),
        (r"[\n-\t]", "a range of characters from the later to the earlier"),
    ],
    ids=["deep", "very deep", "groups", "digits", "to a letter", "letters"],
)
def test_what_others_do_not_take_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(QueryError, match=f"TG134 no regular expression: {re.escape(why)}"):
        read_pattern(pattern)


def test_repetitions_of_repetitions_have_as_many_steps_as_letters() -> None:
    """A loop goes back to what it repeats, so nested ones do not multiply."""
    pattern = "a"
    for _ in range(40):
        pattern = f"(?:{pattern})+"
    assert search(read_pattern(pattern).text, "baa") == (1, 3)
    assert search(read_pattern(f"{pattern}b").text, "a" * 1_001) is None


@pytest.mark.parametrize(
    ("pattern", "in_it", "others"),
    [
        (r"[\\n]", "\\n", "\na"),
        (r"[C:\\r]", "C:\\r", "\ra"),
        (r"[\\a]", "\\a", "\nb"),
        (r"[\t-\r]", "\t\n\r", "\\tr "),
        ("[\0-\2]", "\0\1\2", "\3x0"),
        ("\0", "\0", "x0"),
    ],
    ids=["a backslash", "paths", "a letter", "controls", "from NUL on", "NUL"],
)
def test_a_set_has_the_same_characters_everywhere(pattern: str, in_it: str, others: str) -> None:
    read = read_pattern(pattern)
    found = pl.DataFrame({"txt": [*in_it, *others]}).select(pl.col("txt").str.contains(read.for_others()))
    assert found.get_column("txt").to_list() == [True] * len(in_it) + [False] * len(others)
    assert [search(read.text, text) is not None for text in (*in_it, *others)] == found.get_column("txt").to_list()


def test_nul_and_the_end_of_the_text_are_two_things() -> None:
    for read in (read_pattern("\0end"), like_pattern("\0end")):
        assert search(read.text, "\0end") is not None
        assert search(read.text, "\0en") is None
        texts = pl.DataFrame({"txt": ["\0end", "\0", ""]})
        assert texts.select(pl.col("txt").str.contains(read.for_others()))["txt"].to_list() == [True, False, False]


@pytest.mark.parametrize(
    "build", [lambda x: x == "\ud800", lambda x: x.like("\ud800%"), lambda x: x.regexp_like("\ud800")]
)
def test_half_of_a_character_is_no_text(build: Callable[[tg.Expression], tg.Expression]) -> None:
    relation = tg.stream("S", "txt string, t bigint", progress="t")
    with pytest.raises(QueryError, match="TG110 half of a character is no text"):
        relation.where(build(relation.txt))
    with pytest.raises(QueryError, match="TG110 half of a character is no text"):
        tg.string_agg(relation.txt, "\ud800")
