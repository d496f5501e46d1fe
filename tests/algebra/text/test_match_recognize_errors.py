"""What is wrong with a clause MATCH_RECOGNIZE: where, what could stand there, and how it is mended."""

from __future__ import annotations

import pytest

import tidegate as tg

TICKS = tg.stream("Ticks", "sym string, t timestamp, seq bigint, price double, qty bigint", progress="t")
CLAUSE = """FROM Ticks MATCH_RECOGNIZE (
    PARTITION BY sym
    ORDER BY t ASC, seq
    MEASURES FIRST(A.price, 1) AS f, FINAL LAST(B.price) AS l, COUNT(*) AS n
    ALL ROWS PER MATCH
    AFTER MATCH SKIP TO LAST B
    PATTERN (A+ B{1,3} C?) WITHIN 5 MINUTES
    SUBSET U = (A, B)
    DEFINE A AS price > PREV(price), B AS B.price < A.price
) AS m;
"""
#: What is changed to what, the code, what the error points at, and a part of the hint.
WRONG = [
    ("FROM Ticks", "SELECT * FROM Ticks", "TG170", "SELECT *", "a query begins with FROM: of its measures you select in Python, with select(...)"),
    ("FROM Ticks", "FROM Ticks, Quotes", "TG170", ", Quotes", "a query reads one stream: join in Python, and read the clause over the result"),
    ("FROM Ticks", "FROM Ticks JOIN Quotes", "TG170", "Quotes MATCH_RECOGNIZE", "a query reads one stream: join in Python, and read the clause over the result"),
    ("FROM Ticks", "FROM Ticks WHERE price > 1", "TG170", "price >", "a clause reads all rows: filter in Python, and read it over the result"),
    ("PARTITION BY sym", "PARTITON BY sym", "TG170", "PARTITON BY", "did you mean PARTITION?"),
    ("PARTITION BY sym", "PARTITION BY upper(sym)", "TG170", "(sym)", "keys are attributes: compute them in Python, with with_(...)"),
    ("PARTITION BY sym", "PARTITION BY `sym`", "TG170", "`sym`", 'names are in double quotes: "sym"'),
    ("COUNT(*) AS n", "COUNT(*) AS `the count`", "TG170", "`the", 'names are in double quotes: "the count"'),
    ("DEFINE A AS price", "DEFINE A AS `price`", "TG170", "`price`", 'names are in double quotes: "price"'),
    ("PARTITION BY sym", "PARTITION BY symb", "TG101", "symb", "did you mean sym?"),
    ("ORDER BY t ASC, seq", "ORDER BY t DESC", "TG178", "DESC", "rows come in the order of time: leave out DESC"),
    ("ORDER BY t ASC, seq", "ORDER BY t, seq DESC", "TG178", "DESC", "leave out DESC, and order by what is computed in Python: with_(order=-x)"),
    ("ORDER BY t ASC, seq", "ORDER BY t, seq, qty", "TG178", "qty", "the first is time, the second orders rows of one time: make one attribute of several in Python"),
    ("ORDER BY t ASC, seq", "ORDER BY t NULLS LAST", "TG170", "NULLS LAST", "leave it out: an instant is never NULL"),
    ("ORDER BY t ASC, seq", "ORDER BY price", "TG117", "price", "instants are t"),
    ("ORDER BY t ASC, seq", "ORDER BY floor(t)", "TG170", "(t)", "rows are in order of attributes: compute them in Python, with with_(...)"),
    ("MEASURES FIRST", "MEASURE FIRST", "TG170", "MEASURE FIRST(A.price,", "did you mean MEASURES?"),
    ("COUNT(*) AS n", "COUNT(*)", "TG170", "ALL ROWS", "a measure has a name: COUNT(*) AS n"),
    ("COUNT(*) AS n", "COUNT(*) n", "TG170", "n", ""),
    ("COUNT(*) AS n", "COUNT(*) AS f", "TG103", "f", "give it another name"),
    ("COUNT(*) AS n", "COUNT(*) AS price", "TG103", "price", "give it another name"),
    ("COUNT(*) AS n", "COUNT(*) AS first", "TG103", "first", "give it another name"),
    ("COUNT(*) AS n", "SUM(*) AS n", "TG178", "SUM(*) AS", "write COUNT(*) or SUM(A.x)"),
    ("COUNT(*) AS n", "SUM() AS n", "TG178", "SUM() AS", "write SUM(A.x)"),
    ("COUNT(*) AS n", "COUNT(A.*, 2) AS n", "TG170", ", 2)", ""),
    ("COUNT(*) AS n", "SUM(1) AS n", "TG178", "1) AS", "name one: SUM(A.x)"),
    ("COUNT(*) AS n", "SUM(DISTINCT A.price) AS n", "TG178", "SUM(DISTINCT A.price)", "only COUNT(DISTINCT A.x) counts values"),
    ("COUNT(*) AS n", "abs(*) AS n", "TG178", "*) AS", "they stand in COUNT(*), COUNT(A.*) and COUNT(DISTINCT A.x)"),
    ("COUNT(*) AS n", "A.* AS n", "TG170", "* AS", ""),
    ("COUNT(*) AS n", "A.prize AS n", "TG101", "A.prize AS", "did you mean price?"),
    ("COUNT(*) AS n", "D.price AS n", "TG172", "D.price AS", "the pattern has A, B, C, U"),
    ("COUNT(*) AS n", "a.price AS n", "TG172", "a.price AS", "did you mean A?"),
    ("COUNT(*) AS n", "Ticks.price AS n", "TG172", "Ticks.price AS", "write price, or A.price"),
    ("COUNT(*) AS n", "A AS n", "TG172", "A AS", "write A.sym"),
    ("COUNT(*) AS n", "FINAL PREV(A.price) AS n", "TG178", "FINAL PREV(A.price)", "it stands inside: PREV(FINAL LAST(A.x))"),
    ("COUNT(*) AS n", "FINAL CLASSIFIER() AS n", "TG178", "FINAL CLASSIFIER()", "write FINAL LAST(CLASSIFIER())"),
    ("COUNT(*) AS n", "FINAL abs(price) AS n", "TG178", "FINAL abs(price)", "it stands before FIRST, LAST and aggregates"),
    ("COUNT(*) AS n", "FINALE LAST(price) AS n", "TG170", "FINALE LAST(price)", "did you mean FINAL?"),
    ("COUNT(*) AS n", "LAST(A.price * B.price) AS n", "TG178", "B.price) AS", "take each by itself, such as LAST(A.price) and LAST(B.price)"),
    ("COUNT(*) AS n", "LAST(A.price * qty) AS n", "TG178", "qty) AS", "take each by itself, such as LAST(A.price) and LAST(qty)"),
    ("COUNT(*) AS n", "LAST(LAST(A.price)) AS n", "TG178", "LAST(A.price)) AS", "PREV and NEXT take FIRST or LAST, and nothing else takes another one: PREV(LAST(A.x, 1), 2)"),
    ("COUNT(*) AS n", "LAST(SUM(A.price)) AS n", "TG178", "SUM(A.price)) AS", "aggregates are of attributes of rows: SUM(A.x)"),
    ("COUNT(*) AS n", "SUM(LAST(A.price)) AS n", "TG178", "LAST(A.price)) AS", "aggregates are of attributes of rows: SUM(A.x)"),
    ("COUNT(*) AS n", "COUNT(DISTINCT CLASSIFIER()) AS n", "TG178", "CLASSIFIER()) AS", "aggregates are of attributes of rows: SUM(A.x)"),
    ("COUNT(*) AS n", "PREV(NEXT(price)) AS n", "TG178", "NEXT(price)) AS", "PREV and NEXT take FIRST or LAST, and nothing else takes another one: PREV(LAST(A.x, 1), 2)"),
    ("COUNT(*) AS n", "LAST(5) AS n", "TG178", "5) AS", "name one: LAST(A.x)"),
    ("COUNT(*) AS n", "LAST(price, qty) AS n", "TG178", "qty) AS", "write LAST(A.x, 2)"),
    ("COUNT(*) AS n", "LAST(price, 1.5) AS n", "TG178", "1.5) AS", "write LAST(A.x, 2)"),
    ("COUNT(*) AS n", "LAST() AS n", "TG178", "LAST() AS", "write LAST(A.x) or LAST(A.x, 2)"),
    ("COUNT(*) AS n", "CLASSIFIER('A') AS n", "TG178", "CLASSIFIER('A') AS", "write CLASSIFIER(A)"),
    ("COUNT(*) AS n", "CLASSIFIER(Q) AS n", "TG172", "CLASSIFIER(Q) AS", "the pattern has A, B, C, U"),
    ("COUNT(*) AS n", "MATCH_NUMBER(A) AS n", "TG178", "MATCH_NUMBER(A) AS", "write MATCH_NUMBER()"),
    ("COUNT(*) AS n", "LAST(CLASSIFIER() || sym) AS n", "TG178", "CLASSIFIER() ||", "it stands alone there, LAST(CLASSIFIER()): compute with the result"),
    ("COUNT(*) AS n", "MATCH_ROWTIME() AS n", "TG131", "MATCH_ROWTIME() AS", "each match has the instant of its last row: last"),
    ("COUNT(*) AS n", "lag(price) AS n", "TG131", "lag(price) AS", "write PREV(x, 1)"),
    ("COUNT(*) AS n", "frist(price) AS n", "TG131", "frist(price) AS", "did you mean FIRST?"),
    ("COUNT(*) AS n", "price isnt (1) AS n", "TG170", "isnt (1)", "RUNNING or FINAL can stand before a call"),
    ("COUNT(*) AS n", "CAST(price AS blob) AS n", "TG112", "blob) AS", "there are bigint, boolean, date, double, string, timestamp"),
    ("COUNT(*) AS n", "CASE price > 1 THEN 2 END AS n", "TG170", "THEN 2", ""),
    ("COUNT(*) AS n", "SUM(price) FILTER (WHERE price > 1) AS n", "TG170", "FILTER (WHERE", "write SUM(if(condition, price, NULL))"),
    ("COUNT(*) AS n", "COUNT(A.price) FILTER (WHERE A.price > 1) AS n", "TG170", "FILTER (WHERE", "write COUNT(if(condition, A.price, NULL))"),
    ("COUNT(*) AS n", "COUNT(*) FILTER (WHERE price > 1) AS n", "TG170", "FILTER (WHERE", "write COUNT(if(condition, 1, NULL))"),
    ("COUNT(*) AS n", "COUNT(A.*) FILTER (WHERE A.price > 1) AS n", "TG170", "FILTER (WHERE", "write COUNT(if(condition, 1, NULL))"),
    ("COUNT(*) AS n", "COUNT(DISTINCT A.price) FILTER (WHERE A.qty > 1) AS n", "TG170", "FILTER (WHERE", "write COUNT(DISTINCT if(condition, A.price, NULL))"),
    ("COUNT(*) AS n", "1 + avg(abs(A.price) * 2) filter (WHERE A.qty > 1) AS n", "TG170", "filter (WHERE", "write avg(if(condition, abs(A.price) * 2, NULL))"),
    ("COUNT(*) AS n", "LAST(A.price) FILTER (WHERE A.qty > 1) AS n", "TG170", "FILTER (WHERE", "aggregate a value that is NULL elsewhere: SUM(if(condition, A.x, NULL))"),
    ("COUNT(*) AS n", "(price) FILTER (WHERE price > 1) AS n", "TG170", "FILTER (WHERE", "aggregate a value that is NULL elsewhere: SUM(if(condition, A.x, NULL))"),
    ("COUNT(*) AS n", "SUM(sym) AS n", "TG102", "SUM(sym) AS", "cast it to a number"),
    ("COUNT(*) AS n", "N.price AS n", "TG172", "N.price AS", "the pattern has A, B, C, U"),
    ("ALL ROWS PER MATCH", "ALL ROW PER MATCH", "TG170", "ROW PER", "did you mean ROWS?"),
    ("ALL ROWS PER MATCH", "ALL ROWS PER MATCH WITH EMPTY MATCHES", "TG170", "EMPTY MATCHES", "write SHOW EMPTY MATCHES, OMIT EMPTY MATCHES or WITH UNMATCHED ROWS"),
    ("ALL ROWS PER MATCH", "ONE ROW PER MATCH OMIT EMPTY MATCHES", "TG170", "OMIT EMPTY", "one row a match shows empty matches: others are asked for with ALL ROWS PER MATCH"),
    ("ALL ROWS PER MATCH", "ALL MATCHES", "TG170", "MATCHES", "of the matches from a row the preferred one is taken: every match is written in Python"),
    ("SKIP TO LAST B", "SKIP TO FIRST", "TG170", "(A+ B{1,3}", ""),
    ("SKIP TO LAST B", "SKIP TO Q", "TG172", "Q", "the pattern has A, B, C, U"),
    ("SKIP TO LAST B", "SKIP PAST LAST", "TG170", "PATTERN (A+", "write SKIP PAST LAST ROW, SKIP TO NEXT ROW, SKIP TO FIRST A or SKIP TO LAST A"),
    ("SKIP TO LAST B", "SKIP TO NEXT", "TG170", "PATTERN (A+", "write SKIP PAST LAST ROW, SKIP TO NEXT ROW, SKIP TO FIRST A or SKIP TO LAST A"),
    ("(A+ B{1,3} C?)", "()", "TG170", ") WITHIN", ""),
    ("(A+ B{1,3} C?)", "(A, B)", "TG170", ", B)", "variables that follow each other have no comma between them: A B"),
    ("(A+ B{1,3} C?)", "(A -> B)", "TG170", "-> B)", "rows that follow each other are written side by side: A B"),
    ("(A+ B{1,3} C?)", "(A AND B)", "TG170", "AND B)", "rows that follow each other are written side by side: A B"),
    ("(A+ B{1,3} C?)", "(A OR B)", "TG170", "OR B)", "alternatives are written A | B"),
    ("(A+ B{1,3} C?)", "(A+ B{3,1} C?)", "TG178", "3,1} C?)", "a part is repeated once at least, or left out of the pattern: A{1,3}, A{2,}, A{,5}"),
    ("(A+ B{1,3} C?)", "(A+ B{0} C?)", "TG178", "0} C?)", "a part is repeated once at least, or left out of the pattern: A{1,3}, A{2,}, A{,5}"),
    ("(A+ B{1,3} C?)", "(A+ B{1.5} C?)", "TG178", "1.5} C?)", "a quantifier has whole numbers that are not very large: A{1,3}"),
    ("(A+ B{1,3} C?)", "(A+* B C?)", "TG170", "* B", "one quantifier is enough; of a part that has one write (A+)*"),
    ("(A+ B{1,3} C?)", "(A NOT B)", "TG170", "NOT B)", ""),
    ("(A+ B{1,3} C?)", "(A |)", "TG170", ") WITHIN", ""),
    ("(A+ B{1,3} C?)", "A+ B", "TG170", "A+ B", ""),
    ("(A+ B{1,3} C?)", "(A B", "TG170", "5 MINUTES", ""),
    ("(A+ B{1,3} C?)", "({- A B)", "TG170", ") WITHIN", ""),
    ("(A+ B{1,3} C?)", "({A} B)", "TG170", "{A} B)", "rows that are matched and not reported are written {- A -}"),
    ("(A+ B{1,3} C?)", "(!N A+ !M B)", "TG182", "!N A+", "give a duration: !N[10s]"),
    ("(A+ B{1,3} C?)", "(A+ !N B)", "TG189", "!N B)", "where the condition of X leaves out those that must not come"),
    ("(A+ B{1,3} C?)", "(A+ !(N | M)[5s] B)", "TG189", "!(N | M)[5s]", "where the condition of X leaves out those that must not come"),
    ("(A+ B{1,3} C?)", "(A+ B{6000})", "TG180", "PATTERN (A+", "a lower count"),
    ("SKIP TO LAST B", "SKIP TO FIRST A", "TG185", "A", "skip to the next row, past the last one"),
    ("(A+ B{1,3} C?)", "(A+ B !(N M))", "TG182", "!(N M)", "give a duration: !(N M)[10s]"),
    ("(A+ B{1,3} C?)", "(A+ B !(N M*)[5s])", "TG182", "!(N M*)[5s]", "write B{1,9}"),
    ("(A+ B{1,3} C?)", "(A B !B[5])", "TG174", "5]) WITHIN", "give it a unit: 5s"),
    ("(A+ B{1,3} C?)", "(A.price B)", "TG170", ".price B)", "the pattern has variables; conditions on their rows stand in DEFINE"),
    ("(A+ B{1,3} C?)", "(PERMUTE A B)", "TG170", "A B)", ""),
    ("WITHIN 5 MINUTES", "WITHIN 5", "TG174", "5", "give it a unit: 5s"),
    ("WITHIN 5 MINUTES", "WITHIN 5 parsecs", "TG174", "parsecs", "such as ms, s, min, h, d, SECONDS, MINUTES, HOURS, DAYS"),
    ("WITHIN 5 MINUTES", "WITHIN five", "TG170", "five", "a duration is 5m, 1h 30m, PT1H30M, '1 hour 30 min' or INTERVAL '1' HOUR"),
    ("WITHIN 5 MINUTES", "WITHIN LAST(B) - FIRST(A) < 5m", "TG170", "< 5m", "write <=: a duration is the most that a distance can be"),
    ("WITHIN 5 MINUTES", "WITHIN LAST(Q) - FIRST(A) <= 5m", "TG172", "LAST(Q) -", "the pattern has A, B, C, U"),
    ("SUBSET U = (A, B)", "SUBSET U AS (A, B)", "TG170", "AS (A,", "a subset is written U = (A, B)"),
    ("SUBSET U = (A, B)", "SUBSET A = (A, B)", "TG103", "A =", "give the subset another name"),
    ("SUBSET U = (A, B)", "SUBSET U = (A, Q)", "TG172", "Q)", "the pattern has A, B, C"),
    ("SUBSET U = (A, B)", "SUBSET U = A", "TG170", "A", ""),
    ("DEFINE A AS price > PREV(price), B", "DEFINE A AS price > PREV(price) B", "TG170", "B AS", "a comma stands between definitions: A AS ..., B AS ..."),
    ("DEFINE A AS price", "DEFINE A AS U = 5, B AS price", "TG172", "U =", "write U.sym"),
    ("DEFINE A AS", "DEFINE U AS", "TG178", "U AS", "define the variables that it stands for"),
    ("DEFINE A AS", "DEFINE Q AS", "TG172", "Q AS", "the pattern has A, B, C, U"),
    ("DEFINE A AS price > PREV(price)", "DEFINE A AS price", "TG102", "price, B", "compare it with something"),
    ("DEFINE A AS price > PREV(price)", "DEFINE A AS FINAL LAST(price) > 1", "TG178", "FINAL LAST(price)", "leave it out; what the whole match must satisfy is filtered by where(...) of its measures"),
    ("DEFINE A AS price > PREV(price)", "DEFINE A AS PREV(FINAL LAST(price)) > 1", "TG178", "FINAL LAST(price))", "leave it out; what the whole match must satisfy is filtered by where(...) of its measures"),
    ("DEFINE A AS price > PREV(price)", "DEFINE A AS MATCH_NUMBER() > 1", "TG178", "MATCH_NUMBER() >", "number matches in MEASURES, and filter by where(...)"),
    ("DEFINE A AS price > PREV(price)", "DEFINE A AS price IN 1, 2", "TG170", "1, 2,", ""),
    ("DEFINE A AS price > PREV(price)", "DEFINE A AS price BETWEEN 1", "TG170", ", B", ""),
    ("DEFINE A AS price > PREV(price)", "DEFINE A AS price > 'x'", "TG102", "price >", "cast the string first: cast_double(...)"),
    ("DEFINE A AS price > PREV(price)", "DEFINE A AS price > 1 && price < 5", "TG170", "&& price", "write AND"),
    ("DEFINE A AS price > PREV(price)", "DEFINE A AS LAST(price, 1) > 'x'", "TG102", "LAST(price, 1)", "cast the string first: cast_double(...)"),
    ("DEFINE A AS price > PREV(price)", "DEFINE A AS t - LAST(A.t, 1) < 5", "TG102", "t -", "give the number a unit: 5s; or cast_bigint(...) of the duration, in microseconds"),
    ("SUBSET U = (A, B)\n    DEFINE A AS price > PREV(price)", "DEFINE A AS price > PREV(price)\n    SUBSET U = (A, B)", "TG170", "SUBSET U", "SUBSET stands before DEFINE"),
    ("PATTERN (A+ B{1,3} C?) WITHIN 5 MINUTES\n", "", "TG170", "SUBSET U", "PATTERN (...) is missing before it"),
    ("B AS B.price < A.price\n)", "B AS B.price < A.price", "TG170", "AS m;", "a comma stands between definitions: A AS ..., B AS ..."),
    ("B AS B.price < A.price\n", "B AS B.price < A.price,\n", "TG170", ") AS", ""),
    ("B AS B.price < A.price\n", "B AS B.price < A.price WITHIN 5m\n", "TG170", "WITHIN 5m", "WITHIN stands behind PATTERN (...)"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code", "where", "hint"), WRONG, ids=[new[:40] for _, new, *_ in WRONG])
def test_errors_point_at_the_text(old: str, new: str, code: str, where: str, hint: str) -> None:
    assert old in CLAUSE
    text = CLAUSE.replace(old, new, 1)
    with pytest.raises(tg.QueryError) as raised:
        tg.read_query(text, TICKS, file="ticks.sql")
    error = raised.value
    assert error.code == code
    assert error.site is not None
    assert error.site.column is not None
    at = text.split("\n")[error.site.line - 1][error.site.column - 1 :]
    assert " ".join(at.split()).startswith(where)
    assert hint in error.hint
    assert error.code != "TG170" or error.problems[0].because or error.hint


def test_a_clause_is_read_before_it_is_changed() -> None:
    assert tg.read_query(CLAUSE, TICKS).schema.names == (
        "sym",
        "t",
        "seq",
        "f",
        "l",
        "n",
        "price",
        "qty",
        "first",
        "last",
        "detected",
    )
