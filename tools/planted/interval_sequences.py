"""Slips in interval sequences: their lists, their text, the executions of the paper, and beginnings of intervals."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

PYTHON = "algebra/dsl/sequences/intervals.py"
READER = "algebra/text/interval_sequences/reader.py"
PRINTER = "algebra/text/interval_sequences/printer.py"
RESTRICTIONS = "analysis/ordered/match/restrictions.py"
FAMILY = "analysis/ordered/match/family.py"
ORIGINS = "analysis/state/origins.py"
PARTNER = "analysis/state/partner.py"
EXECUTIONS = "runtime/testkit/interval_executions.py"
MEMORY = "runtime/eval/beginnings/memory.py"
PARTNERS = "runtime/eval/beginnings/partners.py"
UNTOLD = "runtime/eval/beginnings/untold.py"
SWEEP = "runtime/eval/purge_rows.py"
LOOK = "runtime/eval/dependents.py"
FATES = "runtime/ingest/beginnings/fates.py"
TOLD = "runtime/ingest/beginnings/told.py"
INTAKE = "runtime/ingest/ingest.py"
ADMISSION = "runtime/ingest/admission.py"
GARBAGE = "runtime/batch/garbage.py"
PLAN = "runtime/inspect/plan_text.py"

GROUP = Group(
    "interval sequences",
    (
        "tests/runtime/test_interval_sequences.py",
        "tests/algebra/text/test_interval_sequences.py",
        "tests/runtime/test_interval_executions.py",
        "tests/runtime/test_begun_intervals.py",
        "tests/properties/test_interval_sequences.py",
    ),
    (
        bug(
            "a combination may last as long as its window",
            PYTHON,
            'return f"{ticks - 1}us" if type_.kind is Kind.TIMESTAMP else ticks - 1',
            'return f"{ticks}us" if type_.kind is Kind.TIMESTAMP else ticks',
        ),
        bug(
            "intervals beside the sequence are taken into it",
            PYTHON,
            "and read.origin.intervals._symbol not in names:",
            "and not names:",
        ),
        bug(
            "a distance before an end lies after it",
            READER,
            "return self._end(part.parts[0]) - self.duration(part.parts[1])",
            "return self._end(part.parts[0]) + self.duration(part.parts[1])",
        ),
        bug(
            "of a chain the first comparison counts",
            READER,
            "for place, sign in enumerate(parts[1::2]):",
            "for place, sign in enumerate(parts[1:2]):",
        ),
        bug(
            "sequences that happen together lose their own windows",
            READER,
            "for condition in event.inside(whole.ticks))",
            "for condition in event.conditions)",
        ),
        bug(
            "alternatives have the shortest of their windows",
            READER,
            "longest = max(events, key=lambda event: event.ticks)",
            "longest = min(events, key=lambda event: event.ticks)",
        ),
        bug(
            "intervals with a second name are others in each sequence",
            READER,
            "if (name, wanted) not in self.named:",
            "if name != wanted or (name, wanted) not in self.named:",
        ),
        bug(
            "the window is written a tick short",
            PRINTER,
            "written_ticks(node.within + 1,",
            "written_ticks(node.within,",
        ),
        bug(
            "alternatives are written without brackets",
            PRINTER,
            "return f\"({' OR '.join(map(_restriction, args))})\"",
            "return ' OR '.join(map(_restriction, args))",
        ),
        bug(
            "two restrictions that say the same are both in vain",
            RESTRICTIONS,
            "            left = others\n",
            "            left = list(given)\n",
        ),
        bug(
            "what is stated is inferred, too",
            RESTRICTIONS,
            "or most == INF or (earlier, later) in stated:",
            "or most == INF:",
        ),
        bug(
            "the window of a sequence frees no row",
            RESTRICTIONS,
            "[*_all_of(given), *known, *window])\n    if isinstance(zone",
            "[*_all_of(given), *known])\n    if isinstance(zone",
        ),
        bug(
            "a match may be detected before it has ended",
            RESTRICTIONS,
            "known = [Bound(end, DETECTED, 0) for end in ends]",
            "known = [Bound(end, DETECTED, 0) for end in ends[::2]]",
        ),
        bug(
            "the last end is not known to be the detection",
            RESTRICTIONS,
            "    if last is None:\n        return zone\n",
            "    if last is None or last:\n        return zone\n",
        ),
        bug(
            "rows of a match are no partners",
            FAMILY,
            "return all(isinstance(situation, RowIntervals) for situation in node.situations)",
            "return not node.situations",
        ),
        bug(
            "partners of other partitions count",
            ORIGINS,
            "                self.pair(first[1].get(key, ()), known.get(other, ()))\n",
            "                self.pair((), known.get(other, first[1].get(key, ())))\n",
        ),
        bug(
            "one interval that ends before is enough to let go",
            EXECUTIONS,
            "if all(self.of.before(2 * other + 1, end) for other in others):",
            "if any(self.of.before(2 * other + 1, end) for other in others):",
        ),
        bug(
            "what is in the window for a last tick is let go",
            EXECUTIONS,
            "clock - record.ts >= self.of.within",
            "clock - record.ts >= self.of.within - 1",
        ),
        bug(
            "points end before they begin",
            EXECUTIONS,
            "arrival.ts == arrival.at, arrival.te is not None)",
            "arrival.ts == arrival.at, arrival.te is None)",
        ),
        bug(
            "beginnings are indexed where ends are",
            EXECUTIONS,
            'if execution == "punctuated" and 2 * role in self.places)',
            'if execution == "punctuated" and 2 * role + 1 in self.places)',
        ),
        bug(
            "intervals that have ended are open",
            MEMORY,
            'on=same, how="anti")',
            'on=same, how="semi")',
        ),
        bug(
            "an interval of the longest duration is forgotten before it ends",
            MEMORY,
            "begun.filter(start + self.longest > reached)",
            "begun.filter(start + self.longest > reached + 1)",
        ),
        bug(
            "ends are forgotten before their beginning may come",
            MEMORY,
            "ended = ended.filter(start > reached)",
            "ended = ended.clear()",
        ),
        bug(
            "an open interval may last for ever",
            PARTNERS,
            "latest = pl.min_horizontal(pl.lit(NEVER), *limits)",
            "latest = pl.min_horizontal(pl.lit(NEVER), *limits[:0])",
        ),
        bug(
            "conditions on what is known later hold before",
            UNTOLD,
            "return None if unknown is None or attributes_of(condition) & unknown else unknown",
            "return unknown",
        ),
        bug(
            "open intervals are nobody's partners",
            SWEEP,
            "return pl.concat([stored, open_.with_columns(numbers).select(stored.columns)])",
            "return pl.concat([stored, open_.clear().with_columns(numbers.clear()).select(stored.columns)])",
        ),
        bug(
            "looks forget open intervals",
            LOOK,
            "waiting |= _waiting_for(asked, rule, counterpart, rows, open_)",
            "waiting |= np.zeros_like(waiting)",
        ),
        bug(
            "an interval that begins in the next instant is late",
            PARTNER,
            "b[other.name, other.begins.end] - d) for x, d in self.begun]",
            "b[other.name, other.begins.end] - d + 1) for x, d in self.begun]",
        ),
        bug(
            "the least end of what is open counts as its latest",
            PARTNER,
            "Attr(own_least.get(x, x)), plus(Attr(named(y))",
            "Attr(x), plus(Attr(named(y))",
        ),
        bug(
            "of a few rows the least end of what is open counts as its latest",
            SWEEP,
            "_instants(rows, own_least.get(x, x))[:, None] <=",
            "_instants(rows, x)[:, None] <=",
        ),
        bug(
            "of a few rows what is open has ended as late as it may",
            SWEEP,
            "_instants(others, other_least.get(y, y)) <=",
            "_instants(others, y) <=",
        ),
        bug(
            "ends need no beginning",
            FATES,
            ".when(~is_there & late)",
            ".when(~is_there & ~is_there & late & is_there)",
        ),
        bug(
            "an end need not fit its beginning",
            FATES,
            "reason = pl.when(is_there & ~same)",
            "reason = pl.when(is_there & ~same & same)",
        ),
        bug(
            "beside beginnings nothing is malformed",
            TOLD,
            "left = pl.concat([rejected.filter(~without), others])",
            "left = pl.concat([others])",
        ),
        bug(
            "beginnings say nothing of progress",
            INTAKE,
            "done.greatest[end] = max(latest, done.greatest.get(end, latest))",
            "done.greatest[end] = done.greatest.get(end, latest - 1_000_000)",
        ),
        bug(
            "a beginning at the instant that was reached is in time",
            ADMISSION,
            "else start <= b\n",
            "else start < b\n",
        ),
        bug(
            "beginnings are never written anew",
            GARBAGE,
            "        return [Rewrite(buffer, stored, TRUE, beginnings=beginnings, reached=reached)]\n",
            "        return []\n",
        ),
        bug(
            "beginnings stay after the end of all input",
            GARBAGE,
            "if not is_due and reached != INF:",
            "if not is_due:",
        ),
        bug(
            "what has begun is not told",
            PLAN,
            'begun = " or has begun" if pair.begun and _tells(query, pair.counterpart) else ""',
            'begun = ""',
        ),
        bug(
            "many segments of beginnings are judged anew with all others",
            GARBAGE,
            "            is_due = sum(rows) > 2 * max(max(rows), LEAST_BEGUN)\n",
            "            is_due = len(stored) > 4 or sum(rows) > 2 * max(max(rows), LEAST_BEGUN)\n",
        ),
        bug(
            "segments of beginnings stay as small as they came",
            GARBAGE,
            "                waiting += () if closed else self._merges_of_begun(buffer, stored)\n",
            "",
        ),
        bug(
            "a merge of some beginnings forgets which intervals have ended",
            GARBAGE,
            "        return [Rewrite(buffer, group, TRUE, most) for group in groups]\n",
            "        begun = self._begun(buffer)\n"
            "        return [Rewrite(buffer, group, TRUE, most, beginnings=begun, reached=1 << 60) for group in groups]\n",
        ),
    ),
)
