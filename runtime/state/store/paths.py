"""Names and paths inside a store: relative, POSIX, free of what a damaged or hostile manifest could put there."""

from __future__ import annotations

import hashlib
import os
import re

from tidegate.runtime.state.errors import LOCATION, StateError

_PLAIN = re.compile(r"[A-Za-z0-9_]{1,60}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def check_relative(path: str) -> str:
    """`path` itself if it is relative, normalised and stays inside; `StateError` otherwise."""
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise StateError(
            LOCATION, f"{path!r} is not a path inside a checkpoint", hint="the file that names it is damaged"
        )
    return path


def local_directory(location: str | os.PathLike[str]) -> str:
    """The absolute local path that `location` means; locations with a scheme other than `file:` are refused.

    `~` and `~name` at its beginning are home directories, as in shells and Polars.
    """
    text = _text(location)
    scheme = _SCHEME.match(text)
    if scheme is not None:
        if scheme[1].lower() != "file":
            raise StateError(
                LOCATION,
                f"{scheme[1]}: locations are not supported: {without_secrets(text)!r}",
                hint="local and shared POSIX file systems are supported; give a path that all machines have mounted",
            )
        rest = text[len("file:") :]
        text = rest[2:] if rest.startswith("//") else rest
        if not text.startswith("/"):
            raise StateError(
                LOCATION,
                f"{without_secrets(os.fspath(location))!r} names a host",
                hint="write file:///absolute/path",
            )
    if not text or "\0" in text:
        raise StateError(LOCATION, f"{text!r} is not a directory name", hint="give a path")
    return os.path.abspath(os.path.expanduser(text))


def _text(location: object) -> str:
    text = os.fspath(location) if isinstance(location, str | os.PathLike) else None
    if not isinstance(text, str):
        raise StateError(
            LOCATION,
            f"a {type(location).__name__} is no location",
            hint="give the path of a directory, as text or Path",
        )
    return text


def without_secrets(location: str) -> str:
    """A location with scheme as messages show it: without user, password, query and fragment."""
    head, slashes, rest = location.partition("//")
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    host, slash, path = rest.partition("/")
    return head + slashes + host.rpartition("@")[2] + slash + path


def slug(name: str) -> str:
    """A file-name part for `name`, the name itself where it is plain; different names give different slugs."""
    if _PLAIN.fullmatch(name):
        return name
    digest = hashlib.blake2s(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return re.sub(r"[^A-Za-z0-9_]+", "-", name)[:40].strip("-") + "-" + digest
