"""Slips in what is new in a directory, and in what was read of it."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

DIRECTORY = "runtime/connectors/directory.py"
WAITING = "runtime/connectors/waiting.py"
WATCH = "runtime/connectors/watch.py"
CONSUMED = "runtime/state/inputs/consumed.py"

GROUP = Group(
    "directories",
    (
        "tests/runtime/test_directory.py",
        "tests/runtime/test_waiting.py",
        "tests/runtime/state/test_consumed.py",
        "tests/runtime/test_bad_files.py",
    ),
    (
        bug(
            "a folder is watched but not listed",
            DIRECTORY,
            "paths |= dict.fromkeys(self._listed(change.path))",
            "list(self._listed(change.path))",
        ),
        bug(
            "a directory put in the place of another is not noticed",
            DIRECTORY,
            "if _place(self._top) != self._place:",
            "if False:",
        ),
        bug(
            "files below folders that have gone wait still",
            DIRECTORY,
            "self._judge([*unread, *gone])",
            "self._judge(unread)",
        ),
        bug(
            "folders that have gone are remembered",
            DIRECTORY,
            "        self._folders = {folder: self._folders[folder] for folder in there}\n",
            "",
        ),
        bug(
            "folders that are watched are remembered",
            DIRECTORY,
            "        if self._watch is None:  # else the system tells of it\n",
            "        if True:\n",
        ),
        bug(
            "a changed file is told once",
            DIRECTORY,
            "            self.changed[change.current.path] = change\n",
            "            pass\n",
        ),
        bug(
            "files that changed are asked for at each look",
            DIRECTORY,
            "while self.changed and self.changed.keys().isdisjoint(self._judged):",
            "while any(path not in self._judged for path in self.changed):",
        ),
        bug(
            "files that are mended are told as changed",
            DIRECTORY,
            "            count *= 2\n",
            "            break\n",
        ),
        bug(
            "a whole look tells again of what changed",
            DIRECTORY,
            "{path: change for path, change in self.changed.items() if path not in self._untold}",
            "{}",
        ),
        bug(
            "files are taken as they were found, not as they are",
            DIRECTORY,
            "        self._look_at_first(first)\n",
            "",
        ),
        bug("what was read is in order still", WAITING, "return self._by_path.get(file.path) is file", "return True"),
        bug(
            "a file that comes is the last one",
            WAITING,
            "insort(self._order, file, self._start, key=OLDEST_FIRST)",
            "self._order.append(file)",
        ),
        bug(
            "all files are sorted whenever one comes",
            WAITING,
            "if len(new) * _SHARE < len(self._order):",
            "if False:",
        ),
        bug(
            "what was read is passed over in each batch",
            WAITING,
            "while self._start < len(self._order) and",
            "while False and",
        ),
        bug(
            "what a batch reads is read ahead for the next",
            WAITING,
            "(file for file in self if file not in but) if but else iter(self)",
            "iter(self)",
        ),
        bug(
            "a batch reads a directory to its end",
            WAITING,
            "return len(self) > sum(file in self for file in set(files))",
            "return False",
        ),
        bug(
            "a folder's time counts at once",
            DIRECTORY,
            "mtime_ns < now - _UNSETTLED_NS",
            "mtime_ns < now + _UNSETTLED_NS",
        ),
        bug("every look is a whole one", DIRECTORY, "is_due = begun - ended > APART * took", "is_due = True"),
        bug("no look is a whole one again", DIRECTORY, "is_due = begun - ended > APART * took", "is_due = False"),
        bug("all files are looked at again at once", DIRECTORY, "if time.monotonic() >= until:", "if False:"),
        bug("only the first files are looked at again", DIRECTORY, "if not some:", "if True:"),
        bug(
            "waiting files that have gone wait still",
            DIRECTORY,
            "chain(self._walked(), self._known())",
            "chain(self._walked())",
        ),
        bug(
            "a folder that nobody told of is not watched",
            DIRECTORY,
            "                self._watch.add(folder)\n            with",
            "                pass\n            with",
        ),
        bug(
            "a file whose name is no text waits",
            DIRECTORY,
            "            self.unnamed.add(path)\n            del files[path]\n",
            "            self.unnamed.add(path)\n",
        ),
        bug(
            "a file whose name was no text is told of for ever",
            DIRECTORY,
            "        self.unnamed.difference_update(paths)\n",
            "",
        ),
        bug(
            "a name that is no text fails no batch",
            "runtime/engines/setup.py",
            "if directory.unnamed and",
            "if False and",
        ),
        bug("a pipe is read", DIRECTORY, "if stat.S_ISREG(status.st_mode) else None", "if True else None", loops=True),
        bug("links to folders are followed", DIRECTORY, "entry.is_dir(follow_symlinks=False)", "entry.is_dir()"),
        bug(
            "changes beyond the system's memory are lost",
            WATCH,
            "if mask & (_OVERFLOW | _UNMOUNT | _MOVE_SELF):",
            "if mask & (_UNMOUNT | _MOVE_SELF):",
        ),
        bug(
            "a folder that moves keeps its old path",
            WATCH,
            "if mask & (_OVERFLOW | _UNMOUNT | _MOVE_SELF):",
            "if mask & (_OVERFLOW | _UNMOUNT):",
        ),
        bug("network file systems are watched", WATCH, "return kind in _LOCAL", "return True"),
        bug("a watch is never closed", WATCH, "weakref.finalize(self, os.close, descriptor)", "lambda: None"),
        bug(
            "half a hash tells files apart",
            CONSUMED,
            "same = self._second[at[open_]] == second[open_]",
            "same = open_ >= 0",
        ),
        bug("the first of two versions counts", CONSUMED, "last[:-1] = (first[1:]", "last[1:] = (first[1:]"),
        bug(
            "files are forgotten in part", CONSUMED, "            self._recent.pop(path, None)\n", "            pass\n"
        ),
    ),
)
