"""Conditions and measures of row patterns: which rows of a match, and around it, they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tidegate.algebra.diagnostics.shown import nearest
from tidegate.algebra.dsl import aggregates as dsl_aggregates
from tidegate.algebra.dsl.aggregates import AggregateExpression
from tidegate.algebra.dsl.checks.suggestions import NEIGHBOURS
from tidegate.algebra.dsl.expression import Expression, to_expression
from tidegate.algebra.dsl.grouping import aggregate_of
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.aggregates import TABLE, Aggregate, Function
from tidegate.algebra.ordered.sequences.navigation import (
    Classifier,
    MatchNumber,
    Navigation,
    RowOf,
    RowsAggregate,
    RowValue,
    Variables,
)
from tidegate.algebra.text.conditions import Conditions, Value
from tidegate.algebra.text.parsing import Part, name_of
from tidegate.algebra.text.row_patterns.arguments import AGGREGATES, LOGICAL, PHYSICAL, READING, Argument, Names
from tidegate.algebra.text.row_patterns.found import Navigations
from tidegate.algebra.text.row_patterns.language import VALUES
from tidegate.algebra.text.units import Unit

OfRow: TypeAlias = RowValue | Classifier
#: Rows that an offset can be.
_FARTHEST = 1 << 31
#: What other systems have.
_ELSEWHERE = {
    "match_rowtime": "each match has the instant of its last row: last",
    "match_proctime": "each match has the instant from which it is final: detected",
    "prev_n": "write PREV(x, 2)",
    "match_sequence_number": "in ALL ROWS PER MATCH it is RUNNING COUNT(*)",
}
_MEANT: Mapping[str, str] = {"lag": "PREV(x, 1)", "lead": "NEXT(x, 1)"}


@dataclass(slots=True, kw_only=True)
class RowConditions(Conditions):
    """Reads conditions of DEFINE, and MEASURES. `here` is the variable that a condition is of."""

    names: Names
    navigations: Navigations
    time: str
    clause: Literal["DEFINE", "MEASURES"]
    here: str | None = None

    def attribute(self, tree: Part) -> Expression:
        """An attribute of the rows, without a variable before it."""
        name = name_of(tree.parts[0])
        if name in self.names.all and name not in self.relation.schema:
            raise QueryError(
                "TG172",
                f"{name} is a variable, and its rows have attributes",
                hint=f"write {name}.{self.relation.schema.names[0]}",
                site=self.text.at(tree),
            )
        return Conditions.attribute(self, tree)

    def _of_event(self, tree: Part) -> Value:
        """The attribute of the row whose condition is asked for; as a measure that of the last row so far."""
        value = Conditions._of_event(self, tree)
        if self.clause == "DEFINE":
            return value
        navigation = RowValue("", to_expression(value.operand)._term)
        return Value(self.navigations.expression(navigation), value.unit)

    def _named(self, name: str) -> str:
        return self.navigations.attribute(name)

    def _value(self, tree: Part) -> Value:
        with written_at(self.text.at(tree)):
            if tree.kind == "attribute" and len(tree.parts) == 2:
                return self._of_variable(tree)
            if tree.kind == "of_match":
                return self._reading(tree.parts[1], final=self._final(*tree.parts))
            if tree.kind in ("call", "distinct") and tree.parts[0].text.lower() in READING:
                return self._reading(tree, final=False)
            if tree.kind in ("distinct", "rows_of"):
                hint = "they stand in COUNT(*), COUNT(A.*) and COUNT(DISTINCT A.x)"
                raise QueryError("TG178", "rows are no value", hint=hint)
            return Conditions._value(self, tree)

    def _call(self, name: Part, *given: Part) -> Value:
        op = name.text.lower()
        hint = _ELSEWHERE.get(op) or (f"write {_MEANT.get(op, 'PREV(x, 1)')}" if op in NEIGHBOURS else "")
        if hint:
            raise QueryError("TG131", f"there is no {name.text} here", hint=hint, site=self.text.at(name))
        try:
            return Conditions._call(self, name, *given)
        except QueryError as error:
            near = nearest(op, READING, 1)
            if error.code != "TG131" or error.message != f"unknown operation {op!r}" or not near:
                raise
            raise QueryError("TG131", error.message, hint=f"did you mean {near[0].upper()}?") from None

    def _of_variable(self, tree: Part) -> Value:
        """`A.x`, which is LAST(A.x)."""
        name = name_of(tree.parts[0])
        if name in self.prefixes and name not in self.names.all:
            raise QueryError(
                "TG172",
                f"{name} is the name of the stream, and values are of rows of a match",
                hint=f"write {name_of(tree.parts[1])}, or {self.names.matched[0]}.{name_of(tree.parts[1])}",
            )
        navigation, unit = self._argument("LAST", tree)
        return Value(self.navigations.expression(navigation), unit)

    def _final(self, word: Part, call: Part) -> bool:
        """Whether the word before a call is FINAL; `QueryError` where it is another one than RUNNING, or cannot stand
        there.
        """
        asked, op = word.text.upper(), call.parts[0].text.upper()
        if asked not in ("RUNNING", "FINAL"):
            near = nearest(asked, ("RUNNING", "FINAL"), 1)
            wrong, hint = (
                (word, f"did you mean {near[0]}?")
                if near
                else (call.parts[0], VALUES.get(op, "RUNNING or FINAL can stand before a call"))
            )
            raise QueryError("TG170", f"{wrong.text!r} does not fit here", hint=hint, site=self.text.at(wrong))
        with written_at(self.text.at(word)):
            if op.lower() not in LOGICAL | AGGREGATES:
                hint = "it stands before FIRST, LAST and aggregates"
                if op.lower() in PHYSICAL:
                    hint = f"it stands inside: {op}({asked} LAST(A.x))"
                elif op == "CLASSIFIER":
                    hint = f"write {asked} LAST(CLASSIFIER())"
                raise QueryError("TG178", f"{asked} before {op}", hint=hint)
            if asked == "FINAL" and self.clause == "DEFINE":
                raise QueryError(
                    "TG178",
                    "FINAL in DEFINE: a condition sees the rows of a match up to its own",
                    hint="leave it out; what the whole match must satisfy is filtered by where(...) of its measures",
                )
        return asked == "FINAL"

    def _reading(self, tree: Part, *, final: bool) -> Value:
        op = tree.parts[0].text.lower()
        navigation: Navigation
        unit: Unit | None = None
        if op == "match_number":
            navigation = self._match_number(tree)
        elif op in AGGREGATES:
            navigation, unit = self._aggregate(tree, final=final)
        else:
            navigation, unit = self._row(tree, final=final)
        return Value(self.navigations.expression(navigation), unit)

    def _match_number(self, tree: Part) -> MatchNumber:
        if len(tree.parts) > 1:
            raise QueryError("TG178", "MATCH_NUMBER of something", hint="write MATCH_NUMBER()")
        if self.clause == "DEFINE":
            raise QueryError(
                "TG178",
                "MATCH_NUMBER in DEFINE: whether a row fits would depend on all matches before",
                hint="number matches in MEASURES, and filter by where(...)",
            )
        return MatchNumber("")

    # FIRST, LAST, PREV, NEXT, CLASSIFIER -----------------------------------------------------------------------------
    def _row(self, tree: Part, *, final: bool) -> tuple[OfRow, Unit | None]:
        op = tree.parts[0].text.upper()
        if op == "CLASSIFIER":
            return self._classifier(tree), None
        self._check_count(tree)
        if op.lower() in PHYSICAL:
            steps = self._offset(tree, 1)
            navigation, unit = self._start(op, tree.parts[1])
            return replace(navigation, row=replace(navigation.row, step=steps if op == "NEXT" else -steps)), unit
        navigation, unit = self._argument(op, tree.parts[1])
        end: Literal["first", "last"] = "first" if op == "FIRST" else "last"
        row = RowOf(navigation.row.variables, end, self._offset(tree, 0))
        return replace(navigation, row=row, final=final), unit

    def _start(self, op: str, tree: Part) -> tuple[OfRow, Unit | None]:
        """The row that PREV or NEXT go from: that of FIRST or LAST, or the last one of a variable."""
        inner = tree.parts[1] if tree.kind == "of_match" else tree
        if inner.kind == "call" and inner.parts[0].text.lower() in LOGICAL:
            with written_at(self.text.at(tree)):
                return self._row(inner, final=tree.kind == "of_match" and self._final(*tree.parts))
        return self._argument(op, tree)

    def _argument(self, op: str, tree: Part) -> tuple[OfRow, Unit | None]:
        """What is read of the last row with the variables that the argument names."""
        if tree.kind == "call" and tree.parts[0].text.upper() == "CLASSIFIER":
            return self._classifier(tree), None
        argument = self._reader_of(op)
        value = argument.value_of(tree)
        with written_at(self.text.at(tree)):
            term = to_expression(value.operand)._term
        return RowValue("", term, RowOf(argument.variables)), value.unit

    def _classifier(self, tree: Part) -> Classifier:
        given = tree.parts[1:]
        with written_at(self.text.at(tree)):
            if len(given) > 1 or any(part.kind != "attribute" or len(part.parts) > 1 for part in given):
                raise QueryError("TG178", "CLASSIFIER takes a variable or nothing", hint="write CLASSIFIER(A)")
            variables: Variables = ()
            if given:
                variables = self.names.resolved(name_of(given[0].parts[0]), here=self.here)
            return Classifier("", RowOf(variables))

    def _reader_of(self, op: str) -> Argument:
        return Argument(self.text, self.relation, (), (), self.units, self.met, of=op, names=self.names, here=self.here)

    def _check_count(self, tree: Part) -> None:
        if not 2 <= len(tree.parts) <= 3:
            op = tree.parts[0].text.upper()
            raise QueryError("TG178", f"{op} of {len(tree.parts) - 1} values", hint=f"write {op}(A.x) or {op}(A.x, 2)")

    def _offset(self, tree: Part, default: int) -> int:
        if len(tree.parts) < 3:
            return default
        op, given = tree.parts[0].text.upper(), tree.parts[2]
        digits = given.parts[0].text if given.kind == "quantity" and len(given.parts) == 1 else ""
        if not digits.isdecimal() or len(digits) > 10 or int(digits) > _FARTHEST:
            raise QueryError(
                "TG178",
                f"{op} goes on by a whole number of rows, which is written out",
                hint=f"write {op}(A.x, 2)",
                site=self.text.at(given),
            )
        return int(digits)

    # Aggregates ------------------------------------------------------------------------------------------------------
    def _aggregate(self, tree: Part, *, final: bool) -> tuple[RowsAggregate, Unit | None]:
        word, *given = tree.parts
        op = word.text.lower()
        if tree.kind == "distinct":
            if op != "count":
                raise QueryError("TG178", f"{word.text} of DISTINCT", hint="only COUNT(DISTINCT A.x) counts values")
            op = Function.COUNT_DISTINCT.value
        if not given and op != "count":
            raise QueryError("TG178", f"{word.text} of nothing", hint=f"write {word.text.upper()}(A.x)")
        if not given or given[0].kind == "rows_of":
            if op != "count" or len(given) > 1:
                raise QueryError("TG178", f"{word.text} of rows", hint=f"write COUNT(*) or {word.text.upper()}(A.x)")
            of = given[0].parts if given else ()
            variables = self.names.resolved(name_of(of[0]), here=self.here) if of else ()
            return RowsAggregate(self._computed(dsl_aggregates.count()), variables, final), None
        argument = self._reader_of(word.text.upper())
        value = argument.value_of(given[0])
        order = {"by": self.relation[self.time]} if TABLE[Function(op)].ordered else {}
        parameters = [Conditions._value(self, part).operand for part in given[1:]]
        computed: AggregateExpression = getattr(dsl_aggregates, op)(to_expression(value.operand), *parameters, **order)
        keeps = op in ("sum", "try_sum", "min", "max", "avg", "median", "quantile", "mode")
        return RowsAggregate(self._computed(computed), argument.variables, final), value.unit if keeps else None

    def _computed(self, given: AggregateExpression) -> Aggregate:
        return aggregate_of(self.relation, "", given, [])
