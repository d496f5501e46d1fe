"""Slips in joins of many pairs: what of the pieces becomes of them together, and what is told beforehand."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

RELATIONAL = "runtime/eval/relational.py"
RANGES = "runtime/eval/joins/ranges.py"
LENIENT = "runtime/eval/lenient.py"
TOLD = "runtime/engines/many_pairs.py"

GROUP = Group(
    "many pairs",
    ("tests/runtime/test_many_pairs.py",),
    (
        bug(
            "groups of pieces stay apart",
            RANGES,
            "    return waiting[0] if len(waiting) == 1 else reduce(pl.concat(waiting))\n",
            "    return waiting[0] if len(waiting) == 1 else pl.concat(waiting)\n",
        ),
        bug(
            "what does not merge is taken in pieces",
            RELATIONAL,
            "    if not has_partials(group):\n",
            "    if False:\n",
        ),
        bug(
            "equal rows of pieces are several",
            RELATIONAL,
            "                return reduced(pieces, lambda rows: rows.unique())\n",
            "                return reduced(pieces, lambda rows: rows)\n",
        ),
        bug(
            "a group holds all pairs",
            RELATIONAL,
            "            return _grouped(node, self.pieces(node.input))\n",
            "            return aggregate(node, self.evaluate(node.input))\n",
        ),
        bug(
            "what cannot be looked up holds all pairs",
            RELATIONAL,
            "_grouped(node, replace(self, ready=ready, place=first).pieces(node.input)) if rows is None",
            "aggregate(node, replace(self, ready=ready, place=first).evaluate(node.input)) if rows is None",
        ),
        bug(
            "pairs with equal keys are made at once, however many",
            RELATIONAL,
            "    if by_keys and equal_pairs(left, right, both, parts) <= ranges.MANY_PAIRS:\n",
            "    if by_keys:\n",
        ),
        bug(
            "a limit without a value fails between pieces",
            RELATIONAL,
            "    if not _has_values(left, right, both, parts):\n",
            "    if False:\n",
        ),
        bug(
            "pairs whose condition may fail are made at once",
            RELATIONAL,
            "    if left.height * right.height <= ranges.MANY_PAIRS:\n        yield _join(node, left, right)\n",
            "    fails = resolve(node.condition, {**node.left.schema, **node.right.schema}).fallible\n"
            "    if fails or left.height * right.height <= ranges.MANY_PAIRS:\n        yield _join(node, left, right)\n",
        ),
        bug(
            "where pairs fail a group holds all of them",
            LENIENT,
            "for rows in self.pieces(input_, below))\n                if not",
            "for rows in [self.rows_of(input_, below)])\n                if not",
        ),
        bug(
            "of pairs that fail the last piece counts",
            LENIENT,
            "pl.concat(failed)",
            "failed[-1]",
        ),
        bug(
            "partners are those of the last piece",
            LENIENT,
            "pl.concat(partnered)",
            "partnered[-1]",
        ),
        bug(
            "matches of situations are not told of",
            "runtime/ordered/match/operator.py",
            "        tell_matches(len(matches.detected))\n",
            "",
        ),
        bug(
            "matches of rows are not told of",
            "runtime/ordered/sequences/measures.py",
            "    tell_matches(len(found.matches))\n",
            "",
        ),
        bug(
            "whoever hears of matches hears of those of others",
            "runtime/ordered/family.py",
            "        HEARS.reset(token)\n",
            "        del token\n",
        ),
        bug(
            "what shares have listed is told nobody",
            "runtime/engines/spark/eval/ordered_shards.py",
            "    yield from step.matches.lines()\n",
            "",
        ),
        bug(
            "pairs are told of in each increment",
            TOLD,
            "        self.due[query.name] = 10 * pairs\n",
            "        self.due[query.name] = pairs\n",
        ),
        bug(
            "pairs are not told of",
            RANGES,
            '    if announce is not None and (pairs.lists or kind in ("inner", "left")):\n',
            "    if announce is not None and pairs.lists:\n",
        ),
    ),
)
