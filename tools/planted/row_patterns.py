"""Slips in the clause MATCH_RECOGNIZE: in how it is read and printed."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

FOLDER = "algebra/text/row_patterns"
ARGUMENTS = f"{FOLDER}/arguments.py"
FOUND = f"{FOLDER}/found.py"
NAVIGATIONS = f"{FOLDER}/navigations.py"
PATTERNS = f"{FOLDER}/patterns.py"
PRINTER = f"{FOLDER}/printer.py"
READER = f"{FOLDER}/reader.py"
SUGAR = f"{FOLDER}/sugar.py"

GROUP = Group(
    "row patterns as text",
    ("tests/algebra/text/test_match_recognize.py", "tests/algebra/text/test_match_recognize_errors.py"),
    (
        bug("reluctant is greedy", PATTERNS, 'tree.parts[-1].kind != "reluctant"', "True"),
        bug("so many times at least are so many at most", PATTERNS, "            return least, None", "            return 0, least"),
        bug("a part may come no times", PATTERNS, "(most == 0 or most < least)", "most < least"),
        bug("the row before is the row after", NAVIGATIONS, 'step=steps if op == "NEXT" else -steps', "step=steps"),
        bug("the row before is the row itself", NAVIGATIONS, "steps = self._offset(tree, 1)", "steps = self._offset(tree, 0)"),
        bug("the first row is the last one", NAVIGATIONS, '"first" if op == "FIRST" else "last"', '"last"'),
        bug("final rows are running ones", NAVIGATIONS, "row=row, final=final)", "row=row, final=False)"),
        bug(
            "a condition sees the whole match",
            NAVIGATIONS,
            'if asked == "FINAL" and self.clause == "DEFINE":',
            'if asked == "FINAL" and self.clause == "":',
        ),
        bug("a condition knows the number of its match", NAVIGATIONS, 'if self.clause == "DEFINE":\n            raise', "if False:\n            raise"),
        bug("a row has two variables", ARGUMENTS, "if len(self.seen) > 1:", "if len(self.seen) > 2:"),
        bug("equal navigations are two", FOUND, "if known is None:", "if True:"),
        bug(
            "an attribute alone is none of the last row in measures",
            NAVIGATIONS,
            'if self.clause == "DEFINE":\n            return value',
            'if self.clause:\n            return value',
        ),
        bug("an attribute alone is not printed so", PRINTER, "plain = (measure or bool(row.variables))", "plain = bool(row.variables)"),
        bug("each value of an attribute has a unit of its own", NAVIGATIONS, "return self.navigations.attribute(name)", "return name"),
        bug("a navigation has the name of an attribute", FOUND, "while name in self.schema or name in", "while name in"),
        bug("without a place to skip to it is the next row", READER, "        return Skip()", '        return Skip("next row")'),
        bug("the first row of a variable is skipped to as the last", READER, 'Skip("first" if kind == "to_first" else "last", name_of(part))', 'Skip("last", name_of(part))'),
        bug("a least distance is the most", READER, '-ticks if part.kind == "distance_of_at_least" else ticks', "ticks"),
        bug("excluded rows are unmatched ones", READER, "if node.reported.unmatched and any(", "if False and any("),
        bug("offsets are not printed", PRINTER, 'offset = f", {row.offset}" if row.offset else ""', 'offset = ""'),
        bug("final is not printed", PRINTER, "{'FINAL ' if final else ''}{row.end.upper()}", "{row.end.upper()}"),
        bug(
            "the clause over a filter names its stream",
            PRINTER,
            "if not isinstance(node.input, Scan):\n        return match_recognize_text(node)\n",
            'if not isinstance(node.input, Scan):\n        raise cannot("matches of anything but a stream")\n',
        ),
        bug("between ends before its end", SUGAR, '_part(tree, "le", value, given[1])', '_part(tree, "lt", value, given[1])'),
        bug("the last case comes first", SUGAR, "for when in reversed([part for part", "for when in list([part for part"),
        bug("words of the clause are no names", "algebra/text/writer.py", "plain = name.isidentifier() and name.upper() not in keywords(self.language)", "plain = name.isidentifier()"),
        bug(
            "the variable of the next row is not known",
            "algebra/ordered/sequences/partition.py",
            "for place, variable in whole if place == at",
            "for place, variable in matched if place == at",
        ),
    ),
)  # fmt: skip
