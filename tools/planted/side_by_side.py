"""Slips where several threads take in the files of a batch, and where other things go on beside the steps of one."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

AHEAD = "runtime/engines/embedded/steps/intake_ahead.py"
INTAKE = "runtime/ingest/ingest.py"
EXECUTOR = "runtime/engines/embedded/executor.py"

GROUP = Group(
    "side by side",
    (
        "tests/runtime/test_threads.py",
        "tests/runtime/test_read_ahead.py",
        "tests/runtime/test_intake_ahead.py",
        "tests/runtime/test_written_beside.py",
        "tests/runtime/test_directory.py",
    ),
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
            "runtime/engines/ahead/read_ahead.py",
            "return {file.path: self._begun.pop(file) for file in files if file in self._begun}",
            "return {file.path: self._begun[old] for file in files for old in self._begun if old.path == file.path}",
        ),
        bug(
            "rows stay ahead of an earlier clock",
            AHEAD,
            "(rows.beyond_guard or AHEAD in rows.rejected)",
            "rows.beyond_guard",
        ),
        bug(
            "a bad file is told at the time of the batch before",
            AHEAD,
            "    if rows.unreadable:  # what is told of a file has the time in it\n        return False\n",
            "",
        ),
        bug(
            "rows are taken in by the progress before the batch that runs",
            "runtime/batch/loop.py",
            "intakes = self.admission.intakes(state, batch.intent.clock",
            "intakes = self.admission.intakes(self.state, batch.intent.clock",
        ),
        bug(
            "what was taken in stands for a file that was written again",
            AHEAD,
            "{file for file, _ in self._files} <= set(files)",
            "bool(self._files)",
        ),
        bug(
            "the thread takes all that is left",
            AHEAD,
            "self._end, self._ended = self._next + (self._end - self._next) // 2, True",
            "self._ended = True",
        ),
        bug(
            "what the thread leaves is lost",
            EXECUTOR,
            "return together(intake, [*pushed, rows, *rest])",
            "return together(intake, [*pushed, rows])",
        ),
        bug(
            "what the thread takes is taken again",
            EXECUTOR,
            "paths=tuple(path for path in arrivals.paths if path not in theirs)",
            "paths=arrivals.paths if theirs else ()",
        ),
        bug(
            "progress beyond the guard of the batch before is lost",
            AHEAD,
            "(rows.beyond_guard or AHEAD in rows.rejected)",
            "(AHEAD in rows.rejected)",
        ),
        bug(
            "a look for files of the next batch fails the one that runs",
            "runtime/batch/loop.py",
            "with suppress(TidegateError, OSError, MemoryError, RuntimeError):",
            "with suppress(TidegateError):",
        ),
        bug(
            "rows that were pushed come after those of files",
            EXECUTOR,
            "return together(intake, [*pushed, rows, *rest])",
            "return together(intake, [rows, *rest, *pushed])",
        ),
        bug(
            "of two bad files the later one is named",
            EXECUTOR,
            "                failed = error\n",
            "                raise\n",
        ),
        bug(
            "a file that has changed while its batch read it is known as it was",
            "runtime/connectors/directory.py",
            "            if self.waiting.get(file.path) not in (None, file):\n",
            "            if False:\n",
        ),
        bug(
            "what a look that failed was told is not looked for again",
            "runtime/connectors/directory.py",
            "        except BaseException:\n            self.close()\n",
            "        except BaseException:\n",
        ),
        bug(
            "files that were taken in count as they were offered",
            EXECUTOR,
            "            arrivals.read.update(begun.read)\n",
            "            pass\n",
        ),
        bug(
            "rows with a key are taken in before those that came earlier",
            "runtime/engines/ahead/following.py",
            "is_judged_in_order(stream, options) or options.arrival",
            "options.arrival",
        ),
        bug(
            "the time of arrival is that of the batch before",
            "runtime/engines/ahead/following.py",
            " or options.arrival is not None",
            "",
        ),
        bug(
            "rows are old by the clock of the batch before",
            "runtime/engines/ahead/following.py",
            " or options.age_guard)",
            ")",
        ),
        bug(
            "what is told again is taken in again",
            "runtime/engines/ahead/following.py",
            "            told.add(file)\n",
            "",
        ),
        bug(
            "what operators keep is forgotten where it is written beside",
            "runtime/batch/increments.py",
            "        self.operators |= {name: state.result() for name, state in self._written.items()}\n",
            "",
        ),
        bug(
            "segments that are written beside change places with others",
            "runtime/engines/embedded/steps/pending_segments.py",
            "files = [*(other.result() for other in others), *own]",
            "files = [*own, *(other.result() for other in others)]",
        ),
        bug(
            "a table of numbers by itself has no checksum",
            "runtime/state/store/packs.py",
            "_HEADER.pack(zlib.crc32(body), len(body))",
            "_HEADER.pack(0, len(body))",
        ),
    ),
)
