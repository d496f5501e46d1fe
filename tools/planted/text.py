"""Slips in the text language: in what a query's text means, in what a query is printed as, and in the pictures of its
results.
"""

from __future__ import annotations

from tools.planted.bugs import Group, bug

CONDITIONS = "algebra/text/conditions.py"
DURATIONS = "algebra/text/durations.py"
PARSING = "algebra/text/parsing.py"
READER = "algebra/text/reader.py"
SOURCES = "algebra/text/sources.py"
UNITS = "algebra/text/units.py"
WRITER = "algebra/text/writer.py"
TIMELINE = "runtime/inspect/timelines/timeline.py"
DRAWING = "runtime/inspect/timelines/drawing.py"
RUN = "runtime/cli/run_query.py"

GROUP = Group(
    "text",
    (
        "tests/algebra/text/test_reading.py",
        "tests/algebra/text/test_round_trip.py",
        "tests/runtime/test_timeline.py",
        "tests/runtime/test_cli_run.py",
    ),
    (
        bug(
            "finishes is Allen's in any dialect",
            READER,
            "            return mirrored.value",
            "            return name",
        ),
        bug("alternatives hold together", READER, "else constraint | related", "else constraint & related"),
        bug("what orders equal times is not read", SOURCES, "time=time, tie=tie)", "time=time, tie=None)"),
        bug(
            "durations are milliseconds",
            DURATIONS,
            'return f"{ticks_of(seconds)}us"',
            'return f"{ticks_of(seconds)}ms"',
        ),
        bug(
            "the upper limit of between is the lower one",
            READER,
            "                durations[-1] if part.kind",
            "                durations[0] if part.kind",
        ),
        bug("a foot has two digits exchanged", UNITS, '("ft", length, "0.3048")', '("ft", length, "0.3084")'),
        bug(
            "quantities are converted the other way",
            UNITS,
            "exact = number * of.factor / to.factor",
            "exact = number * to.factor / of.factor",
        ),
        bug(
            "one over a quantity has its unit",
            CONDITIONS,
            "not isinstance(left.operand, Expression) and _PRODUCTS[op] > 0:",
            "not isinstance(left.operand, Expression):",
        ),
        bug(
            "quotes in a text stay doubled",
            CONDITIONS,
            """return part.text[1:-1].replace("''", "'")""",
            "return part.text[1:-1]",
        ),
        bug(
            "a result is named without its situation",
            "algebra/text/returned.py",
            "name_of(name[0]) if name else source,",
            'name_of(name[0]) if name else source.rpartition(".")[2],',
        ),
        bug(
            "the end of a text is its last character",
            PARSING,
            "len(self._lines[line].rstrip()) + 1)",
            "len(self._lines[line].rstrip()))",
        ),
        bug(
            "places behind a tab are shown four columns wide",
            PARSING,
            '.replace("\\t", " ").rstrip(), column)',
            '.replace("\\t", "    ").rstrip(), column)',
        ),
        bug(
            "differences of differences need no parentheses",
            WRITER,
            "{WRITTEN[op]} {self._inside(right, binding + 1)}",
            "{WRITTEN[op]} {self._inside(right, binding)}",
        ),
        bug(
            "a name that is a duration has no quotes",
            WRITER,
            "if plain and not is_duration(self.language, name) else",
            "if plain else",
        ),
        bug(
            "DISTINCT is a value that is aggregated",
            "algebra/text/row_patterns/filtered.py",
            "if distinct else",
            "if not argument else",
        ),
        bug(
            "rows of a variable are values that are aggregated",
            "algebra/text/row_patterns/filtered.py",
            'argument.endswith("*")',
            'argument == "*"',
        ),
        bug("quotes in a name are not doubled", WRITER, """name.replace('"', '""')""", "name"),
        bug(
            "open periods end where they begin",
            DRAWING,
            "end = axis.last if bar.end is None",
            "end = bar.start if bar.end is None",
        ),
        bug(
            "matches are detected at the end of the axis",
            DRAWING,
            'at, finer = (f"{axis.x(lane.detected):.{digits}f}" for digits in (2, 6))',
            'at, finer = (f"{axis.x(axis.last):.{digits}f}" for digits in (2, 6))',
        ),
        bug(
            "partitions with matches come last",
            TIMELINE,
            "[*self.matches, *(key for key in self.bars if key not in self.matches)]",
            "[*(key for key in self.bars if key not in self.matches), *self.matches]",
        ),
        bug(
            "the last rejected row is shown",
            RUN,
            "rejected.slice(reasons.index(reason), 1)",
            "rejected.slice(len(reasons) - 1 - reasons[::-1].index(reason), 1)",
        ),
        bug("a key may be the time", RUN, "if attribute.name not in keys]", "]"),
    ),
)
