"""Finds the rows of a stream for which a term has no value, for all rows at once and before any is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import polars as pl

from tidegate.algebra.errors import InternalError
from tidegate.algebra.evaluation import EvaluationError, Evaluator, Values, evaluator
from tidegate.algebra.nodes import Imbed, Join, Node, Product, Project, Rename, Scan, Select, occurrences, with_children
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.row_wise import is_static, with_terms
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import split_by_failure
from tidegate.algebra.terms import TRUE, Term, Value, attributes_of
from tidegate.algebra.typed.failures import has_fallible_term
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.typed.terms import narrowed
from tidegate.algebra.types import BIGINT
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.eval.terms import compile_pair, compile_term
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.state.quarantine import TOGETHER, error_text

_ROW: Final = "\0row"
_FAILS: Final = "\0fails"
#: Pairs of rows and rows of a static table that a condition is evaluated for at a time.
MOST_PAIRS: Final = 1 << 20
#: Errors of a term that are known at a time: one takes 1.5 kB.
MOST_ERRORS: Final = 1 << 10
#: Of so many rows, or more, the ranges of the operands are looked at first.
MANY_ROWS: Final = 4096


def failures(
    nodes: Sequence[Node], rows: pl.DataFrame, statics: Mapping[str, pl.DataFrame], *, of_results: bool = False
) -> Failures:
    """The rows for which a term has no value, with the first such term.

    `nodes` are row-wise parts over the stream of the rows, in the order in which they are evaluated. Terms are those of
    the reference evaluation: a row that a selection leaves out is not looked at above it. A term over a static table
    alone that fails is no row's fault and is raised. A row of a result is looked at beside those rows of a table alone
    that may be its partners, as in `semantics.evaluate_leniently`.
    """
    failed: list[FailedRows] = []
    for node in nodes:
        _Walk(rows, statics, of_results, failed).rows_of(numbered(node), frozenset())
    return Failures(tuple(failed))


def terms_of(buffer: Buffer) -> Node:
    """The terms that a buffer evaluates of each row of its stream before it stores anything."""
    aggregates = () if buffer.partial is None else buffer.partial.aggregates
    terms = [term for aggregate in aggregates for term in aggregate.terms]
    return with_terms(buffer.chain, [*terms, *(() if buffer.encoding is None else buffer.encoding.conditions)])


def can_fail(node: Node) -> bool:
    """Whether a term of a row-wise part can fail on some row."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if not is_static(current):
            if has_fallible_term(current):
                return True
            waiting += _inputs(current)
    return False


def parts_to_evaluate(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The row-wise parts that have to be evaluated to find the rows that fail, each part once."""
    return tuple(dict.fromkeys(_trimmed(node) for node in nodes if can_fail(node)))


def _trimmed(node: Node) -> Node:
    """The part without the operators above the last one that can fail."""
    while not has_fallible_term(node):
        (node,) = (input_ for input_ in _inputs(node) if not is_static(input_))
    return node


def _inputs(node: Node) -> tuple[Node, ...]:
    match node:
        case Select() | Imbed() | Project() | Rename():
            return (node.input,)
        case Join() | Product():
            return (node.left, node.right)
        case _:
            return ()


def _both(left: Node, right: Node) -> Schema:
    return Schema((*left.schema.attributes, *right.schema.attributes))


@lru_cache(maxsize=1024)
def numbered(node: Node) -> Node:
    """The part, with the number of its stream's row as one more attribute."""
    if is_static(node):
        return node
    match node:
        case Scan(stream):
            schema = Schema((*stream.schema.attributes, Attribute(_ROW, BIGINT, nullable=False)))
            return Scan(replace(stream, schema=schema))
        case Project(input_, names):
            return Project(numbered(input_), (*names, _ROW))
        case Imbed():
            imbeds: list[Imbed] = []
            while isinstance(node, Imbed):
                imbeds.append(node)
                node = node.input
            made = numbered(node)
            for imbed in reversed(imbeds):
                made = Imbed(made, imbed.name, imbed.term)
            return made
        case _:
            return with_children(node, tuple(map(numbered, _inputs(node))))


@dataclass(slots=True)
class _Walk:
    """An evaluation of a numbered part. Rows that fail leave it, and `failed` has each once."""

    rows: pl.DataFrame
    statics: Mapping[str, pl.DataFrame]
    of_results: bool
    failed: list[FailedRows]

    def rows_of(self, node: Node, needed: frozenset[str] | None = None) -> pl.DataFrame:
        """The rows of a part that do not fail, with the attributes that are `needed`, and perhaps others; None: all."""
        if is_static(node):
            return evaluate(node, {k: self.statics[table.name] for k, table in enumerate(occurrences(node))})
        match node:
            case Scan(stream):
                names = [name for name in stream.schema.names if name != _ROW and (needed is None or name in needed)]
                return self.rows.select(*names, pl.int_range(pl.len(), dtype=pl.Int64).alias(_ROW))
            case Select(input_, condition):
                fine = self._evaluable(self.rows_of(input_, _with(needed, condition)), condition, input_.schema)
                return fine.filter(compile_term(condition, input_.schema))
            case Imbed():
                return self._imbedded(node, needed)
            case Project(input_, names):
                rows = self.rows_of(input_, frozenset(names) if needed is None else needed)
                return only(rows, [name for name in names if name in rows.columns])
            case Rename(input_, pairs):
                before = {new: old for old, new in pairs}
                known = None if needed is None else frozenset(before.get(name, name) for name in needed)
                rows = self.rows_of(input_, known)
                return rows.rename({old: new for old, new in pairs if old in rows.columns})
            case Join(left, right):
                left_rows, right_rows = self.rows_of(left), self.rows_of(right)
                left_rows, right_rows = self._matchable(node, left_rows, right_rows)
                read = Join(_scan(left, "left"), _scan(right, "right"), node.condition, node.kind)
                return evaluate(read, {0: left_rows, 1: right_rows})
            case Product(left, right):
                return self.rows_of(left).join(self.rows_of(right), how="cross")
            case _:
                raise InternalError("TG490", f"{type(node).__name__} is no row-wise operator")

    def _imbedded(self, node: Node, needed: frozenset[str] | None) -> pl.DataFrame:
        """The rows with one attribute more after the other: of a thousand aggregates there are as many in a row."""
        imbeds: list[tuple[Imbed, bool]] = []
        while isinstance(node, Imbed):
            imbeds.append((node, needed is None or node.name in needed))
            needed, node = _with(needed, node.term), node.input
        rows = self.rows_of(node, needed)
        for imbed, is_needed in reversed(imbeds):
            rows = self._evaluable(rows, imbed.term, imbed.input.schema)
            if is_needed:
                rows = rows.with_columns(compile_term(imbed.term, imbed.input.schema).alias(imbed.name))
        return rows

    def _evaluable(self, frame: pl.DataFrame, term: Term, schema: Schema) -> pl.DataFrame:
        """The rows for which the term has a value."""
        fails = self._failing(frame, term, schema)
        return frame if fails is None else frame.filter(~fails)

    def _failing(self, frame: pl.DataFrame, term: Term, schema: Schema) -> pl.Series | None:
        """The rows for which the term fails, None if there are none. The first of each row of the stream is noted."""
        test = _test_of(term, schema)
        if test is None or not frame.height or (frame.height >= MANY_ROWS and _fits(term, schema, frame)):
            return None
        fails = frame.select(pl.col(_ROW), test).get_column(_FAILS)
        if not fails.any():
            return None
        read = sorted(attributes_of(term))
        first = frame.filter(fails).select(_ROW, *read).unique(_ROW, keep="first", maintain_order=True)
        for part in self.failed:
            first = first.join(part.rows, on=_ROW, how="anti", maintain_order="left")
        if first.height:
            self.failed.append(FailedRows(first, TermFailures.of(term, schema)))
        return fails

    def _matchable(self, join: Join, left: pl.DataFrame, right: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Both sides without the rows for which the condition fails beside a row of the static table."""
        both = _both(join.left, join.right)
        if not resolve(join.condition, both).fallible:
            return left, right
        plain, hard = split_by_failure(join.condition, both) if self.of_results else (TRUE, join.condition)
        rows, table = (left, right) if _ROW in left.columns else (right, left)
        step = max(1, MOST_PAIRS // max(1, table.height))
        gone: list[pl.Series] = []
        for start in range(0, rows.height, step):
            pairs = only(rows.slice(start, step).join(table, how="cross"), both.names)
            if plain != TRUE:
                pairs = pairs.filter(compile_term(plain, both))
            if (fails := self._failing(pairs, hard, both)) is not None:
                gone.append(pairs.filter(fails).get_column(_ROW).unique())
        if gone:
            rows = rows.join(pl.concat(gone).to_frame(), on=_ROW, how="anti", maintain_order="left")
        return (rows, table) if _ROW in left.columns else (table, rows)


def _with(needed: frozenset[str] | None, term: Term) -> frozenset[str] | None:
    """What is needed below an operator with this term."""
    return None if needed is None else needed | attributes_of(term)


@lru_cache(maxsize=1024)  # batch after batch evaluates the same terms
def _test_of(term: Term, schema: Schema) -> pl.Expr | None:
    """Whether the term fails on a row; None where it cannot."""
    error = compile_pair(term, schema).error if resolve(term, schema).fallible else None
    return None if error is None else error.is_not_null().alias(_FAILS)


def _fits(term: Term, schema: Schema, frame: pl.DataFrame) -> bool:
    """Whether no row fails because integers are as small as they are: a look at the least and greatest value of each
    attribute takes a fraction of a test of each row.
    """
    ranges = {}
    for name in attributes_of(term):
        if schema[name].type.is_integer_held:
            least, greatest = frame.get_column(name).min(), frame.get_column(name).max()
            if isinstance(least, int) and isinstance(greatest, int):
                ranges[name] = (least, greatest)
    return not narrowed(resolve(term, schema), ranges).fallible


def _scan(node: Node, name: str) -> Scan:
    """The current rows as a scan."""
    return Scan(StreamDef(name, node.schema, static=True))


@dataclass(frozen=True, slots=True)
class FailedRows:
    """Rows for which a term has no value: their numbers, and what the term reads of each."""

    rows: pl.DataFrame
    failures: TermFailures

    @property
    def numbers(self) -> pl.Series:
        return self.rows.get_column(_ROW)

    def __iter__(self) -> Iterator[tuple[int, EvaluationError]]:
        for row in self.rows.iter_rows(named=True):
            yield row[_ROW], self.failures.error(row)


@dataclass(frozen=True, slots=True)
class Failures:
    """Rows for which a term has no value, each once, by terms. Errors are made as one asks for them."""

    parts: tuple[FailedRows, ...]

    def __len__(self) -> int:
        return sum(part.rows.height for part in self.parts)

    def __iter__(self) -> Iterator[tuple[int, EvaluationError]]:
        for part in self.parts:
            yield from part

    @property
    def numbers(self) -> pl.Series:
        """The numbers of the rows, in the order of the iteration."""
        return pl.concat([part.numbers for part in self.parts]) if self.parts else pl.Series(dtype=pl.Int64)

    def texts(self) -> pl.Series:
        """The errors as text, in the same order; those of rows with equal operands are made once, if they stand near
        each other.
        """
        made: list[pl.Series] = []
        texts: list[str] = []
        last: EvaluationError | None = None
        for _, error in self:
            texts.append(texts[-1] if error is last and texts else error_text(error))
            last = error
            if len(texts) >= TOGETHER:
                made.append(pl.Series(texts, dtype=pl.String))
                texts = []
        return pl.concat([*made, pl.Series(texts, dtype=pl.String)])

    def first(self) -> tuple[int, EvaluationError]:
        """The row with the least number."""
        firsts = [replace(part, rows=part.rows.bottom_k(1, by=_ROW)) for part in self.parts]
        return min((found for part in firsts for found in part), key=lambda found: found[0])


@dataclass(frozen=True, slots=True)
class TermFailures:
    """Why a term has no value: rows with equal operands share one error, which holds nothing of the evaluation.

    Of operands that are all different, those of the last rows are known.
    """

    term: Term
    value: Evaluator
    operands: tuple[str, ...]
    _known: dict[tuple[Value, ...], EvaluationError] = field(default_factory=dict)

    @classmethod
    def of(cls, term: Term, schema: Schema) -> TermFailures:
        return cls(term, evaluator(resolve(term, schema)), tuple(sorted(attributes_of(term))))

    def error(self, row: Values) -> EvaluationError:
        """The error of a row on which the term fails."""
        values = (row[name] for name in self.operands)
        operands = tuple(str(value) if isinstance(value, float) else value for value in values)  # 0.0 == -0.0
        error = self._known.get(operands)
        if error is None:
            if len(self._known) >= MOST_ERRORS:
                self._known.clear()
            error = self._known[operands] = self._error_of(row)
        return error

    def _error_of(self, row: Values) -> EvaluationError:
        try:
            self.value(row)
        except EvaluationError as error:
            error.__traceback__ = error.__context__ = None  # frames hold the row
            return error
        raise InternalError("TG901", f"engines disagree whether {term_text(self.term)} fails for {row}")
