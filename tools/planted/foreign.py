"""Slips by which somebody else's files are deleted, written over or followed to."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

LOCAL = "runtime/state/store/local.py"
OWN = "runtime/state/store/own_files.py"

GROUP = Group(
    "foreign",
    ("tests/runtime/state/test_foreign.py", "tests/runtime/state/test_store.py"),
    (
        bug("every file is listed", LOCAL, "if regular and is_own(path))", "if regular)"),
        bug("every file can be deleted", LOCAL, "self._place(check_own(path))", "self._place(path)"),
        bug(
            "any name in a state directory is ours",
            OWN,
            'rf"{_SLUG}/\\d{{10,}}-[A-Za-z0-9_]{{1,40}}-[0-9a-f]{{32}}\\.parquet"',
            'r".+"',
        ),
        bug("any name that begins as ours does", OWN, "form.fullmatch(rest)", "form.match(rest)"),
        bug("any temporary file is ours", OWN, '"tmp": r"tidegate-[0-9a-f]{32}"', '"tmp": r".+"'),
        bug(
            "links to directories are followed",
            LOCAL,
            "            if stat.S_ISLNK(status.st_mode):\n",
            "            if stat.S_ISLNK(status.st_mode) and not os.path.isdir(place):\n",
        ),
        bug(
            "links to files are followed",
            LOCAL,
            "            if stat.S_ISLNK(status.st_mode):\n",
            "            if stat.S_ISLNK(status.st_mode) and os.path.isdir(place):\n",
        ),
        bug("links are listed", LOCAL, "            if entry.is_symlink():\n", "            if False:\n"),
        bug("any lock is ours", LOCAL, "        if not _is_note(descriptor):\n", "        if False:\n"),
        bug("a long text can be a note", LOCAL, "len(note) <= _NOTE_BYTES and (", "("),
        bug(
            "a link in the place of a result",
            LOCAL,
            "        if final.is_symlink():\n",
            "        if False:\n",
        ),
        bug(
            "a copy takes the place of a result",
            LOCAL,
            "        os.link(copy, final)\n",
            "        os.rename(copy, final)\n",
        ),
        bug(
            "a copy that is renamed takes the place of a result",
            LOCAL,
            "renamed(copy, final, NO_REPLACE)",
            "renamed(copy, final, 0)",
        ),
        bug(
            "a copy takes the place of a result where nothing else can be done",
            LOCAL,
            "is_free = not os.path.lexists(final)",
            "is_free = True",
        ),
        bug(
            "two writers make one copy",
            LOCAL,
            'final.with_name(f".{final.name}.{uuid.uuid4().hex}.tmp")',
            'final.with_name(f".{final.name}.tmp")',
        ),
        bug(
            "a copy that is being made is swept",
            LOCAL,
            "                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
            "",
        ),
        bug(
            "copies that a crash left stay",
            LOCAL,
            "        self._sweep_copies(final.parent)\n",
            "",
        ),
        bug(
            "a copy to be swept is open for reading alone",
            LOCAL,
            '_reader(Path(entry.path), "r+b")',
            "_reader(Path(entry.path))",
        ),
        bug(
            "a copy that fails stays",
            LOCAL,
            "        except (OSError, MemoryError, StateError):\n            copy.unlink(missing_ok=True)\n",
            "        except (OSError, MemoryError, StateError):\n            pass\n",
        ),
        bug(
            "somebody else's tmp is no matter",
            "runtime/state/meta.py",
            "sorted(names) or [path for area in _FIRST for path in store.foreign_files(area)]",
            "sorted(names)",
        ),
    ),
)
