"""Slips in merging rejected rows and in dropping old ones."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GROUP = Group(
    "quarantine",
    ("tests/runtime/state/test_quarantine.py", "tests/runtime/test_bad_files.py"),
    (
        bug(
            "a merged file does not take the place of its parts",
            "runtime/state/quarantine.py",
            "result = replaced(result, list(parts), replace(next(iter(parts)), segment=merged))",
            "result = (*result, replace(next(iter(parts)), segment=merged))",
        ),
        bug(
            "a batch waits for a merge of all rejected rows",
            "runtime/state/quarantine.py",
            "max_rows=min(_MOST_ROWS, max(_LEAST_ROWS, _REWRITTEN * fresh))",
            "max_rows=_MOST_ROWS",
        ),
        bug(
            "files of rejected rows become very many",
            "runtime/state/quarantine.py",
            "if not groups and sum(piece.rows < _MOST_ROWS for piece in small) > _MANY_FILES:",
            "if False:",
        ),
        bug(
            "retention goes by the oldest row of a file",
            "runtime/state/quarantine.py",
            "self._is_too_old(segment.bounds[CLOCK][1])",
            "self._is_too_old(segment.bounds[CLOCK][0])",
        ),
        bug(
            "a size drops the rows of the last batch too",
            "runtime/state/quarantine.py",
            " and segment is not self.newest\n",
            "\n",
        ),
        bug(
            "what was dropped is not counted",
            "runtime/state/quarantine.py",
            "        self.dropped = self.dropped.and_then(segment)\n",
            "",
        ),
        bug(
            "retention waits for a rejected row",
            "runtime/state/quarantine.py",
            "        return _retained(store, before, keep, clock, seq, attempt)\n",
            "        return before\n",
        ),
        bug(
            "rejected rows of a thread come before those of the one before it",
            "runtime/state/quarantine.py",
            "            self._pack()\n            self._tables += other._tables\n",
            "            self._tables += other._tables\n",
        ),
        bug(
            "a file that retention dropped is damage to who reads it",
            "runtime/ingest/quarantine.py",
            "    return segment.path not in listed_paths(store, tables)\n",
            "    return False\n",
        ),
        bug(
            "a file of a table that was taken away is one that retention dropped",
            "runtime/ingest/quarantine.py",
            "    return segment.path not in listed_paths(store, tables)\n",
            "    return True\n",
        ),
        bug(
            "a file that retention dropped stands in a table of its time",
            "runtime/ingest/quarantine.py",
            "    return segment.path not in listed_paths(store, tables)\n",
            "    return not tables\n",
        ),
        bug(
            "the oldest file of a table is not looked for in it",
            "runtime/state/rejects/file_tables.py",
            "self.first <= newest <= self.newest",
            "self.first < newest <= self.newest",
        ),
        bug(
            "a touched file stops a run that sets bad files aside",
            "runtime/engines/setup.py",
            'if self.options[source].on_bad_file == "fail":',
            "if True:",
        ),
        bug(
            "files that changed are passed over in silence",
            "runtime/engines/notices.py",
            "return new > 0 and (not before or count >= due_after(before))",
            "return False",
        ),
        bug(
            "a file that changed is told of at each look",
            "runtime/connectors/directory.py",
            "if change != known[change.current.path]:",
            "if True:",
        ),
        bug(
            "a mend names a type that nobody can declare",
            "runtime/engines/rejections.py",
            '"a bigint has 64 bits, and no type holds longer numbers exactly: declare string',
            '"a bigint has 64 bits: declare decimal(38, 0) for longer numbers, or string',
        ),
        bug(
            "each full file of rejected rows stands in every manifest",
            "runtime/state/quarantine.py",
            "    if len(full) <= LISTED:\n",
            "    if True:\n",
        ),
        bug(
            "a file that stands in a table goes with the last manifest that names it",
            "runtime/state/leftovers.py",
            "((retired.files - full) | leaving)",
            "(retired.files | leaving)",
        ),
        bug(
            "full files that retention drops stay",
            "runtime/state/leftovers.py",
            "((retired.files - full) | leaving)",
            "(retired.files - full)",
        ),
        bug(
            "a start deletes the files in tables",
            "runtime/state/leftovers.py",
            "        kept |= listed\n",
            "        pass\n",
        ),
        bug(
            "a start deletes what it does not know of damaged tables",
            "runtime/state/leftovers.py",
            "    elif tables:\n        areas.remove(QUARANTINE)\n",
            "",
        ),
        bug(
            "retention drops whole tables",
            "runtime/state/quarantine.py",
            "    left = [file for file in files if not retaining.drops(file)]\n",
            "    left = [file for file in files if not retaining.drops(file) and not files]\n",
        ),
        bug(
            "a table goes by the file with the oldest rows",
            "runtime/state/quarantine.py",
            "return self._is_too_old(table.first) or self._is_too_much",
            "return self._is_too_old(table.newest) or self._is_too_much",
        ),
        bug(
            "a size does not count tables",
            "runtime/state/quarantine.py",
            "        return sum(entry.bytes for entry in self.entries())\n",
            "        return sum(file.bytes for file in self.files)\n",
        ),
        bug(
            "a stream of rejected rows leaves tables out",
            "runtime/ingest/quarantine.py",
            "(kept.tables if since is None else ())",
            "(kept.tables if since is not None else ())",
        ),
    ),
)
