"""Where in the user's code a handle is being built."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any

from tidegate.algebra.errors import QueryError, Site, call_site, user_frame
from tidegate.algebra.nodes import Node, OrderedNode, Rename, Scan, nodes_of, occurrences

#: Python allows 1,000 calls inside each other; at 300 operators, or 150 operations in a term, they were used up.
MAX_DEPTH = 256
#: What walks over a term meets a part that stands in several places as often: time and memory grow with the size, and
#: of deep terms faster than that. The largest ones allowed take minutes.
MAX_SIZE = 100_000
#: A query that refers to streams a thousand times takes some seconds to check.
MAX_REFERENCES = 10_000


#: The place in a text from which handles are being built, if they are.
_IN_TEXT: ContextVar[Site | None] = ContextVar("in_text", default=None)


@contextmanager
def written_at(site: Site) -> Iterator[None]:
    """What is built meanwhile was written there, in the text of a query, not on a line of Python; nor are errors."""
    before = _IN_TEXT.set(site)
    try:
        yield
    except QueryError as error:
        raise error.at(site) from error.__cause__
    finally:
        _IN_TEXT.reset(before)


class UnknownAttributeError(QueryError, AttributeError):
    """What is unknown, asked for as `handle.name`; `hasattr` and `getattr` with a default understand it."""


class Here:
    """`with Here() as site:` is the user's line that called into the library, or the place in the text that is being
    read; errors raised inside carry it."""

    __slots__ = ("site",)

    def __enter__(self) -> Site | None:
        self.site = _IN_TEXT.get() or call_site(sys._getframe(1))
        return self.site

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, RecursionError) and _is_ours(trace):
            raise too_deep(self.site) from None
        if isinstance(error, QueryError) and any(problem.site is None for problem in error.problems):
            raise error.at(self.site).with_traceback(trace) from error.__cause__


def unknown_name(message: str, hint: str) -> UnknownAttributeError:
    """TG131, at the user's line, for what no object of ours has."""
    return UnknownAttributeError("TG131", message, hint=hint, site=call_site(sys._getframe(1)))


def too_deep(site: Site | None, depth: int | None = None) -> QueryError:
    return QueryError(
        "TG152",
        f"the query nests {'too many' if depth is None else depth} levels, and at most {MAX_DEPTH} are "
        "allowed: each operator on the longest way to a stream is one level, each operation in the deepest term is two",
        hint=(
            "give parts of it results of their own, with tg.result_of(...); add up many values in groups, or as "
            "several attributes"
        ),
        site=site,
    )


def too_large(site: Site | None, size: int) -> QueryError:
    hint = (
        "name what stands in several places, with relation.with_(part=...), and go on with relation.part; of many "
        "values make a static table, and join it"
    )
    return _written_out(f"a term has {size:,} operations, and at most {MAX_SIZE:,} are allowed", hint, site)


def too_many_references(site: Site | None, references: int) -> QueryError:
    much = f"the query refers to streams {references:,} times, and at most {MAX_REFERENCES:,} are allowed"
    return _written_out(much, "give such parts results of their own, with tg.result_of(...)", site)


def _written_out(much: str, hint: str, site: Site | None) -> QueryError:
    """TG152 of what is too large as it would be written out."""
    return QueryError(
        "TG152", f"{much}: those of a part that stands in several places count in each", hint=hint, site=site
    )


def variable_of(relation: object) -> str:
    """The user's variable that holds this relation, or a word in its place."""
    return next((name for name, value in _relations().items() if value is relation), "relation")


def written_attribute(named: str, query: Node, streams: frozenset[str]) -> str:
    """An attribute of a query as its user writes it, from what errors call it: after the variable that holds its
    relation, not after the relation's name, if the user's frame has such a variable. Rows of `streams` hold it.
    """
    label, _, name = named.partition(".")
    fitting = {
        variable: relation._node
        for variable, relation in _relations().items()
        if not relation._origins.keys().isdisjoint((name, named))
        and isinstance(relation._node, Scan | Rename | OrderedNode)
        and all(origin.label == label for origin in relation._origins.values())
        and streams <= {stream.name for stream in occurrences(relation._node)}
    }
    read = {id(node) for node in nodes_of(query)}
    sure = [variable for variable, node in fitting.items() if id(node) in read] or list(fitting)
    if label in sure or not sure or (len(sure) > 1 and id(fitting[sure[0]]) not in read):
        return named
    return f"{sure[0]}.{name}"


def _relations() -> dict[str, Any]:
    """The relations that the user's frame names, its own variables first."""
    frame = user_frame(sys._getframe(1))
    names = {} if frame is None else dict(frame.f_locals) | {**frame.f_globals, **frame.f_locals}
    return {
        name: value for name, value in names.items() if hasattr(type(value), "_origins") and not name.startswith("_")
    }


def _is_ours(trace: TracebackType | None) -> bool:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith("tidegate.")


def tests_membership() -> bool:
    """Whether the user's code is at an `in` or `not in`, which its text alone would not tell."""
    import dis

    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".", 1)[0] == "tidegate":
        frame = frame.f_back
    return frame is not None and dis.opname[frame.f_code.co_code[frame.f_lasti]] == "CONTAINS_OP"
