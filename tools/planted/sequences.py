"""Slips in the rule that says from when on nothing changes a match of a row pattern."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

FOLDER = "algebra/ordered/sequences"
AUTOMATON = f"{FOLDER}/automata/automaton.py"
INSTRUCTIONS = f"{FOLDER}/automata/instructions.py"
CERTAIN = f"{FOLDER}/certain.py"
CHECKS = f"{FOLDER}/checks.py"
CHAIN = f"{FOLDER}/certainty/chain.py"
COMPARED = f"{FOLDER}/certainty/compared.py"
COUNTS = f"{FOLDER}/certainty/counts.py"
CONTINUATIONS = f"{FOLDER}/certainty/continuations.py"
INSTANTS = f"{FOLDER}/certainty/instants.py"
LEAVES = f"{FOLDER}/certainty/leaves.py"
POSSIBLE = f"{FOLDER}/certainty/possible.py"
PREPARED = f"{FOLDER}/certainty/prepared.py"
RUNS = f"{FOLDER}/certainty/runs.py"
SEARCH = f"{FOLDER}/search.py"
PATTERN = f"{FOLDER}/pattern.py"
ARGUMENTS = "algebra/text/row_patterns/arguments.py"
OUTLINES = f"{FOLDER}/outlines.py"
ZONE = f"{FOLDER}/certainty/zone.py"
FAMILY = "analysis/ordered/sequences/family.py"
SETS = "analysis/report/predicate_sets.py"
BUILD = "algebra/dsl/sequences/build.py"

GROUP = Group(
    "row patterns",
    (
        "tests/algebra/ordered/sequences/test_certain.py",
        "tests/algebra/ordered/sequences/test_automaton.py",
        "tests/algebra/ordered/sequences/test_checks.py",
        "tests/algebra/ordered/sequences/test_examples.py",
        "tests/algebra/ordered/sequences/test_continuations.py",
        "tests/algebra/ordered/sequences/test_outlines.py",
        "tests/algebra/text/test_match_recognize.py",
        "tests/analysis/test_predicate_sets.py",
    ),
    (
        bug(
            "a match is certain once it is one",
            CHAIN,
            "_Start(found, None if others else Match(",
            "_Start(found, Match(",
        ),
        bug(
            "the last row of a variable is another than the row of its condition",
            FAMILY,
            "over_row(node, of.variable, part) for part in conjuncts",
            'over_row(node, "", part) for part in conjuncts',
        ),
        bug(
            "a duration is a measure",
            BUILD,
            "isinstance(given, Expression) and not _is_duration(given) and",
            "isinstance(given, Expression) and",
        ),
        bug(
            "a value is less than itself",
            SETS,
            '_REFLEXIVE = ("le", "ge", "eq")',
            '_REFLEXIVE = ("le", "ge", "eq", "lt")',
        ),
        bug(
            "a value that equals itself says nothing",
            SETS,
            'f"says only that {name} is not NULL: {',
            'f"says nothing new: {',
        ),
        bug(
            "rows that must not come may say nothing",
            CHECKS,
            'node.selection.skipping != "contiguous":\n        return',
            'node.selection.skipping != "":\n        return',
        ),
        bug(
            "rows that must not come say nothing elsewhere either",
            CHECKS,
            "in sorted(between - outside, key=text)",
            "in sorted(between, key=text)",
        ),
        bug(
            "a row to come is one too many",
            POSSIBLE,
            "for place in counted) > most.most",
            "for place in counted) >= most.most",
        ),
        bug("a least count is a greatest one", COUNTS, '"le" | "eq" as op', '"le" | "eq" | "ge" as op'),
        bug(
            "all rows are counted, whatever their variables",
            POSSIBLE,
            "variable in matched if most.counts(variable))",
            "variable in matched)",
        ),
        bug(
            "one part of a choice is compared with NULL",
            COMPARED,
            '        case Call("not", (inner,)):',
            '        case Call("or", (inner, *_)) | Call("not", (inner,)):',
        ),
        bug("NULL equals nothing", COMPARED, '"gt", "ge")', '"gt", "ge", "eq_null_safe")'),
        bug("a rule has no version", f"{FOLDER}/node.py", 'return f"certainty, version {RULE}"', 'return ""'),
        bug("each start is decided by itself", CHAIN, "visited = start >= furthest", "visited = True"),
        bug(
            "no row behind the known ones is NULL",
            POSSIBLE,
            "return place is None or self.knows(place)",
            "return True",
        ),
        bug(
            "the last known row is the last",
            LEAVES,
            'ends = "end" not in way.anchors or known.until is None',
            "ends = True",
        ),
        bug(
            "a limit ends a tick early",
            LEAVES,
            "Continuations(known, known.next)",
            "Continuations(known, known.next + 1)",
        ),
        bug(
            "rows that must not come may come a tick less long",
            POSSIBLE,
            "self.next <= end:",
            "self.next < end:",
        ),
        bug(
            "no optional rows are to come",
            LEAVES,
            "elif self.continuations is not None and path.matched:",
            "elif self.continuations is not None and all(w.to is not None for w in states[path.state].transitions):",
        ),
        bug(
            "least distances between rows to come are left out",
            CONTINUATIONS,
            ">= self.known.count and later > earlier:",
            ">= self.known.count:",
        ),
        bug(
            "rows to come have no order",
            ZONE,
            "            bounds += [self.distance(point, before) for before in self.places[-1:]]\n",
            "",
        ),
        bug(
            "a row is in no match once it begins none",
            CHAIN,
            "if visited and not of.leaves and start >= held:",
            "if visited and not of.leaves:",
        ),
        bug(
            "rows of matches before a standing are forgotten",
            CHAIN,
            "standing.begin, standing.taken",
            "standing.begin, 0",
        ),
        bug(
            "a number does not wait for the matches before",
            CHAIN,
            "if match is not None and (settled or not numbers):",
            "if match is not None:",
        ),
        bug(
            "limits are looked at before the last row is there",
            CONTINUATIONS,
            "if any(other.includes(zone) for other in before):",
            "if self.limited(matched, zone) is None or any(other.includes(zone) for other in before):",
        ),
        bug(
            "a limit from a last row stays as it is",
            CONTINUATIONS,
            'if kept is not None and not (lasting and limit.earlier.end == "last"):',
            "if kept is not None:",
        ),
        bug(
            "a limit from a last row is passed for good",
            LEAVES,
            '            and limit.earlier.end == "first"\n',
            "",
        ),
        bug(
            "counts stand while rows are to come",
            POSSIBLE,
            "return all(self.knows(place) for place, v in matched if not variables or v in variables)",
            "return self.knows(at) or not any(v in variables for _, v in matched[:-1])",
        ),
        bug(
            "a skipped row is no next one until it is known to be",
            RUNS,
            '                if verdict == "open":\n                    skipping',
            '                if verdict == "never":\n                    skipping',
        ),
        bug(
            "a row fits against the limits",
            RUNS,
            "if True in outcomes and self._meetable(at).meets(state, matched):",
            "if True in outcomes:",
        ),
        bug(
            "equal rows wait for each other",
            CHAIN,
            "if leaf.more or (leaf.matched, leaf.excluded) != (last.matched, last.excluded)]",
            "if leaf is not last]",
        ),
        bug(
            "rows that are reported otherwise are equal",
            CHAIN,
            "(leaf.matched, leaf.excluded) != (last.matched, last.excluded)",
            "leaf.matched != last.matched",
        ),
        bug(
            "a start with leaves has a match",
            CHAIN,
            "else found | {start + 1}",
            "else found or {start + 1}",
        ),
        bug(
            "the search goes on at the next row after what is to come",
            LEAVES,
            "            ends.add(self._resumes(start, matched))",
            "            ends.add(start + 1)",
        ),
        bug(
            "measures do not wait for the rows that they read",
            CHAIN,
            "visited and measured(known, of.match)",
            "visited",
        ),
        bug(
            "what is detected is so at the end of the stretch",
            CERTAIN,
            "if segments == [(end, end)]:",
            "if len(segments) == 1:",
        ),
        bug(
            "each instant is looked at, whether or not anything is new",
            CERTAIN,
            "size = 2 * size if len(found) == count else 1",
            "size = 1",
        ),
        bug(
            "what is new is looked for before its rows are known",
            CERTAIN,
            "if segment[1] >= since]",
            "if segment[1] >= 0]",
        ),
        bug(
            "what is new is looked for behind the instant of its last row",
            CERTAIN,
            "if segment[1] >= since]",
            "if segment[1] > since or segment == segments[-1]]",
        ),
        bug(
            "starts are looked at that the search may pass over",
            CHAIN,
            "if furthest >= known.count:",
            "if furthest > known.count:",
        ),
        bug(
            "a row is known an instant late",
            CERTAIN,
            "self.known.become_first(self.partition, bisect_right(",
            "self.known.become_first(self.partition, bisect_left(",
        ),
        bug(
            "each instant reads all rows before it",
            CERTAIN,
            "self.known.become_first(self.partition, bisect_right(self.partition.times, until))",
            "self.known = self.partition.first(bisect_right(self.partition.times, until))",
        ),
        bug(
            "rows at the instant itself are not known",
            CERTAIN,
            "partition = partition.first(bisect_right(",
            "partition = partition.first(bisect_left(",
        ),
        bug(
            "rows that are read before others are not needed",
            CERTAIN,
            "return max(place - self.prepared.reach, 0)",
            "return max(place, 0)",
        ),
        bug(
            "rows that must not come before are not needed",
            CERTAIN,
            "min(standing.begin, bisect_left(times, first - leading))",
            "min(standing.begin, bisect_right(times, first - leading))",
        ),
        bug(
            "a partition begins where rows were dropped",
            LEAVES,
            "(path.at == 0 and self.known.whole)",
            "(path.at == 0)",
        ),
        bug(
            "what must not come before may come at the end of its duration",
            POSSIBLE,
            "times[first] - times[at] <= absence.within]",
            "times[first] - times[at] < absence.within]",
        ),
        bug(
            "there is always a next row",
            POSSIBLE,
            "return Range(self.next, INF, null=beyond)",
            "return Range(self.next, INF)",
        ),
        bug("a strict bound is no more than another", INSTANTS, "other - by - strict", "other - by"),
        bug(
            "variables of earlier rows are not read",
            PREPARED,
            "for variables in self.counted), self.labels(matched))",
            "for variables in self.counted))",
        ),
        bug(
            "ways to one row are one way",
            LEAVES,
            "return self.prepared.registers(path.matched), path.leading, path.undecided",
            "return path.leading, path.undecided",
        ),
        bug(
            "a part without rows is repeated",
            AUTOMATON,
            "waiting.append((end if time in entered else to, way, entered))",
            "waiting.append((end if time in entered and to != place + 1 else to, way, entered))",
        ),
        bug(
            "the last part that must be can be empty and have others behind it",
            INSTRUCTIONS,
            "if time < least - 1 or not beyond:",
            "if time < least or not beyond:",
        ),
        bug(
            "an optional part without rows is none",
            SEARCH,
            "                    yield way\n                else:",
            "                    pass\n                else:",
        ),
        bug(
            "all repetitions are greedy",
            INSTRUCTIONS,
            "(choice + 1, end) if repetition.greedy else (end, choice + 1)",
            "(choice + 1, end)",
        ),
        bug(
            "an absence on the way is forgotten",
            AUTOMATON,
            "return way if mark in way.absences else Transition(None, (*way.absences, mark), way.anchors)",
            "return way",
        ),
        bug(
            "a last row behind the first is the first",
            CHECKS,
            '(skip.to == "first" or not later)',
            "True",
        ),
        bug(
            "a last row in an outline stays the last",
            OUTLINES,
            "left = (row - new for row in outline)",
            "left = outline",
        ),
        bug(
            "the first row in an outline is the latest one",
            OUTLINES,
            'if point.end == "last" or point not in known',
            "if True",
        ),
        bug("rows behind are counted from the end of the match", OUTLINES, "    rows = 0", "    rows = 1"),
        bug(
            "a group must not come in part",
            PATTERN,
            "if not isinstance(self.part, Alternation):",
            "if not isinstance(self.part, Alternation | Concatenation):",
        ),
        bug(
            "rows of a group follow each other",
            POSSIBLE,
            "yield from (at for at in places if at > last)",
            "yield from (at for at in places if at > last and at <= (last if rows else at) + 1)",
        ),
        bug(
            "the rows of a group come in any order",
            POSSIBLE,
            "yield from (at for at in places if at > last)",
            "yield from (at for at in places if at != last)",
        ),
        bug(
            "the first row that can be in a group is",
            POSSIBLE,
            "alike = to, at, self.prepared.registers((*matched, *longer))",
            "alike = to",
        ),
        bug(
            "what the rows of a group before were is forgotten",
            POSSIBLE,
            "alike = to, at, self.prepared.registers((*matched, *longer))",
            "alike = to, at",
        ),
        bug("rows to come are in no group", POSSIBLE, "_may_hold, ahead=True)", "_may_hold)"),
        bug(
            "rows to come of a group are the very next ones",
            POSSIBLE,
            "yield from range(begin, begin + self.prepared.back + 1)",
            "yield from range(begin, begin + 1)",
        ),
        bug("a group that may come has come", POSSIBLE, "return outcomes == {True}", "return True in outcomes"),
        bug(
            "a group has any number of rows",
            CHECKS,
            "if longest(absence.part) is None:",
            "if longest(absence.part) == 0:",
        ),
        bug(
            "rows of a group know no others",
            ARGUMENTS,
            "here in group for group in self.groups",
            "False for group in ()",
        ),
    ),
)
