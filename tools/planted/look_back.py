"""Slips in aggregates of what each row looks up, which are computed without a list of pairs."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

LOOK_BACK = "runtime/eval/aggregates/look_back.py"
FORM = "runtime/eval/aggregates/look_back_form.py"
RANGES = "runtime/eval/joins/ranges.py"
BANDS = "runtime/eval/joins/bands.py"
SLICES = "runtime/eval/aggregates/slices.py"
SUMS = "runtime/eval/aggregates/sums.py"

GROUP = Group(
    "look back",
    ("tests/runtime/test_look_back.py",),
    (
        bug(
            "ranges of two terms make a slice",
            BANDS,
            "    return not searches or (not searches[0].flipped and len(searches[0].used) == len(ranges))\n",
            "    return True\n",
        ),
        bug(
            "an offset shifts a limit the other way",
            BANDS,
            '            return base, offset if op == "add" else -offset\n',
            '            return base, -offset if op == "add" else offset\n',
        ),
        bug(
            "a limit beyond all integers leaves none",
            BANDS,
            "    return sums, known & ~beyond if (by > 0) != above else known\n",
            "    return sums, known & ~beyond\n",
        ),
        bug(
            "a limit beyond all integers leaves each",
            BANDS,
            "    return sums, known & ~beyond if (by > 0) != above else known\n",
            "    return sums, known\n",
        ),
        bug(
            "slices between two limits begin with their group",
            RANGES,
            "from_first, to_last = (not any(",
            "from_first, to_last = (not all(",
        ),
        bug(
            "the last block of a slice is left out",
            SLICES,
            "yield (open_[at_start], low[at_start]), (open_[at_end], high[at_end] - 1)",
            "yield (open_[at_start], low[at_start]), (open_[:0], high[:0])",
        ),
        bug(
            "values that stand before a slice are not different in it",
            SLICES,
            "blocks * width + start[slices] + 1",
            "blocks * width + 1",
        ),
        bug(
            "a row without a value is a different one",
            LOOK_BACK,
            "different_of(np.where(known, other, len(other)),",
            "different_of(other,",
        ),
        bug(
            "values that another key has are not new",
            LOOK_BACK,
            '.over("group", "value")',
            '.over("value")',
        ),
        bug(
            "rows of a group are taken to look up the same",
            LOOK_BACK,
            "        if different and not _nested(look_back.group, rows, slices, some):\n",
            "        if False:\n",
        ),
        bug(
            "the value stands in the place of the order",
            LOOK_BACK,
            "((other, one) if found_by else (one, other))",
            "((one, other) if found_by else (other, one))",
        ),
        bug(
            "an order without a value has one",
            LOOK_BACK,
            "                known = np.asarray(one.is_not_null() & other.is_not_null())\n",
            "                known = np.asarray(other.is_not_null())\n",
        ),
        bug(
            "what padding has is left out",
            FORM,
            "    if look.padded and not all(is_null_of_nulls(term, look.right.schema) for term in of):\n",
            "    if False:\n",
        ),
        bug(
            "left values are summed once",
            LOOK_BACK,
            '            high, low = part["hi"] * weights, part["lo"] * weights\n',
            '            high, low = part["hi"], part["lo"]\n',
        ),
        bug(
            "left rows are counted once",
            LOOK_BACK,
            '            return [part["n"] * weights]\n',
            '            return [part["n"]]\n',
        ),
        bug(
            "a padded row is not counted",
            LOOK_BACK,
            "        np.maximum(slices.sizes, 1) if look.padded else slices.sizes\n",
            "        slices.sizes\n",
        ),
        bug(
            "left sums that may not fit are taken",
            LOOK_BACK,
            "            if (int(halves.max(initial=0)) + 1) * int(times.sum()) >= _MOST or int(times.max(initial=0)) >= _HALF // 2:\n",
            "            if False:\n",
        ),
        bug(
            "sums of doubles are differences of running ones",
            LOOK_BACK,
            "        place = np.arange(len(groups)) - np.searchsorted(groups, groups)\n",
            "        place = np.arange(len(groups))\n",
        ),
        bug(
            "a sum that is beyond all doubles on the way stays there",
            LOOK_BACK,
            "        if beyond.any():\n",
            "        if False:\n",
        ),
        bug(
            "finite values count beside infinite ones",
            LOOK_BACK,
            "        sums[odd], lost[odd] = 0.0, 0.0\n",
            "        lost[odd] = 0.0\n",
        ),
        bug(
            "finite values of listed pairs count beside infinite ones",
            SUMS,
            "            values = np.where(np.isfinite(values) & ~np.repeat(finite, counts), 0.0, values)\n",
            "            pass\n",
        ),
        bug(
            "other rows of a group bring no sum back",
            LOOK_BACK,
            "            if np.isinf(sums[~odd]).any() and self.several():\n",
            "            if False:\n",
        ),
        bug(
            "products of doubles are rounded",
            LOOK_BACK,
            "for column in (product, rest)]\n",
            "for column in (product, 0.0 * rest)]\n",
        ),
        bug(
            "the best of another key goes on",
            LOOK_BACK,
            "        running = np.maximum.accumulate(groups * (count + 1) + in_order)\n",
            "        running = np.maximum.accumulate(in_order)\n",
        ),
        bug(
            "of padded rows a key of the right side is that of the left one",
            FORM,
            "for look in looks if not look.padded for one in look.plain.equalities}",
            "for look in looks for one in look.plain.equalities}",
        ),
        bug(
            "of a looking row any value that is found has all partners",
            FORM,
            "return replace(self.plain, equalities=(*self.plain.equalities, *found))",
            "return self.plain",
        ),
        bug(
            "a row stands beside any number of values",
            LOOK_BACK,
            "    if beside > ranges.CHUNK:\n",
            "    if False:\n",
        ),
        bug(
            "what one side has counts once, whatever is found on others",
            LOOK_BACK,
            "                if values is not None and len(times) > 1:\n",
            "                if False:\n",
        ),
        bug(
            "sides that depend on each other are looked up apart",
            FORM,
            "        if not attributes_of(join.condition) <= set(both):\n            return None\n",
            "",
        ),
        bug(
            "an attribute that is not read always has a value",
            LOOK_BACK,
            "    for term in look_back.checked:\n",
            "    for term in look_back.checked[:0]:\n",
        ),
        bug(
            "a row in no pair needs its values",
            LOOK_BACK,
            "    except EvaluationError:  # perhaps",
            "    except ZeroDivisionError:  # perhaps",
        ),
    ),
)
