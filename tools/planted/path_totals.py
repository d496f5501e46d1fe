"""Slips in counting the matches of row patterns, and in adding up their values."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

COUNTS = "runtime/kernels/paths/counts.py"
TOTALS = "runtime/kernels/paths/totals.py"
WORDS = "runtime/ordered/sequences/counting/words.py"
OPERATOR = "runtime/ordered/sequences/counting/operator.py"
VALUES = "algebra/ordered/sequences/counting/values.py"
SUMMARIES = "analysis/summaries.py"

GROUP = Group(
    "path totals",
    (
        "tests/runtime/kernels/test_paths.py",
        "tests/runtime/kernels/test_path_totals.py",
        "tests/runtime/test_counted_sequences.py",
        "tests/runtime/test_aggregated_sequences.py",
    ),
    (
        bug(
            "a sum of numbers of paths goes round",
            COUNTS,
            "return MANY if first > MANY - second else first + second",
            "return first + second",
        ),
        bug(
            "a window ends a tick early",
            COUNTS,
            "while begin < at and time[begin] < time[at] - within:",
            "while begin < at and time[begin] <= time[at] - within:",
        ),
        bug(
            "the last value is carried by no path",
            TOTALS,
            "_added(_times(first, right[beside]), _times(left[0], second))",
            "_times(left[0], second)",
        ),
        bug(
            "the first value is replaced",
            TOTALS,
            "_added(_times(first, right[0]), _times(left[beside], second))",
            "_added(_times(first, right[0]), _times(left[0], second))",
        ),
        bug(
            "a sum is not multiplied by the ways on",
            TOTALS,
            "_added(_times(first, right[0]), _times(left[0], second))",
            "_added(first, _times(left[0], second))",
        ),
        bug(
            "an earlier value is the least where a later one hides it",
            TOTALS,
            "second if right[beside] == 0 else min(first, second)",
            "min(first, second)",
        ),
        bug(
            "a later value is the least where an earlier one hides it",
            TOTALS,
            "first if left[beside] == 0 else min(first, second)",
            "min(first, second)",
        ),
        bug(
            "the greatest value of a match is that of its later part",
            TOTALS,
            "both = max(first, second)",
            "both = second",
        ),
        bug(
            "a part without a value has the greatest one",
            TOTALS,
            "            if right[beside] != 0:\n                both = min(both, first)\n",
            "",
        ),
        bug(
            "the longest match is the shortest one",
            TOTALS,
            "            total[word] = max(total[word], _added(first, second))\n",
            "            total[word] = min(total[word], _added(first, second))\n",
        ),
        bug(
            "sums of one instant are those of its last row",
            TOTALS,
            "                found[at] = ends\n                _clear(words, ends)\n\n\n@compiled(nb.void(TABLE, OUT_CUBE))",
            "                found[at] = ends\n            _clear(words, ends)\n\n\n@compiled(nb.void(TABLE, OUT_CUBE))",
        ),
        bug(
            "rows that were moved are added up in the wrong order",
            TOTALS,
            "_add_product(words, product[source, state], its, spare[target, state])",
            "_add_product(words, product[source, state], spare[target, state], its)",
        ),
        bug(
            "values of a window that is so long go to places of others",
            TOTALS,
            "older[begin - bottom, source]",
            "older[begin - offsets[p], source]",
        ),
        bug(
            "a row without a value is 0",
            WORDS,
            "none = MANY if LEAST_AT_LAST <= word.kind < SHORTEST else 0",
            "none = 0",
        ),
        bug(
            "values are those that are not NULL",
            WORDS,
            "values[:, number] = ~known[word.column] if word.present else 0",
            "values[:, number] = ~known[word.column]",
        ),
        bug(
            "negative values are positive ones",
            WORDS,
            'negative == (how in ("minus high", "minus low"))',
            'negative == (how in ("high", "low"))',
        ),
        bug(
            "the least number has no size",
            WORDS,
            "(~values).astype(np.uint64) + np.uint64(1)",
            "(-values).astype(np.uint64) & np.uint64(MANY)",
        ),
        bug(
            "the low half keeps what is carried",
            WORDS,
            "return high + np.where(beyond, 0, carried), low & np.int64(_LOW), beyond",
            "return high, low & np.int64(_LOW), beyond",
        ),
        bug(
            "a NaN with a sign is less than any number",
            WORDS,
            "np.where(np.isnan(doubles), np.nan, doubles)",
            "doubles",
        ),
        bug(
            "doubles below zero are in the order of their sizes",
            WORDS,
            "np.where(bits < 0, bits ^ _SIGN, bits))\n    return integers",
            "bits)\n    return integers",
        ),
        bug(
            "of no values there is a least one",
            WORDS,
            "return ends.set(pl.Series(number == 0), None)",
            "return ends",
        ),
        bug(
            "a match of which the sum may not fit is told",
            WORDS,
            "            beyond |= found[:, size] == MANY\n",
            "            pass\n",
        ),
        bug(
            "values of kept rows are those of new ones",
            OPERATOR,
            "pl.concat([before.rows.get_column(new.name), new]).gather(source)",
            "pl.concat([new, before.rows.get_column(new.name)]).gather(source)",
        ),
        bug(
            "a row that a match need not have is there",
            VALUES,
            "if not isinstance(measure, Attr) and not _always(labelled, labels):",
            "if False:",
        ),
        bug(
            "a row beside another one is this one",
            VALUES,
            "if row.offset or row.step:",
            "if row.step:",
        ),
        bug(
            "a sum that is too large to tell is none",
            SUMMARIES,
            'told = call("if", call("eq", beyond, _ZERO), high, Lit(2**HIGH_BITS, BIGINT))',
            "told = high",
        ),
        bug(
            "a mean is of all matches",
            SUMMARIES,
            "self.count(self.part(Function.COUNT, argument)))",
            "self.count(self.part(Function.COUNT, None)))",
        ),
    ),
)
