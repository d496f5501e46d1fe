"""Slips in what hints of refused queries propose."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

MENDS = "analysis/validity/mends.py"
FORMS = "analysis/validity/forms.py"
BEFORE = "analysis/validity/last_before.py"
CALENDAR = "analysis/validity/calendar_parts.py"

GROUP = Group(
    "mends",
    ("tests/analysis/test_mends.py", "tests/analysis/test_validity.py"),
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
            "an instant is called what its operator calls it",
            "analysis/validity/places.py",
            "given, names = names, renamed(names, operator)",
            "given = names",
        ),
        bug(
            "operators above a part that is cut out have no place",
            "algebra/program.py",
            "sites={**self.sites, **_moved(self.node, node, self.sites)}",
            "sites={**self.sites}",
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
        bug(
            "windows of the calendar are of another instant",
            CALENDAR,
            "case Call(_, (Attr(name), *_)) if name == instant:",
            "case Call(_, (Attr(name), *_)):",
        ),
        bug(
            "windows of the calendar are the longest of the units",
            CALENDAR,
            "_TOLD_BY.items() if parts == told), None)",
            "reversed(_TOLD_BY.items()) if parts <= told), None)",
        ),
        bug(
            "a month of any year is a window of the calendar",
            CALENDAR,
            "if parts == told), None)",
            "if parts >= told), None)",
        ),
        bug(
            "windows of the calendar are of one zone of several",
            CALENDAR,
            "unit is None or len(zones) != 1:",
            "unit is None or not zones:",
        ),
        bug(
            "windows of the calendar forget what else is computed",
            CALENDAR,
            "        if parts is None:\n            return None\n",
            "        if parts is None:\n            continue\n",
        ),
        bug(
            "versions are proposed where something else is asked for, too",
            FORMS,
            "if not asks or not all(asks) or",
            "if not any(asks) or",
        ),
        bug(
            "the first row has the first value that is not NULL",
            FORMS,
            " or len(names) < len(unsure):",
            ":",
        ),
        bug(
            "versions are proposed whatever the last one is by",
            FORMS,
            "(one.function is by_time and one.by == time)",
            "one.function is by_time",
        ),
        bug(
            "the last row before is looked up whatever lies between",
            BEFORE,
            "    if not _says_between(anti, join, keys, {_Order(before, between, True), _Order(between, at, strict)}):\n"
            "        return None\n",
            "",
        ),
        bug(
            "the last row before is looked up of the rows of any key",
            BEFORE,
            "return told == orders and equal == {*_others(keys)}",
            "return told == orders",
        ),
        bug(
            "the last row before may be at the instant itself",
            BEFORE,
            'as_of(join.left, join.right, keys, "inner", strict=strict)',
            'as_of(join.left, join.right, keys, "inner")',
        ),
        bug(
            "what is selected of pairs has the names that it had",
            BEFORE,
            "terms = {new.get(name, name): term for name, term in terms.items()}",
            "terms |= {new.get(name, name): Attr(name) for name in terms}",
        ),
        bug(
            "rows between and rows before have the same names",
            BEFORE,
            '{name: f"{name} between" for name in anti.right.schema}',
            "{name: name for name in anti.right.schema}",
        ),
    ),
)
