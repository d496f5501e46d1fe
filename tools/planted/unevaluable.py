"""Slips in what is set aside: rows without a value, sums that do not fit, events that nothing orders."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

ROW_WISE = "algebra/row_wise.py"
INTAKE = "runtime/ingest/ingest.py"
UNEVALUABLE = "runtime/eval/unevaluable.py"
LENIENT = "runtime/eval/lenient.py"
TIES = "runtime/ordered/derive/ties.py"
AGGREGATES = "runtime/eval/aggregates/partials.py"

GROUP = Group(
    "unevaluable",
    ("tests/runtime/test_ties.py", "tests/properties/test_unevaluable.py", "tests/algebra/test_depth.py"),
    (
        bug(
            "conditions above a selection are judged for rows that it leaves out",
            UNEVALUABLE,
            "                return fine.filter(compile_term(condition, input_.schema))\n",
            "                return fine\n",
        ),
        bug(
            "of attributes in a row the terms are not tested",
            UNEVALUABLE,
            "            rows = self._evaluable(rows, imbed.term, imbed.input.schema)\n",
            "",
        ),
        bug(
            "a row that fails beside a row of a table stays on its side",
            UNEVALUABLE,
            "        if gone:\n",
            "        if gone and not rows.height:\n",
        ),
        bug(
            "a row of a result is judged beside every row of a table",
            UNEVALUABLE,
            "split_by_failure(join.condition, both) if self.of_results else (TRUE, join.condition)",
            "(TRUE, join.condition)",
        ),
        bug(
            "integers are as large as the least of them",
            UNEVALUABLE,
            "ranges[name] = (least, greatest)",
            "ranges[name] = (least, least)",
        ),
        bug(
            "a range of operands is that of the result",
            "algebra/typed/terms.py",
            "return replace(term, range=ranges.get(term.source.name, term.range))",
            "return replace(term, range=(0, 0))",
        ),
        bug(
            "below a renaming, attributes are looked for by their new names",
            UNEVALUABLE,
            "frozenset(before.get(name, name) for name in needed)",
            "needed",
        ),
        bug(
            "what a term reads is not read",
            UNEVALUABLE,
            "return None if needed is None else needed | attributes_of(term)",
            "return needed",
        ),
        bug(
            "errors of operands that are equal and written differently are one",
            UNEVALUABLE,
            "tuple(str(value) if isinstance(value, float) else value for value in values)",
            "tuple(values)",
        ),
        bug(
            "rows that fail move progress",
            INTAKE,
            "        return rows.filter(~pl.col(POSITION).is_in(positions.implode())), told\n",
            "        return rows, told\n",
        ),
        bug(
            "a row is set aside in every increment that reads it",
            LENIENT,
            "    return rows if passes is None else keep_true(rows, passes, schema)\n",
            "    return rows\n",
        ),
        bug(
            "an anti-join takes a pair without a value for none",
            LENIENT,
            "        known = marked.filter(~pl.col(_LEFT).is_in(pl.concat(failed).implode()))\n",
            "        known = marked\n",
        ),
        bug(
            "a join looks at pairs for which a plain conjunct does not hold",
            LENIENT,
            'others, plain, "inner")',
            'others, TRUE, "inner")',
        ),
        bug(
            "a sum that does not fit is not told",
            LENIENT,
            "            if not too_large.any():\n",
            "            if too_large.any():\n",
        ),
        bug(
            "try_sum wraps",
            AGGREGATES,
            "            total = None\n        totals",
            "            total = (total + 2**63) % 2**64 - 2**63\n        totals",
        ),
        bug(
            "an event leaves only for what the first of several situations reads of it",
            "runtime/ordered/derive/situations.py",
            "for reading in readings for term in reading.terms]",
            "for reading in readings[:1] for term in reading.terms]",
        ),
        bug(
            "of different events of one instant the first stays",
            TIES,
            "    keep = ~tied_rows | (alike & first)\n",
            "    keep = ~tied_rows | first\n",
        ),
        bug(
            "equal events of one instant are all left out",
            TIES,
            "    keep = ~tied_rows | (alike & first)\n",
            "    keep = ~tied_rows\n",
        ),
        bug(
            "events differ in what nobody reads",
            TIES,
            "*sorted(aggregated(situations) - {*order})",
            "*sorted({*read.columns} - {*order})",
        ),
        bug(
            "many rows of which some are malformed are judged all together",
            "runtime/ingest/validation.py",
            "    return [(first, validate(source.piece(first, JUDGED), schema)) for first in firsts]\n",
            "    return [(0, validate(source, schema)) for _ in firsts[:1]]\n",
        ),
        bug(
            "rejected rows of a piece are counted from its first",
            INTAKE,
            ".sort(POSITION).with_columns(pl.col(POSITION) + first)",
            ".sort(POSITION)",
        ),
        bug(
            "a piece has the malformed values of the first one",
            "runtime/ingest/raw_rows.py",
            "{n: column.malformed[first + n] for n in range(count) if first + n in column.malformed}",
            "{n: column.malformed[n] for n in range(count) if n in column.malformed}",
        ),
        bug(
            "ends are judged by the beginnings of their piece",
            INTAKE,
            "        if intake.stream.begins is not None:  # ends",
            "        if False:  # ends",
        ),
        bug(
            "errors of different operands all stay",
            UNEVALUABLE,
            "            if len(self._known) >= MOST_ERRORS:\n",
            "            if False:\n",
        ),
        bug(
            "a term that reads nothing has operands",
            "runtime/eval/lenient.py",
            "gone.select(sorted(attributes_of(term)) or schema.names)",
            "gone.select(sorted(attributes_of(term)))",
        ),
        bug(
            "a row is told of for each term that has no value for it",
            UNEVALUABLE,
            "        for part in self.failed:\n",
            "        for part in ():\n",
        ),
        bug(
            "each tied event has an error of its own",
            "runtime/ordered/new_events.py",
            "    return [SetAsideRows.of(_TIE, rows, schema, rows.select(time), lambda operands: at(operands[time]))]\n",
            "    every = rows.iter_rows(named=True)\n"
            "    return [SetAside(_TIE, None, row, schema, error(row[time], schema[time].type)) for row in every]\n",
        ),
    ),
)
