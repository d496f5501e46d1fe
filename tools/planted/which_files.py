"""Slips in which files a batch on Spark reads, and when it has a batch."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

WHICH = "runtime/engines/spark/input/which_files.py"
RUN = "runtime/engines/spark/run.py"
CALLS = "runtime/engines/spark/calls.py"

GROUP = Group(
    "which files",
    (
        "tests/runtime/spark/test_which_files.py",
        "tests/runtime/spark/test_files_that_go.py",
        "tests/runtime/spark/test_calls.py",
        "tests/runtime/state/test_checkpoint.py",
        "tests/runtime/test_setup.py",
    ),
    (
        bug(
            "files that were read are read again",
            RUN,
            "self.setup.unread(everything=self.selection.at_once)",
            "{name: tuple(one.data.found()) for name, one in self.setup.sources.items()}",
            loops=True,
        ),
        bug(
            "a directory that was read before it was said to end has no end",
            RUN,
            "return any(state.progress.inputs.get(of, -INF) < INF for of in self.setup.ended(read))",
            "return False",
        ),
        bug("a batch reads all files", WHICH, "None if self.at_once else", "None if True else"),
        bug("one batch does not read all files", WHICH, "None if self.at_once else", "None if False else"),
        bug(
            "a run over what is there goes on while files come",
            WHICH,
            "        if self.there is None:\n",
            "        if True:\n",
        ),
        bug(
            "a run over what is there ends with the files of one source",
            WHICH,
            "        return any(file.path in there[name] for",
            "        return all(file.path in there[name] for",
        ),
        bug(
            "an intent holds although its files are gone",
            WHICH,
            "        checkpoint.discard_intent()\n",
            "        pass\n",
        ),
        bug(
            "files that are left wait for others",
            RUN,
            "                if due or self._is_left():\n",
            "                if due:\n",
        ),
        bug(
            "files that are there at the start wait for others",
            RUN,
            "due or self.calls.are_waiting() or self._is_left()\n",
            "due or self.calls.are_waiting()\n",
        ),
        bug(
            "calls wait for rows",
            RUN,
            "        if self.calls.add(advances):\n            self.wake_ups.wake()\n",
            "        self.calls.add(advances)\n",
        ),
        bug(
            "a call that waits at the start waits for rows",
            RUN,
            "due = due or self.calls.are_waiting() or",
            "due = due or",
        ),
        bug(
            "a call is taken up by a batch that was planned before it",
            RUN,
            "        if not planned:  # else",
            "        if True:  # else",
        ),
        bug(
            "nobody looks while a query lasts",
            "runtime/engines/spark/engine.py",
            "        if lasts and not held:\n",
            "        if False:\n",
        ),
        bug(
            "the last instant that was called before the end of a stream goes on Spark",
            CALLS,
            "return part.stream, part.attribute, isinstance(part.value, int)",
            "return part.stream, part.attribute, True",
        ),
        bug(
            "a call goes on Spark of which later ones cover a part",
            CALLS,
            "if all(part.value < greatest[_kind(part)] for part in parts)",
            "if any(part.value < greatest[_kind(part)] for part in parts)",
        ),
        bug(
            "calls that later ones cover stay on Spark",
            CALLS,
            "if all(part.value < greatest[_kind(part)] for part in parts)",
            "if False",
        ),
        bug(
            "which version of a file a worker has read is not told",
            "runtime/engines/spark/executor.py",
            '        batch.read_as(summary["stream"], [SourceFile(*file) for file in summary["read"]])\n',
            "",
        ),
        bug(
            "a call that waits after a batch that was skipped",
            RUN,
            " or (skipped and self.calls.are_waiting())\n",
            "\n",
        ),
        bug("a look that fails is lost", RUN, "                due = True\n", "                due = False\n"),
        bug("a wake-up says the same", "runtime/engines/spark/input/wake_ups.py", "uuid.uuid4().hex", '"again"'),
        bug(
            "a file that was written again is not noticed",
            "runtime/engines/setup.py",
            "            self._check_unchanged(name, reversed(directory.changed.values()))\n",
            "            pass\n",
        ),
        bug(
            "a file is told as changed that may be mended",
            "runtime/engines/setup.py",
            "reversed(directory.changed.values())",
            "directory.changed.values()",
        ),
        bug(
            "rows that the checkpoint keeps have an age",
            "runtime/engines/setup.py",
            "if not file.current.path.startswith(inside)]",
            "if True]",
        ),
    ),
)
