"""Slips in what runs operators of users and checks them."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

PROCESS = "runtime/ordered/process.py"
ZONES = "analysis/ordered/process.py"
TABLES = "runtime/ordered/state_tables.py"

GROUP = Group(
    "operators of users",
    (
        "tests/runtime/test_process.py",
        "tests/properties/test_operators.py",
    ),
    (
        bug(
            "what an operator sees again it may yield again", PROCESS, "within = [time > old]", "within = [time >= old]"
        ),
        bug("timers go off late", PROCESS, "pl.col(wakes[1]) <= until", "pl.col(wakes[1]) < until"),
        bug("no timer goes off without events", PROCESS, "elif wakes is not None and", "elif wakes is None and"),
        bug("the end is told to partitions with events alone", PROCESS, "if until == INF:", "if False:"),
        bug(
            "zeros of two signs are two partitions",
            PROCESS,
            '(same_zero(pl.col(key)) if schema[key].type.kind.value == "double" else pl.col(key))',
            "pl.col(key)",
        ),
        bug(
            "events of a zero of the other sign are lost",
            PROCESS,
            "    own = rows.with_columns(same_zero(pl.col(name)).alias(name) for name in doubles)\n    return own.join",
            "    own = rows\n    return own.join",
        ),
        bug(
            "events of a partition without a key are lost",
            PROCESS,
            'own.join(keys, on=names, how="inner", nulls_equal=True',
            'own.join(keys, on=names, how="inner", nulls_equal=False',
        ),
        bug(
            "what a partition without a key kept stays",
            PROCESS,
            'table.join(keys, on=names, how="anti", nulls_equal=True',
            'table.join(keys, on=names, how="anti", nulls_equal=False',
        ),
        bug(
            "that nothing is left is not written",
            PROCESS,
            "pl.lit(value=True).alias(_NONE)",
            "pl.lit(value=False).alias(_NONE)",
        ),
        bug(
            "events come in any order",
            PROCESS,
            "_with_partition(own, keys, read).sort(order)",
            "_with_partition(own, keys, read)",
        ),
        bug("events of one instant come in any order", PROCESS, "_require_order(node, read)\n", "pass\n"),
        bug(
            "equal events are two",
            PROCESS,
            "read.select(pl.struct(sorted(node.readings[0].attributes)).is_first_distinct())",
            "read.select(pl.int_range(pl.len()) >= 0)",
        ),
        bug(
            "of tied events one stays",
            PROCESS,
            "(~pl.struct(order).is_duplicated())",
            "(pl.struct(order).is_first_distinct())",
        ),
        bug(
            "rows may be complete before their step", PROCESS, "late = [at <= reach.after]", "late = [at < reach.after]"
        ),
        bug("rows may be complete after their step", PROCESS, "late += [at > reach.until]", "late += []"),
        bug("declared relations are not checked", PROCESS, "if node.result.relations != TRUE and", "if False and"),
        bug(
            "what must have a value may have none",
            PROCESS,
            "if not attribute.nullable and",
            "if attribute.nullable and",
        ),
        bug(
            "rows of any partition are taken",
            PROCESS,
            "numbers.is_between(0, partitions - 1).all()",
            "numbers.is_between(0, partitions).all()",
        ),
        bug(
            "a step that differs is taken",
            PROCESS,
            "if not one.sort(one.columns).equals(two.sort(two.columns)):",
            "if one.height != two.height:",
        ),
        bug("steps are not done in two parts", PROCESS, "if len(instants) > 1:", "if False:"),
        bug(
            "a declared relation is not used",
            ZONES,
            "return build.constrain(zones, temporal_formula(node.result.relations, node.schema), node.result.name)",
            "return zones",
        ),
        bug(
            "a row is complete with any instant of its own",
            ZONES,
            "completing(build.build(reading.input), reading, node.completed_by)",
            "completing(build.build(reading.input), reading, node.result.schema.temporal[0])",
        ),
        bug(
            "layers of an operator without keys are those of many partitions",
            TABLES,
            "(latest.over(keys) if keys else latest)",
            "(latest.over(keys) if keys else pl.col(_LAYER))",
        ),
    ),
)
