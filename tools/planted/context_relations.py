"""Slips in what is proved of contexts: windows that follow each other, contexts in others, patterns in one window."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

KEYS = "analysis/state/window_partitions.py"
STORE = "runtime/ordered/partition_store.py"
OPERATOR = "runtime/ordered/row_operator.py"
RELATIONS = "contexts/relations.py"
SETS = "analysis/report/predicate_sets.py"
IMPLIED = "contexts/optimiser/implied.py"
MATCHES = "contexts/optimiser/whole_matches.py"

GROUP = Group(
    "context relations",
    (
        "tests/contexts/test_window_partitions.py",
        "tests/contexts/test_ended_windows.py",
        "tests/contexts/test_relations.py",
        "tests/contexts/test_whole_matches.py",
    ),
    (
        bug(
            "a window's partition is let go although a row waits",
            OPERATOR,
            "            left = np.delete(left, owing)\n",
            "            del owing\n",
            required=True,
        ),
        bug(
            "rows that go by time are said to go with the next window",
            KEYS,
            "    if not isinstance(operator, _LETTING_GO) or rows_go_by_time(query):\n",
            "    if not isinstance(operator, _LETTING_GO):\n",
        ),
        bug(
            "partitions of windows are never let go",
            STORE,
            "        self.followed = np.isin(touched, np.union1d(followed, over), assume_unique=True)\n",
            "",
        ),
        bug(
            "a window's partition stays until the next one has a row",
            STORE,
            "np.isin(touched, np.union1d(followed, over), assume_unique=True)",
            "np.isin(touched, followed, assume_unique=True)",
            required=True,
        ),
        bug(
            "what comes with the end of its window stays",
            STORE,
            "np.isin(touched, np.union1d(followed, over), assume_unique=True)",
            "np.isin(touched, np.union1d(followed, told), assume_unique=True)",
        ),
        bug(
            "what is kept goes with the next row of another partition alone",
            STORE,
            "            touched = np.union1d(touched, told)\n",
            "            pass\n",
        ),
        bug(
            "windows have ended as they begin",
            OPERATOR,
            "    ends = as_frame(leaf).filter(pl.col(ended.change) == ended.end)\n",
            "    ends = as_frame(leaf)\n    assert END\n",
            required=True,
        ),
        bug(
            "that a window has ended is forgotten while it owes a row",
            OPERATOR,
            "            is_over[left[owing]] = True\n",
            "",
        ),
        bug(
            "that a window has ended is not stored",
            OPERATOR,
            "pl.Series(OVER, over[rows.get_column(PARTITION).to_numpy()], pl.Boolean)",
            "pl.Series(OVER, over[rows.get_column(PARTITION).to_numpy()] & False, pl.Boolean)",
        ),
        bug(
            "that a window has ended is stored and not read",
            OPERATOR,
            "            self.successors.over.update(last.partitions[last.over].tolist())\n",
            "            pass\n",
        ),
        bug(
            "windows that are found after their end are told to have ended",
            KEYS,
            "if not window.ends or told.change is None or not is_of_one:",
            "if told.change is None or not is_of_one:",
            required=True,
        ),
        bug(
            "of the default context no window is told to have ended",
            KEYS,
            "return replace(self, ends=started in conjuncts(condition))",
            "return self",
        ),
        bug(
            "partitions are shared out by a key that ends do not have",
            "runtime/plan/steps.py",
            "next(iter(told or exact), None)",
            "next(iter(exact), None)",
        ),
        bug(
            "ends are read that have no key in common",
            "runtime/plan/lower.py",
            "        if not both:\n            continue\n",
            "",
        ),
        bug(
            "what a query reads without waiting for it is no further than what it waits for",
            "analysis/facts.py",
            "        limit = replace(limit, lagging=True)\n",
            "        pass\n",
        ),
        bug(
            "how far such rows are ahead is not measured",
            "runtime/inspect/live_state.py",
            "for key in inputs | of_stream if arrived",
            "for key in inputs if arrived",
        ),
        bug(
            "the first window follows the last one",
            STORE,
            "            if last < latest\n",
            "            if last != min(known.values())\n",
        ),
        bug(
            "a store that goes on from a checkpoint does not know which partitions it has",
            STORE,
            "            held = np.flatnonzero(self.holding())\n",
            "            held = np.flatnonzero(self.holding())[:0]\n",
        ),
        bug(
            "windows of other partitions follow each other",
            KEYS,
            " and not any(map(others.isdisjoint, window.keys))",
            "",
            required=True,
        ),
        bug(
            "windows follow each other at another instant",
            KEYS,
            "reading.time in window.at and ",
            "",
        ),
        bug(
            "changes of several partitions are those of one",
            KEYS,
            " or by_key.keys() != {*keys}",
            "",
        ),
        bug(
            "a context lies in one that ends before it",
            RELATIONS,
            "frozenset(other for other in begun if all(context in self._ended_at(one) for one in self.ending[other]))",
            "begun",
            required=True,
        ),
        bug(
            "a context lies in one that begins later",
            RELATIONS,
            "            begun &= self._begun_at(one)\n",
            "            self._begun_at(one)\n",
        ),
        bug(
            "a query that stands in fewer contexts begins as often",
            RELATIONS,
            "                and one.within <= other.within\n",
            "",
        ),
        bug(
            "a query whose match has to lie in the window begins as often",
            RELATIONS,
            "                and (other.since is None or other.since == one.since)\n",
            "",
        ),
        bug(
            "a context surely ends by a match that began before it",
            RELATIONS,
            "if self.since is None and not",
            "if not",
        ),
        bug(
            "the first cause that is cleared ends a context",
            RELATIONS,
            "if self.since is None and not self.transition.one_cause else",
            "if self.since is None else",
        ),
        bug(
            "a query follows another one by a condition that may fail",
            RELATIONS,
            "            not other.may_fail and all(",
            "            all(",
        ),
        bug(
            "queries of different rows follow each other",
            RELATIONS,
            "return self.rows, self.keys, self.at",
            "return self.rows.schema, self.keys, self.at",
        ),
        bug(
            "contexts that begin in one transaction are apart",
            RELATIONS,
            "            self._never_both(one, other, known) for",
            "            True for",
            required=True,
        ),
        bug(
            "two rows of one instant never contradict each other",
            RELATIONS,
            "isinstance(self.rows, Group) and of.issuperset(self.rows.keys)",
            "not isinstance(self.rows, Group) or of.issuperset(self.rows.keys)",
        ),
        bug(
            "contexts overlap where one may begin in the other",
            RELATIONS,
            "            all(name == around or around",
            "            any(name == around or around",
        ),
        bug(
            "contexts overlap where one query begins in the other",
            RELATIONS,
            "        return all(\n            all(name",
            "        return any(\n            all(name",
        ),
        bug(
            "a context overlaps the one that it is switched from",
            RELATIONS,
            "            and around not in one.may_end\n",
            "",
        ),
        bug(
            "a context is apart from those in which its queries stand",
            RELATIONS,
            "known[other] and other not in self._ended_at(one):\n",
            "known[other] and other not in self._ended_at(one) and other in one.within:\n",
        ),
        bug(
            "a condition follows from a wider one",
            SETS,
            "left[name] <= accepted",
            "accepted <= left[name]",
        ),
        bug(
            "the wider context is not looked up",
            RELATIONS,
            "if any((context, other) in self.inside for other in left if other != context):",
            "if any((other, context) in self.inside for other in left if other != context):",
            required=True,
        ),
        bug(
            "one of two contexts that are the same is none",
            RELATIONS,
            "for other in left if other != context):",
            "for other in contexts if other != context):",
        ),
        bug(
            "rows that must not come for a while are looked for in the window alone",
            MATCHES,
            "isinstance(part, Anchor) or (isinstance(part, Absence) and part.within is not None)",
            "isinstance(part, Anchor)",
            required=True,
        ),
        bug(
            "rows around a match are read in the window alone",
            MATCHES,
            " or reach_of(rows.navigations) != (0, 0)",
            "",
        ),
        bug(
            "preferred matches are looked for in the window alone",
            MATCHES,
            "not isinstance(rows.selection, EveryMatch) or ",
            "",
        ),
        bug(
            "windows that are put together are partitions",
            MATCHES,
            " or isinstance(join.right.input, GroupedWindows)",
            "",
        ),
        bug(
            "matches of other partitions are looked for in a window",
            MATCHES,
            "began is None or not by_keys or made.since",
            "began is None or made.since",
        ),
        bug(
            "what fails in a match outside of the context does not",
            MATCHES,
            "        one.entry.lenient is not None for one in aggregates\n",
            "        one.entry.lenient is None and False for one in aggregates\n",
        ),
        bug(
            "an interval begins in the context, whatever is known",
            MATCHES,
            "            between\n            and isinstance",
            "            isinstance",
            required=True,
        ),
        bug(
            "an interval ends in the context in which it begins",
            MATCHES,
            "    return made.over(replace(rows, situations=tuple(situations)))\n",
            "    return replace(rows, situations=tuple(situations))\n",
        ),
    ),
)
