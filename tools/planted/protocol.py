"""Slips in the commit protocol and in recovery."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

RUNNER = "runtime/runner.py"

GROUP = Group(
    "protocol",
    (
        "tests/runtime/faults/test_failpoints.py::test_a_run_that_crashes_in_every_batch_and_every_recovery",
        "tests/runtime/state/test_checkpoint.py::test_the_manifest_alone_keeps_writers_apart",
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
            "            if not store.create_exclusive(manifest_path(manifest.seq), encode_manifest(manifest)):\n",
            "            store.create_exclusive(manifest_path(manifest.seq), encode_manifest(manifest))\n            if False:\n",
        ),
        bug(
            "the sweep takes state for leftovers",
            "runtime/state/garbage.py",
            "[path for path in found if path not in kept and not (",
            "[path for path in found if not (",
        ),
        bug(
            "a restart forgets progress",
            RUNNER,
            "            self.progress.load(last.progress)\n",
            "",
        ),
        bug(
            "a restart counts from nothing",
            RUNNER,
            "            self.counts |= last.counts\n",
            "",
        ),
        bug(
            "a failing look at a file is no refusal",
            "runtime/state/segments.py",
            '    with storage_errors(f"reading {file.path}"):\n        try:\n',
            "    if store.where:\n        try:\n",
        ),
    ),
)
