"""Slips in which files a batch on Spark reads."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

WHICH = "runtime/spark/which_files.py"

GROUP = Group(
    "which files",
    (
        "tests/runtime/spark/test_which_files.py",
        "tests/runtime/spark/test_files_that_go.py",
        "tests/runtime/state/test_checkpoint.py",
        "tests/runtime/test_setup.py",
    ),
    (
        bug(
            "files that were read are read again",
            "runtime/spark/run.py",
            "self.setup.unread({name: len(files) for name, files in offer.files.items()})",
            "{name: tuple(one.data.found()) for name, one in self.setup.sources.items()}",
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
            "(*there[:most], *alone)",
            "(*there[:most],)",
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
            "                return True\n",
            "                return False\n",
        ),
        bug(
            "a run that lasts waits for Spark to find other files",
            "runtime/spark/run.py",
            "if self.lasts and any(directory.waiting for directory in self.setup.directories.values()):",
            "if False:",
        ),
        bug(
            "a streaming DataFrame is one source of Spark's",
            WHICH,
            "if len(offsets) != len(known.streams) + 1 + known.clock:",
            "if False:",
        ),
        bug(
            "files that Spark's log does not tell of are left",
            "runtime/spark/engine.py",
            "early(known, unsure=True)",
            "early(known, unsure=False)",
        ),
        bug(
            "a batch is another one when its files are put away",
            "runtime/state/checkpoint.py",
            " or self._log.lacks_what_has_gone(offer, last.offer)",
            "",
        ),
        bug(
            "a batch that lacks files is the same",
            "runtime/state/positions.py",
            "        return before - files <= {",
            "        return True or before - files <= {",
        ),
        bug(
            "a file that was written again is not noticed",
            "runtime/setup.py",
            "        self._check_unchanged([change for one in self.directories.values() for change in one.changed.values()])\n",
            "",
        ),
        bug(
            "rows that the checkpoint keeps have an age",
            "runtime/setup.py",
            "if not file.found.path.startswith(own):",
            "if True:",
        ),
        bug(
            "a call has Spark wait for what is new",
            "runtime/spark/run.py",
            "            self.closing.say(ticks)\n            self._closing_recorded()",
            "            self.closing.say(ticks)\n            self.recorded()",
        ),
        bug("Spark passes over old files", "runtime/spark/union.py", '_ANY_AGE = "36500d"', '_ANY_AGE = "7d"'),
    ),
)
