"""Slips in which files a batch on Spark reads."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

WHICH = "runtime/spark/which_files.py"

GROUP = Group(
    "which files",
    ("tests/runtime/spark/test_which_files.py",),
    (
        bug(
            "files that were read are read again",
            WHICH,
            'if log.is_consumed(name, file) == "new")\n        chosen',
            ")\n        chosen",
        ),
        bug(
            "fewer files are read than Spark offers",
            WHICH,
            "max(data.per_batch, len(offered.get(name, ())) - len(alone))",
            "data.per_batch",
        ),
        bug(
            "only as many files are read as Spark offers",
            WHICH,
            "max(data.per_batch, len(offered.get(name, ())) - len(alone))",
            "len(offered.get(name, ())) - len(alone)",
        ),
        bug(
            "files that Spark alone finds are left out",
            WHICH,
            "(*islice(unread, most), *alone)",
            "(*islice(unread, most),)",
        ),
        bug("Spark has seen what it offered in a batch that is not committed", WHICH, ' if one["batchId"] <= last', ""),
        bug(
            "an intent holds although its files are gone",
            WHICH,
            "        checkpoint.discard_intent()\n",
            "        pass\n",
        ),
        bug(
            "Spark is never begun anew for files it will not offer",
            WHICH,
            "            return True\n",
            "            return False\n",
        ),
        bug(
            "a run that lasts waits for Spark to find other files",
            "runtime/spark/run.py",
            "if self.lasts and leaves_files(self.setup, found):",
            "if False:",
        ),
        bug("Spark passes over old files", "runtime/spark/union.py", '_ANY_AGE = "36500d"', '_ANY_AGE = "7d"'),
    ),
)
