"""Slips in contexts: what a transaction does, what is kept of a partition, which rows are in a context."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

VECTOR = "algebra/ordered/transitions/vector.py"
PARTITION = "runtime/ordered/transitions/partition.py"
OPERATOR = "runtime/ordered/transitions/operator.py"
LOOK_UP = "algebra/dsl/contexts/look_up.py"
MODEL = "contexts/model.py"
STANDING = "contexts/standing.py"
READER = "contexts/text/reader.py"
PRINTED = "contexts/text/queries.py"
READS = "contexts/reads.py"
SUSPENSION = "runtime/inspect/suspension.py"
FINDINGS = "contexts/findings.py"
PARTITIONS = "analysis/state/window_partitions.py"

GROUP = Group(
    "contexts",
    (
        "tests/contexts/test_transactions.py",
        "tests/contexts/test_model.py",
        "tests/contexts/test_findings.py",
        "tests/contexts/test_refuted.py",
        "tests/contexts/test_running.py",
        "tests/contexts/test_why.py",
        "tests/contexts/test_why_is_so.py",
        "tests/contexts/test_text.py",
        "tests/contexts/test_ends_of_windows.py",
        "tests/runtime/test_windows_between.py",
    ),
    (
        bug(
            "a context has its own first instant",
            LOOK_UP,
            "strict=True, how=how",
            "strict=False, how=how",
            required=True,
        ),
        bug(
            "a match may begin with its window",
            VECTOR,
            "self.began < candidate.since",
            "self.began <= candidate.since",
        ),
        bug("causes are a set where they are a bag", VECTOR, 'added if held_by == "bag"', 'added if held_by == "set"'),
        bug(
            "causes of a set add up",
            PARTITION,
            'known.count + 1 if held_by == "bag" else 1',
            "known.count + 1",
        ),
        bug(
            "a cause that is none clears the context",
            PARTITION,
            "        if cause not in causes:\n            return False\n",
            "        if cause not in causes:\n            return True\n",
        ),
        bug(
            "the default does not come back",
            PARTITION,
            "        elif not self.open:\n",
            "        elif not self.open and not ended:\n",
            required=True,
        ),
        bug(
            "the default holds beside others",
            PARTITION,
            "return context == self.rules.default and not self.open",
            "return context == self.rules.default",
        ),
        bug(
            "the default has held since ever, again",
            PARTITION,
            "left = _Open(at if rules.dated else None, nothing)",
            "left = _Open(None, nothing)",
        ),
        bug(
            "of a key whose window has closed a row stays",
            "algebra/dsl/windows/opened.py",
            "            dated=False,\n",
            "",
        ),
        bug(
            "conditions in brackets are one, of an event that must not come",
            READER,
            "            yield from _conjuncts(condition.parts)\n",
            "            yield from condition.parts\n",
        ),
        bug(
            "the default's window is a new one with each transaction",
            PARTITION,
            "self.open = {default: was} if was.began is not None else {}",
            "self.open = {}",
        ),
        bug(
            "a transition is seen by those of its own instant",
            OPERATOR,
            "for (of, at), together in itertools.groupby(_in_order(candidates), key=lambda row: row[:2])\n",
            "for (of, at, _), together in itertools.groupby(_in_order(candidates), key=lambda row: row[:3])\n",
            required=True,
        ),
        bug(
            "what a context ends is not begun again at once",
            PARTITION,
            "            if context not in self.open:\n                self.open[context] = _Open(at, carried)",
            "            if context not in self.open and context not in ended:\n"
            "                self.open[context] = _Open(at, carried)",
        ),
        bug(
            "initiating again begins a new window",
            PARTITION,
            "            if context not in self.open:\n                self.open[context] = _Open(at, carried)",
            "            if True:\n                self.open[context] = _Open(at, carried)",
        ),
        bug(
            "terminate stands everywhere",
            MODEL,
            'self._with("terminate", context, when, context,',
            'self._with("terminate", context, when, None,',
        ),
        bug(
            "a switch ends every context",
            PARTITION,
            "                ended.update(inside)",
            "                ended.update(self.open)",
        ),
        bug(
            "a switch ends nothing",
            PARTITION,
            "                ended.update(inside)",
            "                pass",
        ),
        bug("a switch to the default begins it", PARTITION, "if context == default:\n                continue", "if False:\n                continue"),
        bug(
            "candidates are judged by what was held before the batch",
            OPERATOR,
            'candidates.join(firsts, on=PARTITION).filter(pl.col("at") >= pl.col("first")).drop("first")',
            "candidates.filter(pl.Series(may_change))",
            required=True,
        ),
        bug(
            "a cause more of what holds is in vain",
            PARTITION,
            'np.array([action == "initiate" for action in self.actions]) & held',
            'np.array([action == "initiate" or not of for action, of in zip(self.actions, held, strict=True)])',
        ),
        bug(
            "contexts of partitions in which nothing changes are forgotten",
            OPERATOR,
            "pl.concat([before.rows.filter(~may_change), _kept(node, contexts)])",
            "_kept(node, contexts)",
        ),
        bug("within is not asked", PARTITION, "            if not inside:\n                continue\n", ""),
        bug(
            "a match begins at its row",
            OPERATOR,
            "pl.min_horizontal(time, pl.col(node.since).fill_null(time))",
            "time",
        ),
        bug(
            "a query in several contexts reads the window of one",
            READER,
            "                if contexts != (context,):\n",
            "                if context not in contexts:\n",
        ),
        bug(
            "what is read of a window is printed by a name of our own",
            READER,
            "return rename_attributes(value._term, called)",
            "return value._term",
        ),
        bug(
            "what is pending as a window ends is found",
            READER,
            "(len(contexts) > 1 or events[-1][0].absent)",
            "len(contexts) > 1",
        ),
        bug(
            "a match is certain at its last event, whatever must not follow",
            READER,
            "return joined.with_(**{_CERTAIN: certain}), _CERTAIN",
            "return joined, ends[-1]",
        ),
        bug(
            "what must not follow must not do so after the last event, though it goes by another one",
            READER,
            "            limit = earliest(limit, other)\n",
            "            limit = other\n",
        ),
        bug(
            "what can only come before the end has no bound",
            READER,
            "        zones = federation(matches._node).zones\n        if not zones:\n",
            "        zones = federation(matches._node).zones\n        if False:\n",
        ),
        bug(
            "a change passes by a key of its candidate",
            "analysis/ordered/family.py",
            "    if not keys or reading.time is None:\n",
            "    if True:\n",
        ),
        bug(
            "causes are not kept",
            PARTITION,
            "            for cause in window.causes.values():\n",
            "            for cause in [*window.causes.values()][:1]:\n",
        ),
        bug(
            "any look-up of the last change is a context",
            STANDING,
            "        if join.ended != (None if is_default else ends(change)):\n            return None\n",
            "",
        ),
        bug(
            "a query in one of several contexts stands in none",
            STANDING,
            "len(alternatives) > 1 and",
            "len(alternatives) > 9 and",
        ),
        bug(
            "an instant beside the rows' own is theirs",
            STANDING,
            "return stream.progress == (at,)",
            "return True",
        ),
        bug(
            "what a query is outside of lets its rows through",
            SUSPENSION,
            "held.keys().isdisjoint(self.standing.contexts) is self.standing.outside",
            "not held.keys().isdisjoint(self.standing.contexts)",
        ),
        bug("since the last of several windows", SUSPENSION, "return min(begun)", "return max(begun)"),
        bug(
            "the default has not held since the last window began",
            SUSPENSION,
            "return min(held.values()) if",
            "return max(held.values()) if",
        ),
        bug(
            "other windows tell since when a context does not hold",
            SUSPENSION,
            "if self.standing.contexts == (self.node.default,) else None",
            "if held else None",
        ),
        bug(
            "rows without a key are in contexts",
            SUSPENSION,
            "key: {} if None in key else held for",
            "key: held for",
        ),
        bug(
            "an initiation in its own context does nothing, though this may end",
            FINDINGS,
            "                and not self._ending(context)\n",
            "",
        ),
        bug(
            "a switch takes one cause away",
            FINDINGS,
            'one.transition.action == "terminate" and one.transition.one_cause',
            "one.transition.one_cause",
        ),
        bug(
            "what never counts begins contexts",
            FINDINGS,
            "begun = [one for one in self._counting() if",
            "begun = [one for one in self._alive() if",
        ),
        bug(
            "a switch ends no context",
            "contexts/explained.py",
            'return transition.action == "switch" and context in transition.within\n',
            "return False\n",
        ),
        bug(
            "contexts begin in the default one alone",
            FINDINGS,
            "for name in one.transition.within)",
            "for name in one.transition.within if name == self.default)",
        ),
        bug(
            "windows of a context are its starts alone",
            MODEL,
            "starts, ends = self._changed(context, START), self._changed(context, END)",
            "starts, ends = self._changed(context, START), self._changed(context, START)",
        ),
        bug(
            "windows of a context without rows are never told",
            MODEL,
            "by=self._keys, empty=empty, opens_at",
            "by=self._keys, empty=False, opens_at",
        ),
        bug(
            "the beginning of a window under another name is none",
            PARTITIONS,
            "return self.has(below, _old(pairs, name))",
            "return self.has(below, name)",
        ),
        bug(
            "an aggregate with the name of a beginning is one",
            PARTITIONS,
            "case Group(keys=keys) | Windows(keys=keys) if name not in keys:",
            "case Group(keys=keys) | Windows(keys=keys) if name in keys:",
        ),
        bug(
            "a value whose text ends in its name is printed without it",
            PRINTED,
            'has_it = isinstance(term, Attr) and term.name.rpartition(".")[2] == name',
            'has_it = text.rpartition(".")[2] == name',
        ),
        bug(
            "a model of contexts reads itself",
            MODEL,
            "        require_other_contexts(self._name, when, transition)\n",
            "",
        ),
        bug(
            "a stream that a result reads has the name of a model of contexts",
            READS,
            "        found.update({stream.name: found.get(stream.name) for stream in occurrences(result._fed_by.node)})\n",
            "",
        ),
        bug(
            "an attribute that stands for two keys of a context is one",
            LOOK_UP,
            "        if key in apart:\n",
            "        if False:\n",
        ),
    ),
)  # fmt: skip
