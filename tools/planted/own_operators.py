"""Slips in what runs operators of users and checks them."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

OPERATOR = "runtime/ordered/process/operator.py"
STEPS = "runtime/ordered/process/steps.py"
VERIFICATION = "runtime/ordered/process/verification.py"
OTHER_SEED = "runtime/ordered/process/other_seed.py"
CHECKS = "runtime/ordered/process/checks.py"
CONFORMING = "runtime/ordered/process/conforming.py"
PARTITIONED = "runtime/ordered/process/partition_tables.py"
ARRAYS = "runtime/ordered/row_arrays.py"
EVENTS = "runtime/ordered/new_events.py"
HELD = "runtime/ordered/partition_store.py"
PARTITIONS = "runtime/ordered/partitions.py"
ZONES = "analysis/ordered/process.py"

GROUP = Group(
    "operators of users",
    (
        "tests/runtime/test_process.py",
        "tests/runtime/test_partition_tables.py",
        "tests/properties/test_operators.py",
    ),
    (
        bug(
            "what an operator sees again it may yield again",
            EVENTS,
            "within = [time > old]",
            "within = [time >= old]",
        ),
        bug("timers go off late", HELD, "self._look[:every] <= until", "self._look[:every] < until"),
        bug("no timer goes off without events", PARTITIONED, "if self._wakes is not None:", "if self._wakes is None:"),
        bug(
            "the end is told to partitions with events alone",
            STEPS,
            "EVER if reach.until is None else reach.until",
            "reach.after or 0 if reach.until is None else reach.until",
        ),
        bug(
            "partitions without timers are not told of the end",
            PARTITIONED,
            "look[extract.has_rows(name)] = EVER",
            "look[extract.has_rows(name)] = NO_LOOK",
        ),
        bug(
            "zeros of two signs are two partitions",
            PARTITIONS,
            "return same_zero(pl.col(name)).alias(name) if type_.kind is Kind.DOUBLE else pl.col(name)",
            "return pl.col(name)",
        ),
        bug(
            "partitions have the rows of one table",
            PARTITIONED,
            "is_held |= extract.has_rows(name)",
            "is_held = extract.has_rows(name)",
        ),
        bug(
            "timers do not go off at the end",
            PARTITIONED,
            "first.get_column(column).to_numpy(), EVER)",
            "first.get_column(column).to_numpy(), NO_LOOK)",
        ),
        bug(
            "the last of several timers counts",
            PARTITIONED,
            "agg(pl.col(column).min())",
            "agg(pl.col(column).max())",
        ),
        bug("rows are never packed", ARRAYS, "if self._used > 3 * self.height + LOOSE:", "if False:"),
        bug("what a step leaves stays in its order", PARTITIONED, "rows.sort(PARTITION, maintain_order=True)", "rows"),
        bug("what is kept is counted twice", ARRAYS, " - int(self._count[partitions].sum())", ""),
        bug(
            "that nothing is left is not written",
            "runtime/ordered/row_operator.py",
            "had & ~has",
            "had & has",
        ),
        bug(
            "events come in any order",
            STEPS,
            "rows.select(pl.Series(PARTITION, places), *read).sort(order)",
            "rows.select(pl.Series(PARTITION, places), *read)",
        ),
        bug("events of one instant come in any order", STEPS, "require_order(node, events, order)\n", "pass\n"),
        bug(
            "equal events are two",
            EVENTS,
            "read.select(pl.struct(sorted(reading.attributes)).is_first_distinct())",
            "read.select(pl.int_range(pl.len()) >= 0)",
        ),
        bug(
            "of tied events one stays",
            EVENTS,
            "(~pl.struct(*order, *values).is_duplicated())",
            "(pl.struct(order).is_first_distinct())",
        ),
        bug(
            "rows may be complete before their step", CHECKS, "late = [at <= reach.after]", "late = [at < reach.after]"
        ),
        bug("rows may be complete after their step", CHECKS, "late += [at > reach.until]", "late += []"),
        bug("doubles are cut to whole numbers", CONFORMING, "given.is_integer()) or (", "given.is_numeric()) or ("),
        bug(
            "no step is compared with the meaning",
            OPERATOR,
            "return read if reach.after is None else None",
            "return None",
        ),
        bug(
            "a parameter that is no field is taken",
            "algebra/dsl/checks/operators.py",
            "if unknown := values_beside_fields(operator):",
            "if unknown := list[str]():",
        ),
        bug("declared relations are not checked", CHECKS, "in conjuncts(node.result.relations):", "in ():"),
        bug(
            "what must have a value may have none",
            CHECKS,
            "if not attribute.nullable and",
            "if attribute.nullable and",
        ),
        bug(
            "rows of any partition are taken",
            CHECKS,
            "numbers.is_between(0, partitions - 1).all()",
            "numbers.is_between(0, partitions).all()",
        ),
        bug(
            "a step that differs is taken",
            CHECKS,
            "if not first.sort(first.columns).equals(second.sort(second.columns)):",
            "if first.height != second.height:",
        ),
        bug("partitions do not come alone", VERIFICATION, "if len(part.partitions) > 1:", "if False:"),
        bug("rows of a table always come in one order", VERIFICATION, "rows.reverse()", "rows"),
        bug(
            "no other process does a step",
            VERIFICATION,
            "if (step := elsewhere(node.operator)) is not None:",
            "if (step := None) is not None:",
        ),
        bug(
            "a step that fails when partitions come alone fails as always",
            VERIFICATION,
            "raise again.failed(node, error) from error",
            "raise",
        ),
        bug("of texts no other process is asked", OTHER_SEED, "if not any(map(_has_texts,", "if any(map(_has_texts,"),
        bug("steps are not done in two parts", VERIFICATION, "if len(instants) > 1:", "if False:"),
        bug(
            "a partition may have a row more than declared", CHECKS, "(sizes > most).any()", "(sizes > most + 1).any()"
        ),
        bug(
            "rows of a partition may stay a tick too long",
            CHECKS,
            "over = last + node.kept_for <= reach.until",
            "over = last + node.kept_for < reach.until",
        ),
        bug(
            "what has been kept long enough is not looked at",
            PARTITIONED,
            "np.minimum(look, last + self.kept_for)",
            "look",
        ),
        bug(
            "the last event is forgotten",
            STEPS,
            "last = before.last.copy()",
            "last = np.full_like(before.last, -EVER)",
        ),
        bug(
            "the last event is not in the checkpoint",
            OPERATOR,
            "last[partitions[name]] = rows.get_column(LAST).to_numpy()",
            "pass",
        ),
        bug(
            "a partition without rows is kept",
            PARTITIONED,
            "np.where(look == NO_LOOK, NO_LOOK, np.minimum(look, last + self.kept_for))",
            "np.minimum(look, last + self.kept_for)",
        ),
        bug("how long rows are kept bounds nothing", ZONES, "if node.kept_for is None:", "if True:"),
        bug("a bound of rows is that of one", ZONES, "} × {most:,}", "} × 1"),
        bug(
            "a declared relation is not used",
            ZONES,
            "return build.constrain(zones, temporal_formula(node.result.relations, node.schema), node.result.name)",
            "return zones",
        ),
        bug(
            "a row is complete with any instant of its own",
            ZONES,
            "keyed_event_zones(build.build(reading.input), reading, node.completed_by, build)",
            "keyed_event_zones(build.build(reading.input), reading, node.result.schema.temporal[0], build)",
        ),
    ),
)
