"""What the operating system tells of changes in directories: Linux only (inotify), and of local file systems only.

With it a look at a directory costs what has changed there; without it, a list of all names.
"""

from __future__ import annotations

import ctypes
import os
import struct
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED = 0x2000, 0x4000, 0x8000
_ONLY_DIRECTORY, _NO_LINK, _IS_DIRECTORY = 0x1000000, 0x2000000, 0x40000000
_WANTED: Final = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
)
_EVENT: Final = struct.Struct("iIII")
#: File systems whose changes all pass through this machine's kernel: of others, what another machine does is not told.
_LOCAL: Final = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}
)


class LostEvents(Exception):
    """What has changed is not known any more: everything is to be looked at again."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something at `path` was made, written, renamed or removed."""

    path: str
    is_folder: bool


class Watch:
    """Watched folders, and what has changed in them since it was asked last. `close` it, or let it be collected."""

    def __init__(self, descriptor: int, libc: Any) -> None:
        self._descriptor, self._libc = descriptor, libc
        self._folders: dict[int, str] = {}
        self.close = weakref.finalize(self, os.close, descriptor)

    @staticmethod
    def of(folder: str) -> Watch | None:
        """A watch for folders below this one, None where there can be none."""
        if not is_local(folder):
            return None
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError):  # another system
            return None
        return None if descriptor < 0 else Watch(descriptor, libc)  # a user may have only so many

    def add(self, folder: str, *, top: bool = False) -> None:
        """Watch a folder too, and not what is below the folders in it; `LostEvents` where that cannot be done.

        The top may be a link, others not.
        """
        mask = _WANTED | _ONLY_DIRECTORY | (0 if top else _NO_LINK)
        number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), mask)
        if (
            number < 0 or self._folders.setdefault(number, folder) != folder
        ):  # gone, too many, or one folder at two places
            raise LostEvents

    def changes(self) -> Iterator[Change]:
        """What has changed, in order; `LostEvents` where too much has, or a watched folder has another place now."""
        while True:
            try:
                events = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return
            place = 0
            while place < len(events):
                number, mask, _, length = _EVENT.unpack_from(events, place)
                place += _EVENT.size + length
                if mask & (_OVERFLOW | _UNMOUNT | _MOVE_SELF):
                    raise LostEvents
                if mask & _IGNORED:
                    self._folders.pop(number, None)
                elif number in self._folders and length:
                    name = os.fsdecode(events[place - length : place].rstrip(b"\0"))
                    yield Change(os.path.join(self._folders[number], name), bool(mask & _IS_DIRECTORY))


def is_local(folder: str) -> bool:
    """Whether a folder lies in a local file system, by the mounts that Linux tells of."""
    real = os.path.realpath(folder)
    best, kind = "", ""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                _, point, type_, *_ = line.split(" ")
                point = _unescaped(point)
                if len(point) >= len(best) and (real + "/").startswith(point.rstrip("/") + "/"):
                    best, kind = point, type_
    except (OSError, ValueError):
        return False
    return kind in _LOCAL


def _unescaped(point: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point
