"""Slips in what is said, and what counts, when memory is refused."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

ERRORS = "runtime/state/errors.py"
SEGMENTS = "runtime/state/segments.py"

GROUP = Group(
    "memory",
    ("tests/runtime/faults/test_memory.py", "tests/runtime/faults/test_memory_in_operators.py"),
    (
        bug(
            "memory is said as damage",
            SEGMENTS,
            "            if not is_out_of_memory(error):\n",
            "            if True:\n",
        ),
        bug(
            "damage is said as memory",
            SEGMENTS,
            "if file is not None and store.checksum(path) != file.checksum:",
            "if False:",
        ),
        bug("memory is said as a failing disk", ERRORS, "        if is_out_of_memory(error) or not", "        if not"),
        bug(
            "a warning that shows a row about memory is of memory", ERRORS, "TidegateError | Warning)", "TidegateError)"
        ),
        bug("what Arrow says of memory is not known", ERRORS, 'r"bad_alloc|', 'r"'),
        bug(
            "a step does not say that memory was refused",
            "runtime/batch/loop.py",
            "if error is not None and is_out_of_memory(error):",
            "if False:",
        ),
        bug(
            "results that do not fit fail as the library that reads them does",
            "runtime/engines/reading_results.py",
            '    with memory_errors(f"reading results of {stream}"):\n',
            "    if True:\n",
        ),
        bug(
            "memory makes a file a bad one",
            "runtime/ingest/inputs.py",
            '        with memory_errors(f"reading {path} as {format_}"):\n',
            "        if True:\n",
        ),
        bug(
            "memory makes rows those of a bad file",
            "runtime/ingest/ingest.py",
            "        if is_out_of_memory(error):\n            raise\n",
            "",
        ),
        bug(
            "what was pushed has another digest without memory",
            "runtime/engines/embedded/digests.py",
            "        if isinstance(error, pa.ArrowException) and is_out_of_memory(error):\n            raise\n",
            "",
        ),
        bug(
            "a look at directories does not say that memory was refused",
            "runtime/engines/setup.py",
            '        with memory_errors("looking for files"):\n',
            "        if True:\n",
        ),
        bug(
            "what surrounds a batch does not say that memory was refused",
            "runtime/engines/embedded/batches.py",
            '            with memory_errors("a batch was run"):\n',
            "            if True:\n",
        ),
        bug(
            "a notice without memory fails a batch",
            "runtime/engines/notices.py",
            " or is_out_of_memory(error)):",
            "):",
        ),
        bug(
            "opening does not say that memory was refused",
            "runtime/state/checkpoint.py",
            '            with memory_errors(f"opening {store.where}"):\n',
            "            if True:\n",
        ),
        bug(
            "memory that a user's operator is refused is its mistake",
            "runtime/ordered/process/checks.py",
            "        if is_out_of_memory(error):\n            raise\n",
            "",
        ),
        bug(
            "a batch that failed before its commit has what was given",
            "runtime/engines/embedded/batches.py",
            "(last := setup.checkpoint.manifest) is not None and last.seq == batch.seq",
            "setup.checkpoint.manifest is not None",
        ),
        bug(
            "tasks do not say that what they share does not fit",
            "runtime/engines/spark/tasks/running.py",
            "    with reporting() as failed:\n        shared = shared_of(works)\n",
            "    shared = shared_of(works)\n    with reporting() as failed:\n",
        ),
    ),
)
