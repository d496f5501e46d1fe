"""A store in a directory of a local or shared POSIX file system."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import stat
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

from tidegate.runtime.state.errors import FOREIGN, LOCATION, OUTPUT, STORAGE, WRITER, StateError, linked
from tidegate.runtime.state.failpoints import Failpoints
from tidegate.runtime.state.shard_layout import Shard, ShardLayout
from tidegate.runtime.state.store.interface import FileRef, Lock
from tidegate.runtime.state.store.own_files import TOP, check_own, is_copy, is_own
from tidegate.runtime.state.store.packs import Part, part_of, table_of
from tidegate.runtime.state.store.paths import check_relative, local_directory
from tidegate.runtime.state.store.renaming import NO_REPLACE, renamed
from tidegate.runtime.state.store.sync_threads import SyncThreads

_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)
_CHUNK = 1 << 20
_LARGE = 1 << 24
_NOTE_BYTES = 400  # a host's name has at most 255
_OTHER_RUN = "stop that run first; `tidegate state` reads a checkpoint while it runs"
_OWN_RUN = (
    "that is this process itself, which may have opened it in an earlier cell of a notebook: close() that session, or "
    "stop() that query, first"
)


def _this_process() -> str:
    """How a lock names its owner."""
    return f"process {os.getpid()} on {socket.gethostname()}"


class LocalStore:
    """`Store` under the directory `root`, which is made when something is written.

    With `sync=False` nothing is forced to the disk: a run then survives the death of its process, not of its machine.
    The root may be a link, since the user chose it. Below it every operation looks at each step of its path first.
    """

    def __init__(self, root: str | os.PathLike[str], *, sync: bool = True) -> None:
        self.failpoints = Failpoints()
        self.packs = True
        self._root = Path(local_directory(root))
        self._sync = sync
        self._directories: set[Path] = set()
        self._syncs = SyncThreads()
        self._swept: set[Path] = set()

    @property
    def where(self) -> str:
        return str(self._root)

    def __fspath__(self) -> str:
        return self.where

    def read_bytes(self, path: str) -> bytes:
        with _reader(self._path(path)) as file:
            return file.read()

    def write_bytes(self, path: str, data: bytes | memoryview, *, hasty: bool = False) -> FileRef:
        target = self._new(path)
        with target.open("xb") as file:
            file.write(data)
            self._finish(file, hasty=hasty)
        if not hasty:
            self._sync_directory(target.parent)
        return FileRef(path, len(data), _spell(zlib.crc32(data)))

    def create_exclusive(self, path: str, data: bytes, *, hasty: bool = False, after: Sequence[str] = ()) -> bool:
        target = self._new(path)
        temporary = self._new(f"tmp/tidegate-{uuid.uuid4().hex}")
        awaited = [self._path(each) for each in after]
        try:
            with temporary.open("xb") as file:
                file.write(data)
                self.failpoints.hit("store-file-written")
            if not hasty:
                self._sync_files([temporary, *awaited], [each.parent for each in awaited])
            self.failpoints.hit("store-file-synced")
            created = self._link(temporary, target)
        except (OSError, MemoryError):
            temporary.unlink(missing_ok=True)
            raise
        if created:
            self.failpoints.hit("store-exclusive-linked")
            if not hasty:
                self._sync_directory(target.parent)
        temporary.unlink(missing_ok=True)
        return created

    def note(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(self._new(path), flags, 0o666))

    def write_table(self, path: str, table: Any, *, hasty: bool = False, layout: ShardLayout | None = None) -> FileRef:
        import pyarrow as pa
        import pyarrow.parquet as pq

        target = self._new(path)
        # zstd costs twice the time of plain pages: results stay and are worth it, state is soon replaced
        is_result = path.startswith("staging/")
        compression = "zstd" if table.nbytes > (_CHUNK if is_result else _LARGE) else "none"
        # Of numbers and instants that are near each other, differences take a fourth more than zstd in half of its
        # time.
        t, packed = pa.types, is_result and compression != "none"
        near = [f.name for f in table.schema if packed and (t.is_int64(f.type) or t.is_timestamp(f.type))]
        with target.open("xb") as file:
            checked = _ChecksumFile(file)
            # of numbers, looking for repeated values costs twice the time of writing, and zstd finds them too
            texts = [
                field.name
                for field in table.schema
                if pa.types.is_large_string(field.type) or pa.types.is_string(field.type)
            ]
            with pq.ParquetWriter(
                checked,
                table.schema,
                compression={name: "none" if name in near else compression for name in table.column_names},
                column_encoding=dict.fromkeys(near, "DELTA_BINARY_PACKED") or None,
                use_dictionary=texts,
                write_page_checksum=True,
                # nobody asks for them, and of many row groups they are half of what a reader of one has to take in
                write_statistics=layout is None,
            ) as writer:
                if layout is None:
                    writer.write_table(table)
                else:
                    for piece in layout.pieces(table):
                        writer.write_table(piece, row_group_size=piece.num_rows)
                    writer.add_key_value_metadata(layout.to_metadata())
            self._finish(file, hasty=hasty)
        if not hasty:
            self._sync_directory(target.parent)
        return FileRef(path, checked.size, _spell(checked.crc))

    def read_table(self, path: str, columns: Sequence[str] | None = None) -> Any:
        import pyarrow.parquet as pq

        part = part_of(path)
        if part is not None:
            table = table_of(self._bytes_of(part))
            return table if columns is None else table.select(list(columns))
        with pq.ParquetFile(self._path(path), page_checksum_verification=True) as file:
            if columns is None:
                return file.read()
            # names with dots also match nested fields, hence the second selection
            return file.read(columns=list(columns)).select(list(columns))

    def read_shard(self, path: str, shard: Shard) -> tuple[Any, int]:
        import pyarrow.parquet as pq

        if part_of(path) is not None:
            table = self.read_table(path)  # parts are small
            return table, table.num_rows
        with pq.ParquetFile(self._path(path), page_checksum_verification=True) as file:
            layout = ShardLayout.of_file(file.metadata)
            table = file.read() if layout is None else layout.read(file, shard)
            return table, file.metadata.num_rows

    def read_pieces(self, path: str, rows: int) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if part_of(path) is not None:
            yield self.read_table(path)  # parts are small
            return
        with pq.ParquetFile(self._path(path), page_checksum_verification=True) as file:
            for batch in file.iter_batches(batch_size=rows):
                yield pa.Table.from_batches([batch])

    def list_files(self, prefix: str) -> list[str]:
        if prefix:
            self._path(prefix)
        return sorted(path for path, regular in self._below(prefix) if regular and is_own(path))

    def foreign_files(self, prefix: str) -> list[str]:
        if not self._path(prefix).is_dir():
            return [prefix] if os.path.lexists(self._root / prefix) and not is_own(prefix) else []
        return sorted(path for path, regular in self._below(prefix) if not (regular and is_own(path)))

    def delete_all(self, prefix: str) -> None:
        """Remove the checkpoint's own files below a directory, and the directories that are empty then."""
        for path in self.list_files(prefix):
            self.delete(path)
        for directory, _, _ in os.walk(self._path(prefix), topdown=False):
            with suppress(OSError):  # somebody else's files keep a directory
                os.rmdir(directory)

    def _below(self, prefix: str) -> Iterator[tuple[str, bool]]:
        """What is below a directory, and whether it is a regular file; `StateError` TG511 for a link."""
        try:
            with os.scandir(self._root / prefix) as listing:
                entries = list(listing)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if not prefix and path not in TOP:
                continue
            if entry.is_symlink():
                raise linked(self.where, path)
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(path)
            else:
                yield path, entry.is_file(follow_symlinks=False)

    def names(self) -> list[str]:
        try:
            return sorted(entry.name for entry in self._root.iterdir())
        except FileNotFoundError:
            return []
        except NotADirectoryError:
            raise StateError(
                LOCATION, f"{self._root} is not a directory", hint="give the name of a directory"
            ) from None

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._place(check_own(path)))

    def exists(self, path: str) -> bool:
        return self._path(path).exists()

    def size(self, path: str) -> int:
        part = part_of(path)
        if part is None:
            return os.stat(self._place(path)).st_size
        return max(0, min(part.length, self._path(part.pack).stat().st_size - part.offset))

    def checksum(self, path: str) -> str:
        part = part_of(path)
        return _checksum(self._path(path)) if part is None else _spell(zlib.crc32(self._bytes_of(part)))

    def _bytes_of(self, part: Part) -> bytes:
        with _reader(self._path(part.pack)) as file:
            file.seek(part.offset)
            return file.read(part.length)

    def sync(self, path: str) -> None:
        target = self._path(path)
        if self._sync:
            with _reader(target) as file:
                os.fsync(file.fileno())
        self._sync_directory(target.parent)

    def settled(self, path: str) -> FileRef:
        """A file that another process wrote, made durable, with the directories that lead to it."""
        self.sync(path)
        for directory in self._path(path).parents:
            self._sync_directory(directory)
            if directory == self._root:
                break
        return FileRef(path, self.size(path), self.checksum(path))

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        pairs = [(self._path(path), self._target(target)) for path, target in moves]
        for source, final in pairs:
            self._appear(source, final)
        self._sync_files((), [final.parent for _, final in pairs])
        for source, _ in pairs:
            source.unlink(missing_ok=True)

    def _appear(self, source: Path, final: Path) -> None:
        self._make_directory(final.parent)
        try:
            os.link(source, final)
        except FileExistsError:
            self._check_same(source, final)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            self._publish_copy(source, final)
        self.failpoints.hit("store-publish-linked")

    def _publish_copy(self, source: Path, final: Path) -> None:
        """Copies a result into another file system. It appears whole, and never in the place of another file."""
        self._sweep_copies(final.parent)
        if os.path.lexists(final):
            self._check_same(source, final)
            return
        # hidden from readers of the directory, and nobody else's: whoever writes the same result makes a copy, too
        copy = final.with_name(f".{final.name}.{uuid.uuid4().hex}.tmp")
        try:
            with _reader(source) as reader, copy.open("xb") as writer:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(writer, fcntl.LOCK_EX)
                shutil.copyfileobj(reader, writer, _CHUNK)
                self._finish(writer)
                self.failpoints.hit("store-publish-copied")
                if not _take_name(copy, final):
                    self._check_same(source, final)
        except (OSError, MemoryError, StateError):
            copy.unlink(missing_ok=True)
            raise
        copy.unlink(missing_ok=True)

    def _sweep_copies(self, directory: Path) -> None:
        """Removes copies that a writer left there as it died; those of living ones are locked. A store does it once."""
        if directory in self._swept:
            return
        with os.scandir(directory) as entries:
            for entry in entries:
                if is_copy(entry.name) and entry.is_file(follow_symlinks=False):
                    # Network file systems lock only what is open for writing.
                    with suppress(OSError), _reader(Path(entry.path), "r+b") as file:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        os.unlink(entry.path)
        self._swept.add(directory)

    def target_size(self, target: str) -> int | None:
        try:
            return self._target(target).stat().st_size
        except FileNotFoundError:
            return None

    def target_names(self, directory: str) -> list[str]:
        try:
            return os.listdir(local_directory(directory))
        except FileNotFoundError:
            return []

    def local_path(self, path: str) -> str | None:
        return str(self._path(path))

    def lock(self) -> Lock:
        return _FileLock(self._new("lock"), self._syncs)

    def _path(self, path: str) -> Path:
        return Path(self._place(path))

    def _place(self, path: str) -> str:
        """Where a file lies; `StateError` TG511 if it is a link, or a directory on the way from the root is one."""
        place = root = str(self._root)
        for part in check_relative(path).split("/"):
            place = f"{place}/{part}"
            try:
                status = os.lstat(place)
            except (FileNotFoundError, NotADirectoryError):
                break
            if stat.S_ISLNK(status.st_mode):
                raise linked(self.where, os.path.relpath(place, self._root))
        return f"{root}/{path}"

    def _target(self, target: str) -> Path:
        """Where an output goes; the directory outside may be a link, a file of ours in it may not."""
        if not target.startswith("/"):
            return self._path(target)
        final = Path(local_directory(target))
        if final.is_symlink():
            raise linked(str(final.parent), final.name)
        return final

    def _new(self, path: str) -> Path:
        target = self._path(path)
        self._make_directory(target.parent)
        return target

    def _make_directory(self, directory: Path) -> None:
        """The directory and those that lead to it. Who made one that is there may have died before it counted."""
        if directory in self._directories:
            return
        if not directory.is_dir():
            self._make_directory(directory.parent)
            try:
                directory.mkdir(exist_ok=True)  # several workers may come to write their first file at once
            except FileExistsError:
                raise StateError(
                    LOCATION, f"{directory} is not a directory", hint="give the name of a directory"
                ) from None
            except FileNotFoundError:  # although what leads to it is there
                raise StateError(
                    LOCATION,
                    f"{directory} can not be made: its file system takes no directories",
                    hint="give a directory on another file system",
                ) from None
        self._sync_directory(directory.parent)
        self._directories.add(directory)

    def _finish(self, file: BinaryIO, *, hasty: bool = False) -> None:
        self.failpoints.hit("store-file-written")
        file.flush()
        if self._sync and not hasty:
            os.fsync(file.fileno())
        self.failpoints.hit("store-file-synced")

    def _sync_files(self, files: Sequence[Path], directories: Sequence[Path]) -> None:
        """Syncs several at once."""
        if not self._sync:
            return
        syncs = [partial(_sync_file, file) for file in files]
        syncs += [partial(self._sync_directory, directory) for directory in dict.fromkeys(directories)]
        self._syncs.run(syncs)

    def _sync_directory(self, directory: Path) -> None:
        if self._sync:
            sync_directory(directory)

    def _link(self, temporary: Path, target: Path) -> bool:
        try:
            os.link(temporary, target)
        except FileExistsError:
            # a network file system can repeat a request that had succeeded: then the file has both names
            return temporary.stat().st_nlink == 2
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            raise StateError(
                STORAGE,
                f"{self._root}: this file system has no hard links, so a commit could not be made atomic",
                hint="put the checkpoint on a POSIX file system",
            ) from error
        return True

    def _check_same(self, source: Path, final: Path) -> None:
        if source.samefile(final):
            return
        if source.stat().st_size != final.stat().st_size or _checksum(source) != _checksum(final):
            raise StateError(
                OUTPUT,
                f"{final} exists and holds something else",
                hint="another checkpoint wrote to this directory: give every checkpoint an output directory of its own",
            )


class _FileLock:
    """An advisory lock that ends with its process, and a note in the file of who took it last.

    The note shows a takeover where locks do not reach across machines. The writer's threads end with its lock.
    """

    def __init__(self, path: Path, syncs: SyncThreads) -> None:
        self._path = path
        self._syncs = syncs
        # It is written over, so it must be ours: not behind a link, no pipe that would wait for a reader, a note or
        # empty.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o666)
        if not _is_note(descriptor):
            os.close(descriptor)
            raise StateError(
                FOREIGN,
                f"{path} is no lock of a checkpoint",
                hint="move it away, or give another directory: it would be written over",
            )
        self._file = os.fdopen(descriptor, "a+b")
        self.guaranteed = True
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            owner = self._file.read(200).decode("utf-8", "replace").rpartition(" ")[0] or "another process"
            self._file.close()
            raise StateError(
                WRITER,
                f"another run writes to {path.parent} ({owner})",
                hint=_OWN_RUN if owner == _this_process() else _OTHER_RUN,
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
                self._file.close()
                raise
            self.guaranteed = False
        self._note = f"{_this_process()} {uuid.uuid4().hex}".encode()
        try:
            self._file.truncate(0)
            self._file.write(self._note)
            self._file.flush()
        except OSError:
            with suppress(OSError):  # what could not be written can not be at the end either, but the lock is given up
                self._file.close()
            raise

    def held(self) -> bool:
        try:
            with _reader(self._path) as file:
                return file.read() == self._note
        except FileNotFoundError:
            return False

    def release(self) -> None:
        self._syncs.end()
        self._file.close()


def _is_note(descriptor: int) -> bool:
    """Whether this is a regular file with a lock's note in it, or empty; a machine that died can leave zeros for a
    note.
    """
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return False
    note = os.pread(descriptor, _NOTE_BYTES + 1, 0)
    return len(note) <= _NOTE_BYTES and (note.startswith(b"process ") or not note.strip(b"\0"))


class _ChecksumFile:
    """A file for Arrow to write to that sums up what passes through; Parquet is written front to back."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.crc = 0
        self.size = 0

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._file.write(view)
        self.crc = zlib.crc32(view, self.crc)
        self.size += view.nbytes
        return view.nbytes

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """The owner of the file closes it, after syncing it."""

    def tell(self) -> int:
        return self.size

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


def make_directory(directory: str) -> None:
    """A directory outside of checkpoints, and those that lead to it, made durable; `StateError` TG500 for a file
    there.
    """
    LocalStore(directory)._make_directory(Path(directory).absolute())


def sync_directory(directory: str | Path) -> None:
    """Makes durable which files are in a directory."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync_opened(descriptor)
    finally:
        os.close(descriptor)


def sync_opened(directory: int) -> None:
    """The same of a directory that is open."""
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno != errno.EINVAL:  # file systems whose directories need no sync say so in this way
            raise


def _take_name(copy: Path, final: Path) -> bool:
    """Gives a whole file its name, as long as no other has it; whether it got it."""
    try:
        os.link(copy, final)
    except FileExistsError:
        return os.path.samefile(copy, final)  # a network file system can repeat a request that had succeeded
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    else:
        return True
    number = renamed(copy, final, NO_REPLACE)
    if number in (errno.ENOSYS, errno.EINVAL):
        return _take_name_alone(copy, final)
    if number not in (0, errno.EEXIST):
        raise OSError(number, os.strerror(number), str(final))
    return number == 0


def _take_name_alone(copy: Path, final: Path) -> bool:
    """The same where a file system can do neither: whoever makes a file beside it may look and rename."""
    alone = final.with_name(f".{final.name}.publishing")
    try:
        os.close(os.open(alone, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    except FileExistsError:
        raise StateError(
            OUTPUT,
            f"{final} is being published by another run",
            hint=f"let that run end; where there is none, one died as it published: delete {alone}",
        ) from None
    try:
        is_free = not os.path.lexists(final)
        if is_free:
            os.rename(copy, final)
        return is_free
    finally:
        os.unlink(alone)


def _sync_file(path: Path) -> None:
    with _reader(path) as file:
        os.fsync(file.fileno())


def _reader(path: Path, mode: Literal["rb", "r+b"] = "rb") -> BinaryIO:
    """The file itself, for reading; `OSError` ELOOP for a link."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW))


def _checksum(path: Path) -> str:
    crc = 0
    with _reader(path) as file:
        while chunk := file.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    return _spell(crc)


def _spell(crc: int) -> str:
    return f"crc32:{crc:08x}"
