"""Programs in the user's own Python files, for the command line."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tidegate.algebra.errors import QueryError, Site, TidegateError
from tidegate.runtime.cli.deployment import Deployment, read_deployment
from tidegate.runtime.program import Program

if TYPE_CHECKING:
    from tidegate.contexts.model import ContextModel

_T = TypeVar("_T")


def load_programs(path: Path) -> Mapping[str, Program]:
    """The programs that a file binds to names, by the first name of each.

    The file runs as an import of it would: what stands under `if __name__ == "__main__"` does not. `QueryError` where
    there is no such file or program, where the file fails, or where a query in it is wrong.
    """
    return _programs(path, _names(path))


def load_programs_and_models(path: Path) -> tuple[Mapping[str, Program], Mapping[str, ContextModel]]:
    """The programs that a file binds to names, and the models of contexts there that these read, each by its first
    name. A model to which queries are added is not read, the one with all of them is. `QueryError` as `load_programs`.
    """
    from tidegate.contexts.model import ContextModel
    from tidegate.contexts.text.queries import ContextQueries

    names = _names(path)
    programs = _programs(path, names)
    definitions = [program.definition for program in programs.values()]
    models = {name: one.model if isinstance(one, ContextQueries) else one for name, one in names.items()}
    read = _of(ContextModel, models).items()
    return programs, {name: model for name, model in read if any(map(model._is_read_by, definitions))}


def _programs(path: Path, names: Mapping[str, object]) -> dict[str, Program]:
    programs = _of(Program, names)
    if not programs:
        raise QueryError("TG141", f"{path} defines no program", hint="write program = tg.program(Name=relation) in it")
    return programs


def load_deployment(path: Path, settings: Path | None, name: str | None) -> Deployment:
    """What `tidegate start` runs: the deployment that a file binds to a name, or its program with settings in TOML.

    `QueryError` TG141 where there is none, or several and no `name`.
    """
    if settings is not None:
        return read_deployment(settings, only(path, load_programs(path), name))
    deployments = _of(Deployment, _names(path))
    if not deployments:
        raise QueryError(
            "TG141",
            f"{path} says nothing of sources and checkpoint",
            hint=(
                "write deployment = tg.deployment(program, sources=..., checkpoint=...) in it, or name a TOML "
                "file: --settings"
            ),
        )
    return only(path, deployments, name)


def only(path: Path, objects: Mapping[str, _T], name: str | None) -> _T:
    """The one by this name, or the only one; `QueryError` TG141 where there are others."""
    if (name is not None and name not in objects) or (name is None and len(objects) > 1):
        raise QueryError("TG141", f"{path} defines {', '.join(objects)}", hint="name one of them: --program NAME")
    return next(iter(objects.values())) if name is None else objects[name]


def _names(path: Path) -> dict[str, object]:
    """What a file binds to names."""
    if not path.is_file():
        raise QueryError("TG140", f"there is no file {path}", hint="name a Python file that defines a program")
    # What the file prints is no part of our answer.
    with _imports_beside(path), redirect_stdout(sys.stderr):
        try:
            return runpy.run_path(str(path), run_name=path.stem)
        except TidegateError:
            raise
        except Exception as error:  # whatever the user's file raises is the finding
            is_query = isinstance(error, SyntaxError) and path.suffix != ".py"
            hint = f"the text of a query is given as --query {path}" if is_query else "run it with Python to see where"
            raise _failed(path, f"{type(error).__name__}: {error}", hint, error) from error
        except SystemExit as error:
            raise _failed(path, f"it exits, with status {error.code or 0}", _UNDER_MAIN, error) from error


def _of(kind: type[_T], names: Mapping[str, object]) -> dict[str, _T]:
    """Those of a kind, by the first name of each."""
    bound: dict[str, _T] = {}
    for name, value in names.items():
        if isinstance(value, kind) and not any(value is known for known in bound.values()):
            bound[name] = value
    return bound


@contextmanager
def _imports_beside(path: Path) -> Iterator[None]:
    """Modules beside the file, and below the working directory, can be imported, as when Python runs it."""
    before = list(sys.path)
    sys.path[:0] = [str(path.resolve().parent), str(Path.cwd())]
    try:
        yield
    finally:
        sys.path[:] = before


_UNDER_MAIN = 'put what shall only run as a script under if __name__ == "__main__":'


def _failed(path: Path, why: str, hint: str, error: BaseException) -> QueryError:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == path.name]
    site = Site(frames[-1].filename, frames[-1].lineno or 0, frames[-1].line or "") if frames else None
    if isinstance(error, SyntaxError):
        site = Site(str(path), error.lineno or 0, (error.text or "").strip())
    return QueryError(
        "TG142",
        f"{path} cannot be imported: {why}",
        hint=hint,
        site=site,
    )
