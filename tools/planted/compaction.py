"""Slips in compacting directories of results."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GROUP = Group(
    "compaction",
    ("tests/runtime/state/test_compaction.py",),
    (
        bug(
            "the newest batch's files are merged too",
            "runtime/state/outputs/compaction.py",
            "file.result.last < newest",
            "file.result.last <= newest",
        ),
        bug(
            "the newest batch is that of all queries",
            "runtime/state/outputs/compaction.py",
            "max(file.result.last for file in own)",
            "max(file.result.last for file in files)",
        ),
        bug(
            "files are merged while somebody reads them",
            "runtime/state/outputs/compaction.py",
            "        yield from _asked(top, _TRIES if tries is None else tries, lambda: None)"
            "  # else all would be merged in vain\n",
            "",
        ),
        bug(
            "a run asks as often while somebody reads",
            "runtime/engines/compactions.py",
            "min(2 * self.apart.get(directory, FANOUT), _MOST_APART)",
            "FANOUT",
        ),
        bug(
            "a run asks for long before it leaves a directory to whoever reads",
            "runtime/engines/compactions.py",
            ", tries=1)",
            ")",
        ),
        bug(
            "no crash of a test meets a compaction of a run",
            "runtime/engines/compactions.py",
            "failpoints=self.failpoints, ",
            "",
        ),
        bug(
            "a run merges all at once",
            "runtime/engines/compactions.py",
            "if done >= _ROWS * came and time.monotonic() >= until:",
            "if False:",
        ),
        bug(
            "a run merges fewer rows than come",
            "runtime/engines/compactions.py",
            "done += step.rows or came",
            "done += came",
        ),
        bug(
            "a compaction that was begun stays beside the results of a run that ended",
            "runtime/engines/setup.py",
            "            closing.callback(self.compactions.close)\n",
            "",
        ),
        bug(
            "a compaction that fails as it is given up fails the run",
            "runtime/engines/compactions.py",
            "            except StateError as error:  # the file that it was writing can not be ended\n",
            "            except KeyError as error:\n",
        ),
        bug(
            "a run leaves beside results what it merged",
            "runtime/engines/compactions.py",
            "            self.left.setdefault(directory, 0.0)\n",
            "",
        ),
        bug(
            "files that were merged go while a list of their names goes on",
            "runtime/state/outputs/beside.py",
            "if 0 <= age < GRACE:",
            "if False:",
        ),
        bug(
            "files that were merged stay in sight beside the directory",
            "runtime/state/outputs/beside.py",
            "            _remove(old)\n",
            "            pass\n",
        ),
        bug(
            "merged files are in sight while others are merged",
            "runtime/state/outputs/beside.py",
            'UNFINISHED: Final = ".tmp"',
            'UNFINISHED: Final = ""',
        ),
        bug(
            "a compaction that fails leaves its files",
            "runtime/state/outputs/beside.py",
            "                    _remove(target)\n",
            "                    pass\n",
        ),
        bug(
            "compaction takes files from a reader of the session",
            "runtime/engines/reading_results.py",
            "descriptor = hold(directory)",
            "descriptor = None",
        ),
        bug(
            "merged parts stay in the directory",
            "runtime/state/outputs/compaction.py",
            "if result.name not in gone:",
            "if True:",
        ),
        bug(
            "a directory that is read as a stream is compacted",
            "runtime/state/outputs/compaction.py",
            "fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)",
            "pass",
        ),
        bug(
            "batches publish without the directory's lock",
            "runtime/state/checkpoint.py",
            "locks.enter_context(hold_compaction(directory))",
            "pass",
        ),
        bug(
            "whoever waited for a directory keeps the one that is gone",
            "runtime/state/outputs/compaction.py",
            "if os.path.samestat(os.fstat(descriptor), os.stat(directory)):",
            "if descriptor:",
        ),
        bug(
            "files of several schemas are merged",
            "runtime/state/outputs/compaction.py",
            "(neighbours and neighbours[-1][-1].schema != run[0].schema)",
            "False",
        ),
        bug(
            "merged files are read as if nothing of them had been",
            "runtime/state/inputs/positions.py",
            "        if read:\n            raise StateError(\n                READ,",
            "        if False:\n            raise StateError(\n                READ,",
        ),
    ),
)
