"""Slips in what hints of refused queries propose."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

MENDS = "analysis/validity/mends.py"
FORMS = "analysis/validity/forms.py"

GROUP = Group(
    "mends",
    ("tests/analysis/test_mends.py",),
    (
        bug(
            "a bound is proposed that is told without a try",
            MENDS,
            "                if self._is_bounded(mended, federation, attribute, i):\n",
            "                if mended is not node:\n",
        ),
        bug(
            "a bound is tried that contradicts the query",
            MENDS,
            "if span[0] > least), None)",
            "if span[0] > 0), None)",
        ),
        bug(
            "periods are bounded before the later end is taken",
            MENDS,
            "first, second = (replacement, bound) if _ends_later(attribute, clause) else (bound, replacement)",
            "first, second = bound, replacement",
        ),
        bug(
            "a mend may leave a stream out",
            MENDS,
            " or _spoken_of(after) != _spoken_of(before):",
            ":",
        ),
        bug(
            "a window is taken of the first instant",
            MENDS,
            "first = next((instants for instants in sets if instants), frozenset[str]())",
            "first = frozenset(node.schema.temporal[:1])",
        ),
        bug(
            "a form is proposed without a try",
            MENDS,
            'form is not None and self._progresses(form.node, attribute) else ""',
            'form is not None else ""',
        ),
        bug(
            "totals up to each row are proposed by keys that are computed",
            FORMS,
            "not group.aggregates or computed & {*group.keys} or not read",
            "not group.aggregates or not read",
        ),
        bug(
            "every whole number is the number of a row",
            FORMS,
            "            own = bool(inner_owner(stream.name)) and not attribute.temporal\n"
            "            return node if own and attribute.type == BIGINT and not attribute.nullable else None\n",
            "            return None if attribute.temporal else node\n",
        ),
        bug(
            "the largest are the smallest",
            FORMS,
            'descending, most = orders[0].op in ("lt", "le"),',
            'descending, most = orders[0].op in ("gt", "ge"),',
        ),
        bug(
            "a row that is counted with those as large is one of those before it",
            FORMS,
            'wanted - (orders[0].op in ("le", "ge"))',
            "wanted",
        ),
        bug(
            "the last row before is looked up where times are compared",
            FORMS,
            "    if not keys or len(keys) < len(equal) or not all(is_row_wise",
            "    if not keys or not all(is_row_wise",
        ),
        bug(
            "versions are proposed of some rows of a stream",
            FORMS,
            "    while isinstance(node, Rename):\n        name = {new: old for old, new in node.pairs}",
            "    while isinstance(node, Rename | Select):\n"
            "        name = {new: old for old, new in (node.pairs if isinstance(node, Rename) else ())}",
        ),
    ),
)
