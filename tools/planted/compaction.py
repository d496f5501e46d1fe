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
            "        with _alone(top, tries):\n            pass  # else all would be merged in vain\n",
            "",
        ),
        bug(
            "a run asks as often while somebody reads",
            "runtime/engines/compactions.py",
            "min(2 * apart, _MOST_APART)",
            "apart",
        ),
        bug(
            "a run waits in each batch for whoever reads",
            "runtime/engines/compactions.py",
            ", tries=1)",
            ")",
        ),
        bug(
            "files that were merged are in sight beside the directory",
            "runtime/state/outputs/compaction.py",
            "                _hide(target, gone)\n",
            "",
        ),
        bug(
            "a reader does not find the files that were merged",
            "runtime/engines/reading_results.py",
            "(name, name + MERGED)",
            "(name,)",
        ),
        bug(
            "a reader does not find the files that were not merged",
            "runtime/engines/reading_results.py",
            "os.open(os.path.join(directory, name), flags | os.O_NOFOLLOW)",
            "os.open(name, flags | os.O_NOFOLLOW, dir_fd=descriptor)",
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
            "fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)\n        except BlockingIOError:\n            if attempt",
            "pass\n        except BlockingIOError:\n            if attempt",
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
