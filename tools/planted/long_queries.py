"""Slips in what keeps long queries quick."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

PURGE = "analysis/purge.py"
ORIGINS = "analysis/state/origins.py"
ORDER = "analysis/ordered/match/order.py"
ERRORS = "algebra/errors.py"
STEPS = "runtime/eval/terms.py"

GROUP = Group(
    "long queries",
    ("tests/analysis/test_long_queries.py", "tests/runtime/test_terms_random.py"),
    (
        bug(
            "related streams are asked for partners one way round",
            PURGE,
            "pairs |= {(first[1], second[1]), (second[1], first[1])}",
            "pairs |= {(first[1], second[1])}",
        ),
        bug(
            "of many streams those alone are asked between which something is stated",
            PURGE,
            "for first, second in (*stated, *followed):",
            "for first, second in stated:",
        ),
        bug(
            "few streams are asked as many are",
            PURGE,
            "if len(speaking) > MOST_PAIRED else",
            "if len(speaking) >= MOST_PAIRED else",
        ),
        bug(
            "keys are equal only where a condition says so",
            ORIGINS,
            "                waiting += dict.fromkeys(further)\n",
            "                pass\n",
        ),
        bug(
            "steps forget what is bound",
            ORDER,
            "return self.combinations * (log2(1 + size) + size * self.shares.get(symbol, 1.0))",
            "return log2(1 + size) + size * self.shares.get(symbol, 1.0)",
        ),
        bug(
            "steps go to situations that nothing relates",
            ORDER,
            "near = [symbol for symbol in steps.shares if symbol in open_] or list(open_)",
            "near = list(open_)",
        ),
        bug(
            "the mark is not moved where a line is cut",
            ERRORS,
            "self.column - start + len(before)",
            "self.column + len(before)",
        ),
        bug(
            "large operands are no columns of their own",
            STEPS,
            "        if value.meta.is_column() or not value.meta.root_names():\n",
            "        if value.meta.root_names():\n",
        ),
        bug(
            "columns of steps stay to the end",
            STEPS,
            "[*map(pl.col, sorted(needed)), *computed]",
            "[pl.all(), *computed]",
        ),
    ),
)
