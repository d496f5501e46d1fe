"""How a run stands, as text and as HTML made for reading: rows by their fate, results, what is kept, times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.printing.plans import count_of, listed, printable
from tidegate.analysis.inner_queries import inner_names, owner_of
from tidegate.runtime.batch.instants import instant_text
from tidegate.runtime.plan.operator_state import operator_states, state_name
from tidegate.runtime.plan.steps import one_of
from tidegate.runtime.state.manifest import added, set_aside_rows, unreadable_files

if TYPE_CHECKING:
    from tidegate.algebra.time import Extended
    from tidegate.runtime.batch.loop import Runner
    from tidegate.runtime.plan.steps import Plan
    from tidegate.runtime.state.manifest import SourceCounts


@dataclass(frozen=True, slots=True)
class Line:
    """One fact: what it is about ("in", "out", "kept"), of which stream or query, and what is to be said."""

    about: str
    name: str
    text: str


@checked_calls
@dataclass(frozen=True, slots=True)
class Status:
    """A title, and facts below it in three columns.

    Examples:
        >>> print(program.session().status())
        session of Unpaid in memory, after batch 0
          in    Orders    0 rows
                Payments  0 rows
          out   Unpaid    nothing final yet
          kept  Orders    0 rows
                Payments  0 rows
    """

    title: str
    lines: tuple[Line, ...]

    def __str__(self) -> str:
        abouts = max((len(line.about) for line in self.lines), default=0)
        names = max((len(line.name) for line in self.lines), default=0)
        rows, before = [self.title], ""
        for line in self.lines:
            about = "" if line.about == before else line.about
            rows.append(f"  {about:{abouts}}  {line.name:{names}}  {line.text}".rstrip())
            before = line.about
        return printable("\n".join(rows))

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows, before = [], ""
        for line in self.lines:
            cells = ("" if line.about == before else line.about, line.name, line.text)
            rows.append("".join(f'<td style="text-align: left">{escape(printable(cell))}</td>' for cell in cells))
            before = line.about
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<div><p>{escape(printable(self.title))}</p><table>{body}</table></div>"


def fate(counts: SourceCounts) -> str:
    """What became of the rows of a source."""
    rejected = counts.rows_in - counts.accepted
    if not rejected:
        return count_of(counts.rows_in, "row") + (", accepted" if counts.rows_in else "")
    reasons = listed([f"{rows:,} {reason}" for reason, rows in sorted(counts.rejected.items()) if rows])
    return f"{count_of(counts.rows_in, 'row')}, {counts.accepted:,} accepted, {rejected:,} rejected: {reasons}"


def fates(about: str, counts: Mapping[str, SourceCounts], waiting: Mapping[str, int] | None = None) -> tuple[Line, ...]:
    """A line for each source, with the rows that wait for the next batch."""

    def waits(rows: int) -> str:
        return f"; {count_of(rows, 'row')} {'waits' if rows == 1 else 'wait'} for step()" if rows else ""

    return tuple(
        Line(about, name, fate(source) + waits((waiting or {}).get(name, 0))) for name, source in counts.items()
    )


def asides(counts: Mapping[str, Mapping[str, int]]) -> tuple[Line, ...]:
    """A line for each query and reason of what was set aside as it was evaluated: a result without it looks as if there
    had been nothing. What its inner queries set aside is the query's."""
    total: dict[str, dict[str, int]] = {}
    for name, reasons in counts.items():
        total = added(total, {owner_of(name): reasons})
    return tuple(
        Line("out", name, f"{rows:,} set aside: {reason}; the quarantine says why")
        for name, reasons in total.items()
        for reason, rows in reasons.items()
    )


def unreadables(files: Mapping[str, int]) -> tuple[Line, ...]:
    """A line for each source of which files cannot be read."""
    return tuple(Line("in", name, f"{count_of(count, 'file')} that cannot be read") for name, count in files.items())


def finals(plan: Plan, progress: Mapping[str, Mapping[str, Extended]]) -> dict[str, str]:
    """Of each query up to which instants its result is final; stages, whose results nobody reads, are left out."""
    schemas = {query.name: query.facts.output.schema for query in plan.queries if not query.facts.query.inner}
    return {
        name: _final({a: instant_text(value, schemas[name][a].type.kind) for a, value in values.items()})
        for name, values in progress.items()
        if name in schemas
    }


def _final(values: Mapping[str, str]) -> str:
    if not values:
        return ""
    if set(values.values()) == {"∞"}:
        return "complete"
    if set(values.values()) == {"-∞"}:
        return "nothing final yet"
    return f"final up to {listed([f'{name} {value}' for name, value in values.items()])}"


def kept(plan: Plan, live_rows: Mapping[str, int]) -> tuple[Line, ...]:
    """What is stored of each stream, by its kind and in how many buffers, and what the operator of each query keeps."""
    buffers = {buffer.id: buffer for buffer in plan.buffers}
    operators = _operator_rows(plan)
    names = inner_names(plan.facts)
    by_stream: dict[str, dict[str, list[int]]] = {}
    for name, number in live_rows.items():
        buffer = buffers.get(name)
        if buffer is None:
            stream, what = operators[name]
        else:
            stream, what = buffer.stream.name, one_of(buffer.holds)
        by_stream.setdefault(names.get(stream, stream), {}).setdefault(what, []).append(number)
    return tuple(
        Line("kept", name, ", ".join(_stored(numbers, what) for what, numbers in by_kind.items()))
        for name, by_kind in by_stream.items()
    )


def _operator_rows(plan: Plan) -> dict[str, tuple[str, str]]:
    """By the name of what an operator keeps, whose it is and what one of its rows is called: what has no plural, such
    as state, consists of rows.
    """
    owners = {}
    for operator in operator_states(plan):
        name, noun = state_name(operator.query, operator.what), one_of(operator.what)
        owners[name] = (name, "row") if noun == operator.what else (name.removesuffix(f": {operator.what}"), noun)
    return owners


def _stored(numbers: Sequence[int], what: str) -> str:
    return count_of(sum(numbers), what) + (f" in {len(numbers)} buffers" if len(numbers) > 1 else "")


def asked(plan: Plan) -> str:
    """The queries that a user asks; stages, whose results nobody reads, are left out."""
    return ", ".join(query.name for query in plan.queries if not query.facts.query.inner)


def standing(title: str, runner: Runner, waiting: Mapping[str, int] | None = None) -> Status:
    """How a run of a program stands, on either engine; `waiting` are the rows of each source that no batch has read."""
    last, state = runner.checkpoint.manifest, runner.state
    return Status(
        title,
        (
            *fates("in", state.counts, waiting),
            *unreadables({} if last is None else unreadable_files(last)),
            *(Line("out", name, text) for name, text in finals(runner.plan, state.progress.queries).items()),
            *asides({} if last is None else set_aside_rows(last)),
            *kept(runner.plan, state.live_rows(runner.plan)),
        ),
    )


def joined(parts: Iterable[str]) -> str:
    """The parts that say something, with commas between them."""
    return ", ".join(part for part in parts if part)
