"""The clause MATCH_RECOGNIZE: worked examples of the standard and of other systems, and what is read, printed and
refused.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import tidegate as tg
from tests.algebra.text.row_pattern_examples import Example, as_bag, examples, result
from tests.strategies.row_pattern_texts import random_row_pattern, respelled
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.ordered.sequences.definition import EveryMatch, Reported, within
from tidegate.algebra.ordered.sequences.navigation import RowOf, RowsAggregate, RowValue
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import Absence, Concatenation, Step
from tidegate.algebra.terms import Attr
from tidegate.algebra.text.printer import node_query, query_text
from tidegate.algebra.text.reader import source_of
from tidegate.algebra.text.row_patterns.printer import match_recognize_text

EXAMPLES = list(examples())
CASES = 300
TICKS = tg.stream("Ticks", "sym string, t timestamp, seq bigint, price double, qty bigint", progress="t")
ROWS = tg.stream("Rows", "k string, t bigint, x bigint, y bigint", progress="t")
DIP = "PARTITION BY k ORDER BY t MEASURES A.x AS top, LAST(B.x) AS bottom PATTERN (A B+) DEFINE B AS x < PREV(x)"


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_worked_examples(example: Example) -> None:
    if example.refused:
        with pytest.raises(tg.QueryError) as raised:
            example.read()
        assert raised.value.code == example.refused
        assert raised.value.site is not None
        assert raised.value.site.column is not None
        return
    read = example.read()
    assert as_bag(result(read, example.rows, example.select)) == as_bag(example.expected), example.source
    again = tg.read_query(tg.query_text(read), example.relation())
    assert again._node == read._node


def test_there_are_examples_of_every_system() -> None:
    sources = " ".join(example.source for example in EXAMPLES)
    assert all(one in sources for one in ("ISO/IEC 19075-5", "trinodb", "oracle", "flink", "snowflake", "duckdb"))
    assert len(EXAMPLES) > 350


#: The rows of the feature table of RisingWave's design page, and what it has no row for.
FEATURES = {
    "one row a match": "ORDER BY t ONE ROW PER MATCH PATTERN (A)",
    "all rows of a match": "ORDER BY t ALL ROWS PER MATCH PATTERN (A)",
    "quantifiers": "ORDER BY t PATTERN (A* B+ C? D{2} E{2,} F{,3} G{2,3})",
    "reluctant quantifiers": "ORDER BY t PATTERN (A*? B+? C?? D{2}? E{2,}? F{,3}? G{2,3}?)",
    "alternation": "ORDER BY t PATTERN (A | B)",
    "groups with quantifiers": "ORDER BY t PATTERN ((A B)+)",
    "permutation": "ORDER BY t PATTERN (PERMUTE(A, B))",
    "anchors": "ORDER BY t PATTERN (^ A $)",
    "exclusion": "ORDER BY t ALL ROWS PER MATCH PATTERN (A {- B -} C)",
    "navigation in conditions": "ORDER BY t PATTERN (A B) DEFINE B AS B.x > A.x AND x > FIRST(A.x, 1) + LAST(x, 1)",
    "the rows before": "ORDER BY t PATTERN (A) DEFINE A AS x > PREV(x, 2)",
    "the rows after": "ORDER BY t PATTERN (A) DEFINE A AS x > NEXT(x)",
    "first and last in measures": "ORDER BY t MEASURES FIRST(A.x) AS f, LAST(A.x, 2) AS l PATTERN (A+)",
    "aggregates in measures": "ORDER BY t MEASURES COUNT(*) AS n, SUM(A.x) AS s, AVG(x) AS a, MAX(x) AS m PATTERN (A)",
    "aggregates in conditions": "ORDER BY t PATTERN (A+) DEFINE A AS SUM(A.x) < 5",
    "variables of rows": "ORDER BY t MEASURES CLASSIFIER() AS c PATTERN (A | B)",
    "numbers of matches": "ORDER BY t MEASURES MATCH_NUMBER() AS n PATTERN (A)",
    "subsets": "ORDER BY t MEASURES LAST(U.x) AS l PATTERN (A | B) SUBSET U = (A, B)",
    "skip": "ORDER BY t AFTER MATCH SKIP PAST LAST ROW PATTERN (A)",
    "skip to the next row": "ORDER BY t AFTER MATCH SKIP TO NEXT ROW PATTERN (A)",
    "skip to a variable": "ORDER BY t AFTER MATCH SKIP TO FIRST B PATTERN (A B)",
    "a time bound": "ORDER BY t PATTERN (A B) WITHIN 5",
    "running and final": "ORDER BY t MEASURES FINAL LAST(x) AS f, RUNNING SUM(x) AS r ALL ROWS PER MATCH PATTERN (A+)",
    "unmatched rows": "ORDER BY t ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A)",
    "empty matches": "ORDER BY t ALL ROWS PER MATCH OMIT EMPTY MATCHES PATTERN (A*)",
    "permutations in permutations": "ORDER BY t PATTERN (PERMUTE(A, PERMUTE(B, C)))",
    "two order columns": "ORDER BY t ASC, y PATTERN (A)",
    "no partitions": "PATTERN (A)",
    "no rows that would": "ORDER BY t PATTERN (!N[3] A B !M[5]) DEFINE N AS x = 1, M AS x = 2",
    "no groups of rows that would": "ORDER BY t PATTERN (A !(N M)[5] !(N | M{2})[3]) DEFINE N AS x = 1, M AS x > N.x",
}


@pytest.mark.parametrize("feature", FEATURES)
def test_features(feature: str) -> None:
    read = ROWS.match_recognize(FEATURES[feature])
    assert isinstance(read._node, Sequences)
    assert tg.read_query(tg.query_text(read), ROWS)._node == read._node


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(100, CASES, 100))])
def test_what_is_printed_is_read_as_the_same(seed: int) -> None:
    for case in range(seed, seed + 100):
        stream, node = random_row_pattern(case)
        text = node_query(node)
        assert tg.read_query(text, stream)._node == node, f"{case}:\n{text}"
        other = respelled(random.Random(case), text)
        assert tg.read_query(other, stream)._node == node, f"{case}:\n{other}"


def test_a_clause_over_a_relation_is_the_query_that_names_it() -> None:
    query = tg.read_query(f"FROM Rows MATCH_RECOGNIZE ({DIP}) AS m;", {"Rows": ROWS})
    assert query._node == ROWS.match_recognize(DIP)._node
    assert query.schema.names == ("k", "top", "bottom", "first", "last", "detected")
    aliased = "FROM Rows r MATCH_RECOGNIZE (" + DIP.replace("BY k ORDER BY t", "BY r.k ORDER BY r.t") + ") m"
    assert tg.read_query(aliased, ROWS)._node == query._node
    large = ROWS.where(ROWS.x > 5)
    assert (
        large.match_recognize(DIP)._node == tg.read_query(f"FROM Large MATCH_RECOGNIZE ({DIP})", {"Large": large})._node
    )
    printed = query_text(large.match_recognize(DIP))
    assert printed.startswith("PARTITION BY k\nORDER BY t\n")
    assert large.match_recognize(printed)._node == large.match_recognize(DIP)._node


def test_all_rows_have_the_columns_in_the_order_of_the_standard() -> None:
    """What partitions and orders, the measures, and the other attributes of the input."""
    read = ROWS.match_recognize(DIP.replace("PATTERN", "ALL ROWS PER MATCH PATTERN"))
    assert read.schema.names == ("k", "t", "top", "bottom", "x", "y", "first", "last", "detected")
    assert read.schema.temporal == ("t", "first", "last", "detected")


def test_excluded_rows_are_no_unmatched_rows() -> None:
    clause = "ORDER BY t ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN ({- A -} B)"
    with pytest.raises(tg.QueryError, match=r"TG178 rows are excluded") as raised:
        ROWS.match_recognize(clause)
    assert raised.value.site is not None
    assert clause[(raised.value.site.column or 0) - 1 :].startswith("ALL ROWS")
    assert ROWS.match_recognize(clause.replace(" WITH UNMATCHED ROWS", "")).schema.names[:2] == ("t", "k")


def test_which_stream_a_text_reads_is_known_before_there_is_one() -> None:
    asked = source_of(f"-- MATCH_RECOGNIZE\nFROM Rows MATCH_RECOGNIZE ({DIP})")
    assert (asked.stream, asked.time, asked.keys) == ("Rows", "t", ("k",))
    asked = source_of("FROM Rows ORDER BY t DEFINE A AS k = 'MATCH_RECOGNIZE' -- MATCH_RECOGNIZE")
    assert (asked.stream, asked.time, asked.keys) == ("Rows", "t", ())


def test_equal_navigations_are_one() -> None:
    node = ROWS.match_recognize(
        "ORDER BY t MEASURES A.x AS a, LAST(A.x) + 1 AS b, LAST(A.x, 0) AS c, RUNNING LAST(A.x) AS d, x AS e, "
        "LAST(x) + 1 AS f PATTERN (A) DEFINE A AS A.x > 1 AND x > 2"
    )._node
    assert isinstance(node, Sequences)
    of_a, of_all = node.navigations
    assert of_a == RowValue("A.x", Attr("x"), RowOf(("A",)))
    assert of_all == RowValue("x'", Attr("x"), RowOf())


def test_an_attribute_alone_is_that_of_the_last_row_in_measures() -> None:
    """In a condition it is that of its row. Printed it stands alone, too."""
    read = ROWS.match_recognize("ORDER BY t MEASURES x AS x, LAST(y) + 1 AS l, FINAL LAST(x) AS f PATTERN (A+)")
    assert result(read, (("k", 1, 2, 3), ("k", 4, 5, 6))) == [(5, 7, 5)]
    every = ROWS.match_recognize("ORDER BY t MEASURES x AS m, FINAL LAST(x) AS f ALL ROWS PER MATCH PATTERN (A+)")
    assert result(every, (("k", 1, 2, 3), ("k", 4, 5, 6)), ("t", "m", "f")) == [(1, 2, 5), (4, 5, 5)]
    empty = ROWS.match_recognize("ORDER BY t MEASURES x AS m PATTERN (A*) DEFINE A AS x > 2 AND LAST(x) < 9")
    assert result(empty, (("k", 1, 2, 3), ("k", 4, 5, 6))) == [(None,), (5,)]
    printed = tg.query_text(read)
    assert "MEASURES x AS x,\n" in printed
    assert " y + 1 AS l,\n" in printed
    assert "A AS x > 2 AND LAST(x) < 9" in tg.query_text(empty)
    for one in (read, every, empty):
        assert tg.read_query(tg.query_text(one), ROWS)._node == one._node


def test_an_attribute_has_one_unit_wherever_its_values_are_read() -> None:
    with pytest.raises(tg.QueryError, match=r"TG174 x is compared with km/h and with mph") as raised:
        ROWS.match_recognize("ORDER BY t MEASURES x > 5 km/h AS m PATTERN (A) DEFINE A AS LAST(A.x, 1) > 5 mph")
    assert 'units={"x": "km/h"}' in raised.value.hint


def test_a_name_of_an_attribute_is_no_navigation() -> None:
    stream = tg.stream("Rows", "t bigint, x bigint, `LAST(x, 1)` bigint", progress="t")
    read = stream.match_recognize('ORDER BY t MEASURES "LAST(x, 1)" AS a, LAST(x, 1) AS b PATTERN (A A)')
    node = read._node
    assert isinstance(node, Sequences)
    assert [navigation.name for navigation in node.navigations] == ["LAST(x, 1)'", "LAST(x, 1)''"]
    assert result(read, ((1, 2, 3), (4, 5, 6))) == [(6, 2)]
    assert tg.read_query(tg.query_text(read), stream)._node == node


def test_durations_are_ticks_of_the_timeline() -> None:
    def pattern(text: str, stream: Relation = TICKS, **units: str) -> Sequences:
        node = stream.match_recognize(f"ORDER BY t PATTERN {text}", units=units)._node
        assert isinstance(node, Sequences)
        return node

    for written in ("5 MINUTES", "INTERVAL '5' MINUTE", "5m", "PT5M", "INTERVAL '5 min'", "'5 minutes'"):
        assert pattern(f"(A B) WITHIN {written}").limits == (within(300_000_000),)
        assert pattern(f"(A !B[{written}])").pattern == Concatenation((Step("A"), Absence(Step("B"), 300_000_000)))
    assert pattern("(A B) WITHIN 5m", ROWS, t="s").limits == (within(300),)
    assert pattern("(A B) WITHIN 5", ROWS).limits == (within(5),)


def test_units_are_those_of_what_is_read() -> None:
    def condition(text: str) -> str:
        read = TICKS.match_recognize(f"ORDER BY t PATTERN (A) DEFINE A AS {text}", units={"price": "km/h"})
        return tg.query_text(read).split("A AS ")[1].split("\n")[0]

    assert condition("LAST(price, 1) > 70 mph") == "LAST(price, 1) > 112.65408"
    assert condition("MAX(A.price) > 70 mph") == "MAX(A.price) > 112.65408"
    assert condition("PREV(price) - price < 1 m/s") == "PREV(price) - price < 3.6"
    assert condition("COUNT(price) > 70") == "COUNT(price) > 70"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("x IN (1, y)", "x = 1 OR x = y"),
        ("x NOT IN (1)", "NOT x = 1"),
        ("x BETWEEN A.y AND 5 AND y > 1", "x >= A.y AND x <= 5 AND y > 1"),
        ("x NOT BETWEEN 1 AND 5 OR y = 1", "NOT (x >= 1 AND x <= 5) OR y = 1"),
        ("k LIKE 'a%' OR k NOT LIKE 'b%'", "like(k, 'a%') OR NOT like(k, 'b%')"),
        ("CASE WHEN x > 1 THEN y = 1 WHEN x > 2 THEN FALSE ELSE TRUE END", "if(x > 1, y = 1, if(x > 2, FALSE, TRUE))"),
        ("CASE k WHEN 'a' THEN x END = 2", "if(k = 'a', x, NULL) = 2"),
        ("SUM(CASE WHEN A.x > 1 THEN 1 ELSE 0 END) > 3", "SUM(if(A.x > 1, 1, 0)) > 3"),
        ("CAST(LAST(x, 1) AS VARCHAR) = '5'", "cast_string(LAST(x, 1)) = '5'"),
        ("CAST(k AS bigint) = 5", "cast_bigint(k) = 5"),
        ("COUNT(DISTINCT A.x) > 2", "COUNT_DISTINCT(A.x) > 2"),
    ],
)
def test_what_sql_says_in_words(written: str, read: str) -> None:
    clause = ROWS.match_recognize(f"ORDER BY t PATTERN (A) DEFINE A AS {written}")
    printed = tg.query_text(clause)
    assert printed.split("A AS ")[1].split("\n")[0] == read
    assert tg.read_query(printed, ROWS)._node == clause._node


def test_words_of_the_clause_name_attributes_where_they_say_nothing() -> None:
    stream = tg.stream("Rows", "t bigint, `end` bigint, `match` bigint, `all` bigint, `within` bigint", progress="t")
    read = stream.match_recognize(
        "ORDER BY t MEASURES end + A.match AS when, all AS first_all PATTERN (A) DEFINE A AS within > 1 AND end > 2"
    )
    assert read.schema.names == ("when", "first_all", "first", "last", "detected")
    assert tg.read_query(tg.query_text(read), stream)._node == read._node


def test_variables_without_a_name_are_printed_as_a_subset() -> None:
    read = ROWS.match_recognize("ORDER BY t MEASURES COUNT(U.*) AS n PATTERN (A | B) SUBSET U = (A, B)")._node
    assert isinstance(read, Sequences)
    (navigation,) = read.navigations
    assert isinstance(navigation, RowsAggregate)
    assert "SUBSET U1 = (A, B)" in match_recognize_text(_without_subsets(read))


def _without_subsets(node: Sequences) -> Sequences:
    return replace(node, subsets=())


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"selection": EveryMatch()}, "every match"),
        ({"reported": Reported("all", empty=False, unmatched=True)}, "without empty matches"),
    ],
)
def test_what_the_clause_cannot_say(changed: dict[str, object], what: str) -> None:
    node = ROWS.match_recognize(DIP)._node
    assert isinstance(node, Sequences)
    with pytest.raises(tg.QueryError) as raised:
        match_recognize_text(replace(node, **changed))  # type: ignore[arg-type]  # fields of it
    assert raised.value.code == "TG175"
    assert what in raised.value.message
