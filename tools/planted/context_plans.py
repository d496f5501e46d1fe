"""Slips in how queries in contexts run: where contexts are looked up, what is shared, and what is suspended."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

PUSH_DOWN = "contexts/optimiser/push_down.py"
SHARING = "contexts/optimiser/sharing.py"
GROUPING = "contexts/optimiser/grouping.py"
FILTERS = "contexts/optimiser/filters.py"
PROGRAMS = "contexts/optimiser/programs.py"
GROUPED = "algebra/ordered/transitions/grouped.py"
LOOK_UP = "algebra/dsl/contexts/look_up.py"
STANDING = "contexts/standing.py"
STEPS = "runtime/plan/steps.py"
INCREMENTS = "runtime/batch/increments.py"
ASOF = "algebra/ordered/asof.py"
OPERATOR = "runtime/ordered/asof/operator.py"

GROUP = Group(
    "context plans",
    (
        "tests/contexts/test_optimiser.py",
        "tests/contexts/test_suspension.py",
        "tests/contexts/test_why.py",
        "tests/properties/test_operators.py",
        "tests/runtime/test_asof.py",
    ),
    (
        bug(
            "push-down past a look-around",
            PUSH_DOWN,
            "                # Any other operator reads rows before the window, too, or rows of several keys.\n"
            "                return None\n",
            "                below = tuple(self.put(made, child) for child in children(rows))\n"
            "                return self._in_order(made, rows, with_children(rows, below))\n",
            required=True,
        ),
        bug(
            "a match is looked up in two windows",
            PUSH_DOWN,
            'Select(Join(sides[0], sides[1], rows.condition, "inner"), rest)',
            'Join(sides[0], sides[1], rows.condition, "inner")',
            required=True,
        ),
        bug(
            "the first row of a match is of the last one's partition, whatever its keys",
            PUSH_DOWN,
            "first not in rows.schema or keys.keys() != {*made.keys}:",
            "first not in rows.schema:",
        ),
        bug(
            "the first row of a match comes first, whatever is known",
            PUSH_DOWN,
            "    if zones is None or not _ordered(zones, join, first, made.at):\n",
            "    if zones is None:\n",
        ),
        bug(
            "what is after the first row of a match is before the last one",
            PUSH_DOWN,
            "        if _ordered(zones, join, first, name) and _ordered(zones, join, name, made.at)\n",
            "        if _ordered(zones, join, first, name)\n",
        ),
        bug(
            "a condition that can fail is asked of fewer rows",
            PUSH_DOWN,
            "if can_fail(condition, input_.schema) or (below := self.of(made, input_)) is None:",
            "if (below := self.of(made, input_)) is None:",
        ),
        bug(
            "pairs of which a condition can fail are fewer",
            PUSH_DOWN,
            "        if can_fail(condition, {**left.schema, **right.schema}):\n            return None\n",
            "",
        ),
        bug(
            "an input of a union is not looked up",
            PUSH_DOWN,
            "made.over(input_) if part is None else part for",
            "with_attributes(made.over(input_), input_.schema.names) if made.carried else input_ if part is None else part for",
        ),
        bug(
            "of a difference the right side is looked up",
            PUSH_DOWN,
            "Difference(self.put(made, left), right)",
            "Difference(left, self.put(made, right))",
        ),
        bug(
            "both sides of an anti-join are looked up",
            PUSH_DOWN,
            "self._in_order(made, rows, Join(below, right, condition, kind))",
            'self._in_order(made, rows, Join(below, self.put(made.named({**{key: name for key in made.keys for name in right.schema if call("eq", Attr(key), Attr(name)) in conjuncts(condition)}, made.at: right.schema.temporal[0]}), right) if kind == "anti" else right, condition, kind))',
        ),
        bug(
            "groups that are made as rows come are looked up row by row",
            PUSH_DOWN,
            "        below = self.of(made, rows.input)\n",
            "        below = self.put(made, rows.input)\n",
        ),
        bug(
            "only what all queries ask for is looked up",
            SHARING,
            "return selected(stream, disjunction([*asked]))",
            "return selected(stream, conjunction([*asked]))",
            required=True,
        ),
        bug(
            "look-ups are shared whatever is asked, at any cost",
            SHARING,
            "    if conditions * CONDITION_COST + share * LOOK_UP_COST >= LOOK_UP_COST:\n        return stream\n",
            "",
        ),
        bug(
            "one change that can not be keeps half of the others from it",
            PROGRAMS,
            "        for part in (places[:half], places[half:]):\n",
            "        for part in (places[:half],):\n",
        ),
        bug(
            "a query that is an operator alone shares nothing",
            PROGRAMS,
            "query if shared.get(place, query) is query else _with_promise(shared[place], facts)",
            "shared.get(place, query)",
        ),
        bug(
            "rows that come twice in one context are there twice",
            GROUPING,
            "    return Distinct(every[0] if len(every) == 1 else Union(every))\n",
            "    return every[0] if len(every) == 1 else Distinct(Union(every))\n",
            required=True,
        ),
        bug(
            "queries of different rows are one",
            GROUPING,
            "return self.rows, self.changes, self.filter.keys",
            "return self.changes, self.changes, self.filter.keys",
        ),
        bug(
            "any last row before another one is a change of a context",
            FILTERS,
            "    if not contexts or not isinstance(model, Transitions) or not _is_by_partition(join, dict(pairs), model, contexts):\n"
            "        return None\n",
            "",
            required=True,
        ),
        bug(
            "what a query asks of changes itself holds during a window",
            FILTERS,
            "        if not said <= held or (is_default and holds(change, (), is_default=True) not in said):\n"
            "            return None\n",
            "",
        ),
        bug(
            "the last change anywhere is one of the row's partition",
            FILTERS,
            "(*join.right_keys, join.right_time, join.tie) == by and join.ended",
            "join.ended",
        ),
        bug(
            "the default context is one of a group",
            FILTERS,
            '    if join.how != "inner":\n        return None\n',
            "",
        ),
        bug(
            "rows that were found in several contexts are each one's",
            GROUPING,
            "return every if {*part.contexts} == {*known.contexts} else made.over(every)",
            "return every",
            required=True,
        ),
        bug(
            "rows of several contexts are found for each of them again",
            PUSH_DOWN,
            "return None if _are_gathered(made, rows, models) else _Lowering(models, at_scan, lambda *_: None)",
            "return _Lowering(models, at_scan, lambda *_: None)",
        ),
        bug(
            "a part of what contexts ask for is found for each of them",
            GROUPING,
            "    lowered_to(*found, models, at)\n    return ways\n",
            "    at(*found)\n    return ways\n",
        ),
        bug(
            "what is found once of contexts is the least that they have in common",
            GROUPING,
            "key=lambda item: -sum(",
            "key=lambda item: sum(",
        ),
        bug(
            "rows of some contexts are found among those of others",
            GROUPING,
            "if part is None or known is None or not {*part.contexts} <= {*known.contexts}:",
            "if part is None or known is None:",
            required=True,
        ),
        bug(
            "matches in one window are those that end in one",
            GROUPING,
            "self.filter.keys, self.filter.at, self.filter.since",
            "self.filter.keys, self.filter.at, None",
        ),
        bug(
            "history is lost across grouped windows",
            GROUPED,
            "return min(self.began.values(), default=None)",
            "return max(self.began.values(), default=None)",
            required=True,
        ),
        bug(
            "history is kept across grouped windows",
            GROUPED,
            "        if self.since == before:\n",
            "        if self.since == before or None not in (self.since, before):\n",
            required=True,
        ),
        bug(
            "Q as a set: where one of its contexts ends, a query ends in all",
            GROUPED,
            "self.began.pop(context, None)",
            "self.began.clear()",
            required=True,
        ),
        bug(
            "what begins as it ends is gone",
            GROUPED,
            "                started.append((context, at if began is None else began))\n",
            "                self.began[context] = at if began is None else began\n",
        ),
        bug(
            "contexts that hold are forgotten between batches",
            "runtime/ordered/transitions/grouped.py",
            "            held[place].began[context] = began\n",
            "            pass\n",
        ),
        bug(
            "a match that is looked up may begin with its window",
            LOOK_UP,
            'call("lt", Attr(began), Attr(since))',
            'call("le", Attr(began), Attr(since))',
            required=True,
        ),
        bug(
            "the default context has not held since ever before a match",
            LOOK_UP,
            'call("coalesce", before, call("is_not_null", Attr(since))) if is_default else before',
            "before",
        ),
        bug(
            "rows outside of several contexts are outside of the first",
            LOOK_UP,
            "    def _changes_of(self, contexts: tuple[str, ...]) -> Node:\n",
            "    def _changes_of(self, contexts: tuple[str, ...]) -> Node:\n        contexts = contexts[:1]\n",
        ),
        bug(
            "why says nothing of several contexts",
            STANDING,
            "        case GroupedWindows(Select(Scan(stream), _), _, contexts):\n            return stream.name, contexts\n",
            "",
        ),
        bug(
            "a query that keeps windows is suspended",
            INCREMENTS,
            "keeps, ends = state is not None and bool(state.files), INF in new.values()",
            "keeps, ends = False, INF in new.values()",
            required=True,
        ),
        bug(
            "a query outside of a context is suspended",
            ASOF,
            'return (1,) if self.how == "inner" and not self.waits else (0, 1)',
            "return (1,) if not self.waits else (0, 1)",
            required=True,
        ),
        bug(
            "a query whose context begins in a batch is suspended in it",
            OPERATOR,
            "    has[of_right] = True\n",
            "",
        ),
        bug(
            "rows that wait are not looked at",
            ASOF,
            "        return self.waits or self.within is not None\n",
            "        return False\n",
        ),
        bug(
            "what a suspended query keeps is there after the end",
            STEPS,
            "return not any(has_rows) and not node.wakes and not ends",
            "return not any(has_rows) and not node.wakes",
        ),
        bug(
            "a join is evaluated without rows on one side",
            STEPS,
            "        if not all(has_rows[leaf] for leaf in self.required):\n            return True\n",
            "",
        ),
    ),
)  # fmt: skip
