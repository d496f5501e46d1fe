"""Slips in how files that were read leave their directory."""

from __future__ import annotations

from tools.planted.bugs import Bug, Group, Patch, bug

AWAY = "runtime/state/inputs/put_away.py"
CHECKPOINT = "runtime/state/checkpoint.py"
POSITIONS = "runtime/state/inputs/positions.py"
LEAVING = "runtime/state/inputs/leaving.py"

GROUP = Group(
    "files that leave",
    ("tests/runtime/test_put_away.py",),
    (
        bug(
            "a file leaves in whatever version it is",
            AWAY,
            "    return SourceFile.of(file.path, status) == file\n\n\ndef _removed",
            "    return True\n\n\ndef _removed",
        ),
        bug(
            "a file leaves that was written again while it was archived",
            AWAY,
            "if _version(os.stat(aside, dir_fd=folder, follow_symlinks=False)) != _version(status):",
            "if False:",
        ),
        bug(
            "links leave",
            AWAY,
            "    if not stat.S_ISREG(status.st_mode):\n        _logger",
            "    if False:\n        _logger",
        ),
        bug("links on the way are followed", AWAY, "_FOLDER | os.O_NOFOLLOW, dir_fd", "_FOLDER, dir_fd"),
        bug(
            "a file that a crash left in both places is archived twice",
            AWAY,
            "        return _is_same(folder, name, status, archive, aim, there)\n",
            "        return False\n",
        ),
        bug(
            "a file is compared with itself",
            AWAY,
            "(there.st_dev, there.st_ino) == (status.st_dev, status.st_ino)",
            "False",
        ),
        bug(
            "a file that can not be seen has left",
            AWAY,
            "        return file in known or (rule.archive is not None and _is_archived(rule.archive, folders, file))",
            "        return True",
        ),
        bug(
            "what has left stays known where another file has its name",
            AWAY,
            "                    elif has_left(file):",
            "                    elif False:",
        ),
        bug(
            "what has left stays known where nothing is put away any more",
            CHECKPOINT,
            "if self._putting_away or left:",
            "if self._putting_away:",
        ),
        bug(
            "tables of the log keep what has left where nothing is put away any more",
            POSITIONS,
            "for source in (*sources, *left)}",
            "for source in sources}",
        ),
        bug(
            "times of files are as they are",
            POSITIONS,
            "max(INT64_MIN, min(status.st_mtime_ns, INT64_MAX))",
            "status.st_mtime_ns",
        ),
        bug("numbers in the archive are tried one by one", AWAY, "max(1, 2 * used)", "used + 1"),
        bug(
            "numbers in the archive are left free",
            AWAY,
            "    while free != used + 1:\n",
            "    while not free:\n",
        ),
        bug(
            "the name of a copy has that of the file in it",
            AWAY,
            'f"{_HIDDEN}{_digest(_name(file), file.size, file.mtime_ns)}"',
            'f"{_HIDDEN}{_name(file)}-{file.size}-{file.mtime_ns}"',
        ),
        bug(
            "a number makes a name too long",
            AWAY,
            'if len(os.fsencode(f"{stem}.{number}{ending}")) <= _MOST_OF_A_NAME:',
            "if True:",
        ),
        bug("what fails is never tried again", LEAVING, "        for file in failed:\n", "        for file in ():\n"),
        bug(
            "what fails is in the way of all others",
            LEAVING,
            "heapq.heappush(self._again, (self._turn + min(2**failures, _MOST_TURNS), file))",
            "self._waiting.appendleft(file)",
        ),
        bug("what fails is tried in each batch", LEAVING, "min(2**failures, _MOST_TURNS)", "1"),
        bug(
            "each failure of a file is told",
            LEAVING,
            "first = [file for file in failed if file not in self._failures]",
            "first = [*failed]",
        ),
        bug(
            "every failure of a folder is tried",
            AWAY,
            "min(len(done.failed) + _FAILURES, _MOST_FAILURES)",
            "_MOST_FAILURES",
        ),
        bug(
            "every folder that fails is tried",
            AWAY,
            "min(len(done.failed) + _FAILURES, _MOST_FAILURES)",
            "len(done.failed) + _FAILURES",
        ),
        bug(
            "what was not tried is in the way of all others",
            LEAVING,
            "self._waiting.extend(file for file in untried if file not in self._failures)",
            "self._waiting.extendleft(file for file in untried if file not in self._failures)",
        ),
        bug("all that failed is tried at once", LEAVING, " and len(files) < most:", ":"),
        bug(
            "the files of an old run move at once", LEAVING, "range(min(most, len(self._waiting)))", "[*self._waiting]"
        ),
        bug("the files of a batch wait for those of an old run", LEAVING, "most = AT_ONCE + new", "most = AT_ONCE"),
        bug(
            "what is archived is removed before the archive is durable",
            AWAY,
            "                sync_opened(archive)\n",
            "                pass\n",
        ),
        bug(
            "another file that was taken aside stays there",
            AWAY,
            "            _put_back(folder, file)\n            return False\n",
            "            return False\n",
        ),
        bug(
            "a start leaves another file aside",
            AWAY,
            "                        _put_back(folder, file)\n",
            "                        pass\n",
        ),
        bug(
            "what was taken aside is looked for where nothing has its name",
            AWAY,
            "        with suppress(FileNotFoundError):\n            return aside, os",
            "        with suppress(FileNotFoundError):\n            raise FileNotFoundError\n            return aside, os",
        ),
        bug(
            "what was taken aside is not looked for",
            AWAY,
            "    except FileNotFoundError:\n        return aside, os.stat(aside, dir_fd=folder, follow_symlinks=False)\n",
            "    except FileNotFoundError:\n        raise\n",
        ),
        bug(
            "what is put back takes the place of what came",
            AWAY,
            "            os.link(name, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)\n",
            "            os.rename(name, target, src_dir_fd=folder, dst_dir_fd=folder)\n            return\n",
        ),
        bug(
            "what is put back takes the place of what lies there",
            AWAY,
            "_renamed_where_free(folder, aside, name)",
            "os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)",
        ),
        bug(
            "what is taken aside takes the place of what lies there",
            AWAY,
            "_renamed_where_free(folder, name, aside)",
            "os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)",
        ),
        bug(
            "what is taken aside without a look takes the place of what lies there",
            AWAY,
            "        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name, None, target)\n",
            "        pass\n",
        ),
        bug(
            "what is taken aside loses its name after it has the other",
            AWAY,
            "if name.startswith(_HIDDEN):",
            "if True:",
        ),
        bug(
            "only what its last batch read is known of a run to have left",
            CHECKPOINT,
            "                    gone[source] = tuple(away.gone)\n",
            "                    gone[source] = tuple(file for file in away.gone if file in read.get(source, ()))\n",
        ),
        bug("what has left is known of one source", CHECKPOINT, "encode_away({**left, **gone})", "encode_away(gone)"),
        bug(
            "what is known to have left comes behind what can not leave",
            POSITIONS,
            "LeavingFiles(sorted(files, key=lambda file: file not in known))",
            "LeavingFiles(files)",
        ),
        bug(
            "a record that the machine died with is damaged",
            CHECKPOINT,
            'decode_away(data, seq) if data.strip(b"\\0") else {}',
            "decode_away(data, seq) if data else {}",
        ),
        bug("removals are not durable", AWAY, "            sync_opened(folder)\n", "            pass\n"),
        bug(
            "a copy that fails stays in the archive",
            AWAY,
            "                    os.unlink(copy, dir_fd=archive)  # on",
            "                    pass  # on",
        ),
        bug(
            "memory that is refused is no failure",
            AWAY,
            "        except (OSError, MemoryError) as error:\n",
            "        except OSError as error:\n",
        ),
        bug("copies lose their time", AWAY, "os.utime(writing, ns=(status.st_atime_ns, status.st_mtime_ns))", "pass"),
        bug(
            "what a crash left is not put away",
            CHECKPOINT,
            "            self._put_away(seq, {}, left)\n",
            "            pass\n",
        ),
        bug(
            "a restart does not know what has left",
            CHECKPOINT,
            "self.store.failpoints, known)",
            "self.store.failpoints, ())",
        ),
        Bug(
            "files leave without their batch",
            (
                Patch(
                    CHECKPOINT,
                    '        store.failpoints.hit("commit-before-manifest")\n',
                    "        self._log.accept(batch.intent.offer, manifest.positions)\n"
                    "        self._put_away(manifest.seq, batch.intent.offer.files, {})\n"
                    '        store.failpoints.hit("commit-before-manifest")\n',
                ),
                Patch(
                    CHECKPOINT,
                    "        self._log.accept(read, manifest.positions)\n        self.manifest,",
                    "        self.manifest,",
                ),
            ),
        ),
        bug(
            "the log never forgets",
            POSITIONS,
            "if (kept := tuple(file for file in files if (source, file) not in self._gone))",
            "if (kept := files)",
        ),
        bug(
            "tables of the log never forget",
            POSITIONS,
            "        if self._gone.isdisjoint(self._logged):",
            "        if True:",
        ),
        bug(
            "a name that was read is never free",
            POSITIONS,
            "            self._of(source).discard(file.path for file in files)\n",
            "            pass\n",
        ),
        bug(
            "an archive inside the directory",
            "runtime/connectors/read_files.py",
            "return os.path.commonpath(places) in places",
            "return len(places) == 1",
        ),
    ),
)
