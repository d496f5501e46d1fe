"""Slips where several threads take in the files of a batch, and where the next ones are read meanwhile."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

INTAKE = "runtime/ingest/ingest.py"
EXECUTOR = "runtime/engines/embedded/executor.py"

GROUP = Group(
    "side by side",
    ("tests/runtime/test_threads.py", "tests/runtime/test_read_ahead.py"),
    (
        bug(
            "rows of the first share count",
            INTAKE,
            "        self.accepted += other.accepted\n",
            "        self.accepted = self.accepted or other.accepted\n",
        ),
        bug(
            "rejected rows of other shares are not set aside",
            INTAKE,
            "        self.quarantine.extend(other.quarantine)\n",
            "",
        ),
        bug(
            "the least of the greatest instants counts",
            INTAKE,
            "own[attribute] = max(value, own.get(attribute, value))",
            "own[attribute] = min(value, own.get(attribute, value))",
        ),
        bug(
            "what the first share stores is all",
            INTAKE,
            "done.stored[buffer.id] = _as_one(buffer, stored)",
            "done.stored[buffer.id] = stored[0]",
        ),
        bug(
            "rows with a key are compared with those of their share",
            EXECUTOR,
            "shares(arrivals, self.threads) if not is_judged_in_order(intake.stream, options) else ()",
            "shares(arrivals, self.threads)",
        ),
        bug(
            "a share begins with the file before",
            "runtime/ingest/inputs.py",
            "zip(paths, part, strict=True) if i == number",
            "zip(paths, part, strict=True) if i in (number, number - 1)",
        ),
        bug(
            "a file counts as read in the version that was offered",
            "runtime/state/batch.py",
            "return self.intent.offer.as_read(self._read)",
            "return self.intent.offer",
        ),
        bug(
            "how large a file is says that it has gone",
            "runtime/ingest/inputs.py",
            "    try:\n        return os.path.getsize(path)\n    except OSError:\n        return 0\n",
            "    return os.path.getsize(path)\n",
        ),
        bug(
            "files of this batch are read ahead",
            "runtime/engines/embedded/file_polling.py",
            "files.first(self._per_batch(name), set(before.get(name, ())))",
            "files.first(self._per_batch(name))",
        ),
        bug(
            "what was read ahead stands for a file that was written again",
            "runtime/engines/read_ahead.py",
            "return {file.path: self._begun.pop(file) for file in files if file in self._begun}",
            "return {file.path: self._begun[old] for file in files for old in self._begun if old.path == file.path}",
        ),
    ),
)
