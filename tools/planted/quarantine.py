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
            "segment.bounds[CLOCK][1] < clock - keep.age",
            "segment.bounds[CLOCK][0] < clock - keep.age",
        ),
        bug(
            "a size drops the rows of the last batch too",
            "runtime/state/quarantine.py",
            " and segment is not newest\n",
            "\n",
        ),
        bug(
            "what was dropped is not counted",
            "runtime/state/quarantine.py",
            "                dropped = dropped.and_then(segment)\n        return self",
            "        return self",
        ),
        bug(
            "retention waits for a rejected row",
            "runtime/state/quarantine.py",
            "        return before.kept(keep, clock)\n",
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
            "    return until is not None and until >= segment.bounds[CLOCK][1]\n",
            "    return False\n",
        ),
        bug(
            "a touched file stops a run that sets bad files aside",
            "runtime/engines/setup.py",
            'if self.options[file.source].on_bad_file == "fail":',
            "if True:",
        ),
        bug(
            "files that changed are passed over in silence",
            "runtime/engines/notices.py",
            "if new and (not before or count >= due_after(before)) else ()",
            "if False else ()",
        ),
        bug(
            "a file that changed is told of at each look",
            "runtime/engines/notices.py",
            "if file not in known]",
            "if True]",
        ),
        bug(
            "a mend names a type that nobody can declare",
            "runtime/engines/rejections.py",
            '"a bigint has 64 bits, and no type holds longer numbers exactly: declare string',
            '"a bigint has 64 bits: declare decimal(38, 0) for longer numbers, or string',
        ),
    ),
)
