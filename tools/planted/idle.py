"""Slips in idle sources: who is silent, whom they follow and how far; other tests have none."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

IDLE = "runtime/batch/source_activity.py"
SETUP = "runtime/engines/setup.py"

GROUP = Group(
    "idle",
    (
        "tests/runtime/test_session.py::test_files_that_were_read_wait_no_more",
        "tests/runtime/test_session.py::test_files_that_were_read_are_in_no_batch_before_the_next_look",
        "tests/runtime/test_idle.py",
    ),
    (
        bug("a source with unread files is silent", IDLE, "if s.name not in waiting and is_idle(", "if is_idle("),
        bug(
            "a source is silent although files of it wait",
            "runtime/batch/admission.py",
            "progress.inputs, clock, work.waiting)",
            "progress.inputs, clock)",
        ),
        bug(
            "what a batch reads waits still",
            SETUP,
            "files.has_others(reading.get(name, ()))",
            "files.has_others(())",
        ),
        bug(
            "files that were read wait still",
            SETUP,
            "            self.directories[name].read(some)\n",
            "            pass\n",
        ),
        bug(
            "of many files the first alone waits",
            "runtime/connectors/waiting.py",
            "return len(self) > sum(file in self for file in set(files))",
            "return any(file not in set(files) for file in self.first(1))",
        ),
        bug(
            "silent a tick too soon",
            IDLE,
            "clock - known.clock >= options.idle",
            "clock - known.clock >= options.idle - 1",
        ),
        bug(
            "silent a tick too late", IDLE, "clock - known.clock >= options.idle", "clock - known.clock > options.idle"
        ),
        bug(
            "the idle are less far behind than their delay",
            IDLE,
            "max(given.idle, _delay(given, name, kind))",
            "given.idle",
        ),
        bug("the idle follow each other", IDLE, "                if other.name not in idle\n", ""),
        bug("the idle follow streams that have ended", IDLE, "if value != INF]", "]"),
        bug("the idle follow other timelines", IDLE, "if other.schema[a].type.kind is kind and", "if"),
        bug("a day is over when it begins", IDLE, "(clock - span) // DAY - 1 if", "(clock - span) // DAY if"),
    ),
)
