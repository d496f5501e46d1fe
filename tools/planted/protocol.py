"""Slips in the commit protocol and in recovery."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

RUN_STATE = "runtime/batch/state.py"

PACKS = Group(
    "packs",
    (
        "tests/runtime/state/test_packs.py",
        "tests/runtime/state/test_sync_threads.py",
        "tests/runtime/state/test_crashes.py::test_all_is_durable_before_it_counts",
        "tests/runtime/state/test_crashes.py::test_crash_then_reopen",
        "tests/runtime/faults/test_failpoints.py::test_a_run_that_crashes_in_every_batch_and_every_recovery",
    ),
    (
        bug(
            "a pack is taken for garbage while a part of it is needed",
            "runtime/state/store/packs.py",
            '    return path.partition("@")[0] if path.startswith(AREA) else path\n',
            "    return path\n",
        ),
        bug(
            "every batch starts threads that sync",
            "runtime/state/store/sync_threads.py",
            "            wait(others)\n",
            "            wait(others)\n            self.end()\n",
        ),
        bug(
            "a forked process waits for threads of its parent",
            "runtime/state/store/sync_threads.py",
            "if self._pool is None or self._process != os.getpid():",
            "if self._pool is None:",
        ),
        bug(
            "a failed sync beside others is forgotten",
            "runtime/state/store/sync_threads.py",
            "            other.result()\n",
            "            other.exception()\n",
        ),
        bug(
            "threads that sync outlast their writer",
            "runtime/state/store/local.py",
            "        self._syncs.end()\n        self._file.close()\n",
            "        self._file.close()\n",
        ),
        bug(
            "a pack is written after what names it",
            "runtime/state/batch.py",
            "        gathered = self._gathered()\n        self._write_pack()\n",
            "        self._write_pack()\n        gathered = self._gathered()\n",
        ),
        bug(
            "results that waited are lost when they become a file",
            "runtime/state/batch.py",
            "concatenated([*self._read_waiting(waiting), new]).combine_chunks(), ()\n",
            "new, ()\n",
        ),
        bug(
            "results that wait are read again by who wrote them",
            "runtime/state/batch.py",
            "known = self._waiting.get(output.file.path)",
            "known = None",
        ),
        bug(
            "results that wait stay in memory when they wait no more",
            "runtime/state/checkpoint.py",
            "for path, table in self._waiting.items() if path in now.state}",
            "for path, table in self._waiting.items()}",
        ),
        bug(
            "small results keep in memory what they are a part of",
            "runtime/state/batch.py",
            "if new.get_total_buffer_size() <= LARGEST_PART:",
            "if True:",
        ),
        bug(
            "results that became a file wait as well",
            "runtime/state/batch.py",
            "                gathered.pop(query, None)\n",
            "",
        ),
        bug(
            "a batch that is evaluated anew keeps what it packed",
            "runtime/state/batch.py",
            "        self._gathering.clear()\n",
            "",
        ),
        bug(
            "staged results are not durable before the commit",
            "runtime/state/checkpoint.py",
            "after=batch.hasty",
            "after=()",
        ),
        bug(
            "a pack is not durable before the commit",
            "runtime/state/batch.py",
            "        self.hasty.append(self._pack.path)\n",
            "",
        ),
        bug(
            "the directory of a pack is not durable before the commit",
            "runtime/state/store/local.py",
            "[temporary, *awaited], [each.parent for each in awaited]",
            "[temporary, *awaited], []",
        ),
        bug(
            "a part is read without its checksum",
            "runtime/state/store/packs.py",
            "    if length != len(body) or zlib.crc32(body) != checksum:\n",
            "    if length != len(body):\n",
        ),
        bug(
            "a record that was lost is damage",
            "runtime/state/intent.py",
            'data.strip(b"\\0") else',
            "data else",
        ),
    ),
)

GROUP = Group(
    "protocol",
    (
        "tests/runtime/faults/test_failpoints.py::test_a_run_that_crashes_in_every_batch_and_every_recovery",
        "tests/runtime/state/test_checkpoint.py::test_the_manifest_alone_keeps_writers_apart",
        "tests/runtime/state/test_checkpoint.py::test_without_locks_no_file_of_the_next_batch_is_swept",
        "tests/runtime/state/test_checkpoint.py::test_without_locks_leftovers_of_committed_batches_are_swept",
        "tests/runtime/faults/test_storage.py::test_a_disk_that_fails",
    ),
    (
        bug(
            "a recovery does not publish",
            "runtime/state/checkpoint.py",
            "            if not store.exists(marker_path(manifest.seq)):\n",
            "            if False:\n",
        ),
        bug(
            "results are out before the commit",
            "runtime/state/checkpoint.py",
            '        store.failpoints.hit("commit-before-manifest")\n',
            '        self._publish(manifest)\n        store.failpoints.hit("commit-before-manifest")\n',
        ),
        bug(
            "two writers commit one batch",
            "runtime/state/checkpoint.py",
            "            if not store.create_exclusive(manifest_path(manifest.seq), content, after=batch.hasty):\n",
            "            store.create_exclusive(manifest_path(manifest.seq), content, after=batch.hasty)\n            if False:\n",
        ),
        bug(
            "without locks files of the next batch are swept",
            "runtime/state/checkpoint.py",
            "running=not self._lock.guaranteed)",
            "running=False)",
        ),
        bug(
            "without locks leftovers stay until the next start",
            "runtime/state/checkpoint.py",
            "        if self._retained[-1].seq % _SWEEP_EVERY == 0:\n",
            "        if self._lock.guaranteed and self._retained[-1].seq % _SWEEP_EVERY == 0:\n",
        ),
        bug(
            "without locks leftovers stay at a start",
            "runtime/state/checkpoint.py",
            "            self.swept = delete_leftovers(",
            "            self.swept = self._lock.guaranteed and delete_leftovers(",
        ),
        bug(
            "the sweep takes state for leftovers",
            "runtime/state/leftovers.py",
            "[path for path in paths if path not in kept and not (",
            "[path for path in paths if not (",
        ),
        bug(
            "a restart forgets progress",
            RUN_STATE,
            "        progress.load(last.progress)\n",
            "",
        ),
        bug(
            "a restart counts from nothing",
            RUN_STATE,
            "{**start.counts, **last.counts}",
            "start.counts",
        ),
        bug(
            "a failing look at a file is no refusal",
            "runtime/state/segments.py",
            '    with storage_errors(f"reading {file.path}"):\n        try:\n',
            "    if store.where:\n        try:\n",
        ),
    ),
)
