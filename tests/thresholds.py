"""Every size at which the runtime takes another way, so that tests can set each to small by itself.

Set together they hide ways: with all of them small, the usual path of production is not among those that are tested.
`tests/runtime/test_thresholds.py` compares this with the source: a new number there belongs into one of the two lists.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from unittest.mock import patch

Where = Literal["embedded", "files", "background", "compiled", "spark"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number of the source: `module.name`, or `module.Class.field` or `module.function.parameter` for a default.

    `small` are values that a few rows cross. `where`: programs of pushed rows in process cross it ("embedded"), only
    programs over files do, only rows that threads push to a session in the background
    (`tests/runtime/test_background.py` sets it to small), only Spark does; or it is compiled into a kernel, and only
    rows enough cross it (`tests/properties/large.py` has them, also for patterns; the rounds of a cascade of partners
    are used up in `tests/runtime/test_situation_partners.py`). `tools/planted/sizes.py` has slips beyond these sizes.
    """

    module: str
    name: str
    small: tuple[float, ...]
    where: Where = "embedded"

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


EMBEDDED, STATE, KERNELS = "embedded", "state", "kernels"
THRESHOLDS = (
    Threshold("rows", "MOST", (-1, 2)),
    Threshold("eval.small.joins", "SMALL_PRODUCT", (-1, 4)),
    Threshold("rows", "MOST_PAIRS", (-1, 4)),
    Threshold("eval.small.groups", "_SAFE", (0, 1)),
    Threshold("eval.aggregates.partials", "_SAFE", (0, 1)),
    Threshold("eval.filters", "_MANY", (0, 2)),
    Threshold("eval.filters", "_MOST", (-1, 2)),
    Threshold("eval.aggregates.look_back", "LISTED", (-1, 4)),
    Threshold("eval.aggregates.look_back", "WORTH", (0, 4)),
    Threshold("eval.aggregates.look_back", "_MOST_ROWS", (0, 40)),
    Threshold("eval.aggregates.look_back", "_MOST", (0, 40)),
    Threshold("eval.aggregates.compiled", "MANY_ROWS", (0, 2)),
    Threshold("eval.aggregates.compiled", "MANY_ROWS_LOADED", (0, 2)),
    Threshold("eval.unevaluable", "MANY_ROWS", (0, 2)),
    Threshold("eval.joins.ranges", "CHUNK", (1, 3)),
    Threshold("eval.joins.ranges", "SMALL_PRODUCT", (-1, 4)),
    Threshold("eval.joins.ranges", "MANY_PAIRS", (0, 4)),
    Threshold("eval.joins.ranges", "PAIRS_PER_ROW", (0, 1)),
    Threshold("ordered.operators", "MANY", (0, 1)),
    Threshold("ordered.partition_store", "LOOSE", (0, 1)),
    Threshold("ordered.row_arrays", "LOOSE", (0, 2)),
    Threshold("ordered.state", "SMALL", (0, 1)),
    Threshold("ordered.state", "SLICED", (0, 2)),
    Threshold("ordered.state", "SLICE", (1, 2)),
    Threshold("ordered.state", "MERGED", (1, 4)),
    Threshold("ordered.state", "_MOST_DELTAS", (1, 2)),
    Threshold("eval.purge_rows", "ROUNDS", (1,)),
    Threshold("eval.purge_rows", "FEW_PAIRS", (-1, 4)),
    Threshold("ordered.partitions", "_CHUNKS", (1,)),
    Threshold("ordered.windows.queues", "LOOSE", (0, 2)),
    Threshold("ordered.over.queued.layout", "FEW_ROWS", (0, 3)),
    Threshold("ordered.sequences.found", "_NODES", (1, 2)),
    Threshold("ordered.sequences.found", "_THREADS", (1, 2)),
    Threshold("ordered.sequences.found", "WORTH", (0, 1)),
    Threshold("ordered.sequences.found", "MOST", (0, 2)),
    Threshold("ordered.sequences.nodes", "LOOSE", (0, 2)),
    Threshold("ordered.sequences.told", "FEW", (0, 1)),
    Threshold("kernels.partitions.rows", "MOVES", (), "compiled"),
    Threshold("kernels.partitions.ordering", "MOVES", (), "compiled"),
    Threshold("kernels.partitions.ordering", "SHARE", (), "compiled"),
    Threshold("ordered.new_events", "BUCKETED", (0, 2)),
    Threshold("ordered.match.order", "_ENOUGH", (1, 2)),
    Threshold("ordered.derive.events", "TABLED", (0, 1)),
    Threshold("engines.memory", "CACHE_SHARE", (0, 1e-8)),
    Threshold("engines.embedded.steps.evaluation", "LOOKED_UP", (0, 2)),
    Threshold("engines.embedded.steps.evaluation", "SHARE", (0, 1)),
    Threshold("engines.embedded.steps.segment_cache", "LOOKS", (0, 1)),
    Threshold("eval.joins.key_index", "INDEXED", (0, 1)),
    Threshold("eval.joins.indexed_rows", "ROUNDS", (0, 1)),
    Threshold("eval.joins.indexed_rows", "_GROWTH", (1, 2)),
    Threshold("engines.embedded.executor", "EmbeddedExecutor.pending_bytes", (0, 100)),
    Threshold("engines.embedded.steps.rewriting", "PIECE_BYTES", (0, 100)),
    Threshold("engines.embedded.steps.rewriting", "PIECE_ROWS", (1, 2)),
    Threshold("eval.unevaluable", "MOST_PAIRS", (1, 4)),
    Threshold("batch.increments", "MOST_STEPS", (1, 2)),
    Threshold("batch.garbage", "FOLDED", (0, 1)),
    Threshold("batch.garbage", "LEAST_BEGUN", (0, 2)),
    Threshold("batch.garbage", "LEAST_FOLDED", (0, 2)),
    Threshold("batch.garbage", "LEAST_REWRITTEN", (0, 2)),
    Threshold("batch.garbage", "MERGED_BYTES", (0, 100)),
    Threshold("batch.garbage", "MERGED_ROWS", (0, 2)),
    Threshold("batch.garbage", "MOST_SEGMENTS", (1, 2)),
    Threshold("batch.garbage", "REWRITE_COST", (0, 2)),
    Threshold("batch.garbage", "REWRITTEN", (0, 1)),
    Threshold("batch.garbage", "WAITING", (3,)),
    Threshold("plan.folding.shards", "MOST_SHARDS", (1, 2)),
    Threshold("plan.folding.shards", "SHARD_ROWS", (1, 4)),
    Threshold("plan.folding.shards", "SOON", (0, 1)),
    Threshold("ingest.ingest", "TOGETHER", (1, 2)),
    Threshold("ingest.rejected_text", "_TOGETHER", (1, 2)),
    Threshold("ingest.validation", "JUDGED", (1, 2)),
    Threshold("eval.unevaluable", "MOST_ERRORS", (1, 2)),
    Threshold("eval.purge_schedule", "FLOOR", (0, 2)),
    Threshold("eval.purge_schedule", "JUDGED", (0, 2)),
    Threshold("eval.purge_schedule", "PATIENCE", (0, 1)),
    Threshold("eval.purge_schedule", "STEP", (1, 3)),
    Threshold("eval.purge_schedule", "STRIDE", (0, 2)),
    Threshold("eval.purge_schedule", "WORTH", (0.0, 1.0)),
    Threshold("eval.purge_schedule", "WHOLE_STEPS", (0, 1)),
    Threshold("eval.purge_schedule", "YOUNG", (0, 2)),
    Threshold("batch.loop", "APART", (0, 1)),
    Threshold("state.checkpoint", "_SWEEP_EVERY", (1, 2)),
    Threshold("state.segments", "FANOUT", (2, 3)),
    Threshold("state.segments", "plan_compaction.max_rows", (1, 4)),
    Threshold("state.batch", "_MANY", (0, 1)),
    Threshold("state.store.packs", "LARGEST_PACK", (0, 100), "files"),
    Threshold("state.store.packs", "LARGEST_PART", (0, 100), "files"),
    Threshold("state.store.packs", "LARGEST_TABLE", (0, 100), "files"),
    Threshold("state.quarantine", "_MOST_BYTES", (0, 100)),
    Threshold("state.quarantine", "_MOST_ROWS", (0, 2)),
    Threshold("state.quarantine", "_LEAST_ROWS", (0, 2)),
    Threshold("state.quarantine", "_REWRITTEN", (0, 1)),
    Threshold("state.quarantine", "_MANY_FILES", (0, 2)),
    Threshold("state.quarantine", "TOGETHER", (1, 2)),
    Threshold("state.quarantine", "_IN_MEMORY", (1, 2)),
    Threshold("state.rejects.file_tables", "LISTED", (0, 1)),
    Threshold("state.rejects.file_tables", "_MERGED", (0, 2)),
    Threshold("state.rejects.file_tables", "_MOST_TABLES", (1, 2)),
    Threshold("ingest.quarantine", "_SMALL", (0, 100), "files"),
    Threshold("engines.ahead.following", "SECONDS_APART", (0,), "files"),
    Threshold("engines.ahead.following", "LOOKS_APART", (0,), "files"),
    Threshold("connectors.directory", "APART", (0, 1), "files"),
    Threshold("connectors.directory", "SMALL_DIRECTORY", (0, 1), "files"),
    Threshold("connectors.directory", "_TOGETHER", (1, 2), "files"),
    Threshold("connectors.directory", "_SLICE", (1, 2), "files"),
    Threshold("connectors.waiting", "_SHARE", (0, 1), "files"),
    Threshold("connectors.waiting", "_LOOSE", (0, 2), "files"),
    Threshold("state.inputs.consumed", "LEAST_RECENT", (0, 1), "files"),
    Threshold("state.inputs.consumed", "_SHARE", (1, 2), "files"),
    Threshold("state.outputs.compaction", "FANOUT", (2, 3), "files"),
    Threshold("state.outputs.compaction", "_MOST_BYTES", (1, 100), "files"),
    Threshold("state.outputs.compaction", "_MOST_PARTS", (1, 2), "files"),
    Threshold("state.outputs.compaction", "_MOST_ROWS", (1, 4), "files"),
    Threshold("state.outputs.compaction", "_ROW_GROUP", (1, 4), "files"),
    Threshold("state.outputs.compaction", "_PIECE", (1, 4), "files"),
    Threshold("state.inputs.put_away", "_CHUNK", (1, 100), "files"),
    Threshold("state.inputs.leaving", "AT_ONCE", (1, 2), "files"),
    Threshold("state.outputs.staging", "GATHERED", (2, 3), "files"),
    Threshold("state.store.sync_threads", "SYNCS", (1, 2), "files"),
    Threshold("engines.embedded.digests", "_WORDS", (), "files"),
    Threshold("engines.ahead.read_ahead", "MOST", (0, 100), "files"),
    Threshold("tuning.tuner", "WORTH", (0,), "files"),
    Threshold("tuning.tuner", "AGAIN", (0, 1), "files"),
    Threshold("engines.embedded.file_polling", "_LOOKS_APART", (0, 1), "files"),
    Threshold("connectors.parquet_files", "_FEW_ROWS", (0, 2), "files"),
    Threshold("state.inputs.positions", "_MERGED", (0, 1), "files"),
    Threshold("state.inputs.positions", "_MOST_TABLES", (1, 2), "files"),
    Threshold("state.inputs.positions", "_RECENT", (0, 1), "files"),
    Threshold("state.store.local", "_CHUNK", (1, 100), "files"),
    Threshold("state.store.local", "_LARGE", (0, 100), "files"),
    Threshold("ingest.raw_rows", "_TOGETHER_BYTES", (0, 100), "background"),
    Threshold("kernels.band_join", "_MOVES", (), "compiled"),
    Threshold("kernels.partners", "ROUNDS", (), "compiled"),
    Threshold("kernels.grouping", "CELLS_PER_ROW", (0, 100)),
    Threshold("kernels.pool", "_LOOSE", (0, 2)),
    Threshold("kernels.ranges.range_search", "ROWS", (1, 2)),
    Threshold("kernels.ranges.range_search", "_FEW", (1, 2)),
    Threshold("kernels.ranges.range_search", "_NEARBY", (), "compiled"),
    Threshold("kernels.partition_numbers", "_SMALL_RANGE", (0, 2)),
    Threshold("kernels.partition_numbers", "_SPARSE", (0, 1)),
    Threshold("kernels.event_runs", "BLOCK", (8, 64)),
    Threshold("plan.sharding", "DRIVER_BYTES", (0,), "spark"),
    Threshold("plan.sharding", "SHARD_BYTES", (0,), "spark"),
    Threshold("engines.spark.engine", "PENDING_BYTES", (0, 1000), "spark"),
    Threshold("engines.spark.executor", "PARTITION_BYTES", (4096,), "spark"),
    Threshold("plan.placement", "MOST_SHARDS", (1, 2), "spark"),
    Threshold("engines.spark.eval.column_cache", "KEPT", (1,), "spark"),
    Threshold("engines.spark.eval.lying", "ROWS_A_SHARD", (1,), "spark"),
    Threshold("engines.spark.eval.portions", "WORTH", (0.0,), "spark"),
    Threshold("engines.spark.eval.shards", "TOGETHER", (1,), "spark"),
    Threshold("engines.spark.tasks.held", "MOST_BYTES", (0,), "spark"),
    Threshold("engines.spark.tasks.held", "MOST_RUNS", (1,), "spark"),
    Threshold("engines.spark.tasks.held", "MOST_JOBS", (1,), "spark"),
    Threshold("engines.spark.workers", "FLUSH_BYTES", (1000,), "spark"),
    Threshold("engines.spark.setup.session", "ARROW_ROWS_PER_BATCH", (1,), "spark"),
)

#: Numbers of the source that are no sizes at which rows take another way, each with what it is.
OTHERS = {
    "kernels.paths.counts.MANY": "the greatest number that is told",
    "kernels.paths.totals._SMALL": "numbers that have a product",
    "kernels.paths.totals._SPLIT": "a factor",
    "kernels.sequences.every.ENDED": "a mark",
    "kernels.sequences.every.NODE_WIDTH": "how many integers a node has",
    "kernels.sequences.listed.ENTRY_WIDTH": "how many integers an entry has",
    "kernels.sequences.listed.LAST_WIDTH": "how many integers are kept of a state",
    "kernels.sequences.listed.LINK_WIDTH": "how many integers a link has",
    "kernels.sequences.every.MATCHES": "a place",
    "kernels.sequences.listed.NOTHING": "a mark",
    "kernels.sequences.machine.DEPTH": "how deep programs are; deeper ones are not compiled",
    "kernels.sequences.machine._GREATEST": "a number",
    "kernels.sequences.machine._LEAST": "a number",
    "kernels.sequences.pending.EMPTY": "a mark",
    "kernels.sequences.pending.NONE": "a mark",
    "kernels.sequences.pending.NOTHING": "a mark",
    "kernels.sequences.threads.EVER": "an instant",
    "kernels.sequences.threads.LOW_BITS": "how many bits a word has",
    "kernels.sequences.threads.NEVER": "an instant",
    "kernels.sequences.threads.NOWHERE": "a place",
    "kernels.sequences.threads.NO_LOOK": "an instant",
    "ordered.sequences.told.MOST_STATES": "how many bits a mask has",
    "plan.folding.shards.BRANCHES": "how numbers of shards are made",
    "plan.folding.shards.DEEPEST": "how deep shards lie",
    "plan.folding.shards.ROOT": "a number",
    "plan.folding.shards._NODE_BITS": "bits of a number",
    "engines.many_pairs.TOLD": "how many pairs are told: tests/runtime/test_many_pairs.py sets it",
    "engines.memory.ASSUMED_MEMORY": "bytes of memory where no system says how many there are",
    "batch.report.KEPT_REPORTS": "reports that are kept",
    "connectors.directory._UNSETTLED_NS": "a span of time",
    "inspect.live_display.DELAY": "a span of time",
    "engines.rejections._ROW": "characters of a row",
    "engines.file_density._FIRST": "files of which rows are estimated",
    "engines.file_density._HEAD": "bytes of which lines are counted",
    "engines.spark.eval.portions.UNEVEN": "a ratio of times",
    "engines.spark.executor.INGEST_TIMES": "a ratio of sizes",
    "engines.spark.run.AT_ONCE": "a span of time",
    "tuning.costs.ASSUMED": "a weight of what is assumed",
    "tuning.costs.KEPT": "a weight of what was measured",
    "tuning.costs._COSTS": "numbers of a cost",
    "tuning.costs._MILLION": "a unit",
    "tuning.tuner._VALUE": "bytes of a value",
    "tuning.tuner.BETTER": "a ratio of times",
    "tuning.tuner.DEARER": "a ratio of times",
    "tuning.tuner.DENSITY": "rows a byte that are assumed",
    "cli.operation.STALE": "a span of time",
    "engines.embedded.background._LOOK": "a span of time",
    "engines.embedded.background.BATCH_SECONDS": "a span of time",
    "engines.embedded.background._LONGEST": "a span of time",
    "engines.embedded.background._MOST_ROWS": "rows that an option may ask for",
    "engines.embedded.background._SECOND": "microseconds of a second",
    "inspect.results.SHOWN_ROWS": "rows that a text shows",
    "inspect.timelines.axis.MARKS": "instants of an axis",
    "inspect.timelines.axis.WIDTH": "a width",
    "inspect.timelines.axis._LEAST_PART": "how far one may zoom",
    "inspect.timelines.drawing._SOLID": "lines that are drawn solid",
    "ingest.inputs._CSV_BLOCK": "of CSV alone, which tests/runtime/test_csv_files.py reads by small blocks",
    "ingest.inputs._CSV_MOST": "a limit of Arrow's blocks",
    "ingest.inputs._FIRST_ROW": "how rows of a file are counted",
    "ingest.inputs._MOST_DIGITS": "digits of a number",
    "ordered.process.other_seed._PATIENCE": "a span of time",
    "ordered.process.verification._GROUPS": "of the test kit",
    "ingest.quarantine._TRIES": "tries",
    "engines.spark.input.wake_ups._LENGTH": "characters of a name",
    "engines.spark.input.watching.APART": "a span of time",
    "engines.spark.input.watching.TIMES": "a span of time",
    "engines.spark.input.watching.CLOCK": "a span of time",
    "engines.spark.input.watching.ALIVE": "a span of time",
    "engines.spark.input.watching.AGAIN": "a span of time",
    "state.quarantine._PARTS": "parts of an age",
    "ingest.values._MOST_DIGITS": "digits of a number",
    "cli.doctor.COMFORTABLE_DISK": "of advice",
    "cli.doctor.COMFORTABLE_MEMORY": "of advice",
    "eval.aggregates.partials._HALF": "a part of a number",
    "eval.aggregates.sketches._MIDDLE": "where parts of the number line are counted from",
    "eval.aggregates.sketches.NUMBER_BITS": "bits of a number",
    "ordered.over.queued.arrival.HALF": "a part of a number",
    "eval.aggregates.pairs._HALF": "a part of a number",
    "ordered.windows.lifting._NONE": "an instant before all others",
    "ordered.windows.panes.ENDLESS": "panes of a block that never ends",
    "ordered.windows.panes._YEAR": "days of a year",
    "kernels.over.running._LOW": "a part of a number",
    "kernels.partitions.rows.NEVER": "an instant",
    "ordered.asof.candidates._NONE": "no row",
    "ordered.sequences.kept.ADDED": "a mark",
    "ordered.over.operator._ANY": "no number",
    "ordered.over.queued.layout._ANY": "no number",
    "ordered.over.frames._DECIMAL": "the largest number of a type",
    "ordered.over.frames._HALF": "a part of a number",
    "eval.small.groups._HALF": "a part of a number",
    "eval.aggregates.look_back_form._LARGEST": "a limit of the size of terms",
    "eval.aggregates.look_back_form.MOST_LOOKS": "a limit of the size of queries",
    "eval.aggregates.look_back._HALF": "half of an integer sum, as it is stored",
    "eval.aggregates.look_back._SMALLER": "a scale of values",
    "eval.aggregates.compiled._HALF": "a part of a number",
    "eval.aggregates.compiled._LARGE": "a limit of values, which random values pass",
    "ordered.state_tables._MOST_IDS": "a limit of 64 bits",
    "ordered.match.order.THRESHOLD": "a share, not a size",
    "ordered.match.order.WEIGHT": "a share, not a size",
    "ordered.sequences.ahead.UNKNOWN": "a mark",
    "ordered.state.VERSION": "of a format",
    "eval.functions.frame._LARGEST": "the size of an expression, not of data: tests/runtime/test_terms_random.py",
    "eval.functions.text._LONG": "a limit of values",
    "eval.joins.key_index._MOST": "a limit of 64 bits: tests/runtime/test_look_ups.py sets it",
    "eval.joins.bands._MOST": "a limit of 64 bits: tests/runtime/test_joins.py sets it",
    "ordered.state_tables.NO_ID": "a mark",
    "ordered.derive.derivation.NO_LIMIT": "a mark",
    "arguments._MOST_THREADS": "a limit of an option",
    "kernels.grouping._FREE": "a mark",
    "kernels.cells.NONE": "a mark",
    "kernels.ranges.range_search._UNKNOWN": "a mark",
    "kernels.search_plan._CERTAIN": "a set of bits",
    "kernels.search_plan._LARGE": "a limit of 64 bits",
    "kernels.event_runs.NEVER": "a mark",
    "ordered.partition_store.NO_LOOK": "a mark",
    "kernels.situations.OPEN": "a mark",
    "kernels.situations._FULL": "bits",
    "kernels.partition_numbers._FREE": "a mark",
    "inspect.metrics.hooks._DAY": "a unit",
    "inspect.metrics.hooks._SECOND": "a unit",
    "inspect.suspension.LISTED": "partitions that an answer lists",
    "inspect.suspension.MOST_WINDOWS": "beyond it windows are counted: tests/contexts/test_why.py",
    "testkit.conformance._DAY": "a unit",
    "testkit.conformance._MOST_ROWS": "of the conformance table of operations",
    "plan.lower.MOST_CONDITIONS": "bits of an integer: tests/runtime/test_event_runs.py",
    "ingest.raw_rows._CONTINUED": "a byte",
    "ingest.raw_rows._MOST_BYTES": "a limit of Arrow's offsets",
    "kernels.partition_numbers._LARGE_RANGE": "a limit of the integers of a table",
    "ordered.row_arrays.MOST_OF_A_ROW": "a limit beyond which an instant is refused",
    "ordered.row_arrays.MOST_IN_ALL": "likewise, of several",
    "batch.increments.ENDLESS": "a limit beyond which a program is refused",
    "batch.increments.MANY_ROWS": "likewise",
    "batch.increments.ROWS_PER_STEP": "likewise",
    "batch.increments.GROWING_STEPS": "likewise",
    "batch.increments.TOLD_STEPS": "steps after which a run says something",
    "ingest.ingest._SHOWN": "characters of a message",
    "engines.spark.eval.aggregates._LOW": "a part of a number",
    "engines.spark.setup.java.OLDEST_JAVA": "a version",
    "engines.spark.setup.session._SOCKET_PATH": "a limit of the operating system",
    "engines.spark.listener._WAITING": "reports that a listener keeps",
    "engines.spark.eval.sums._ODD": "a mark",
    "engines.spark.eval.sums._HIGHER": "a mark",
    "engines.spark.eval.sums._SMALLER": "a scale of values",
    "engines.spark.eval.relational.SHARES": "shares for each partition of a shuffle",
    "engines.spark.eval.sums._LARGEST": "a limit of values",
    "engines.spark.eval.sums._WIDTH": "bits of a number",
    "state.outputs.compaction._APART": "seconds",
    "state.outputs.beside.GRACE": "seconds",
    "state.store.renaming.EXCHANGE": "of the system",
    "state.store.renaming.NO_REPLACE": "of the system",
    "state.store.renaming._HERE": "of the system",
    "engines.compactions._SHARE": "a part of the time of a batch",
    "engines.compactions._ROWS": "times as many rows",
    "cli.commands._CLOCK": "seconds",
    "state.outputs.compaction._TRIES": "tries",
    "state.store.local._NOTE_BYTES": "of a lock file",
    "state.inputs.put_away._MOST_OF_A_NAME": "a limit of file systems",
    "state.inputs.put_away._MOST_OF_AN_ENDING": "bytes of a name",
    "state.inputs.leaving._MOST_TURNS": "batches until a file is tried again",
    "state.inputs.put_away._FAILURES": "failures after which a batch tries no more of a folder",
    "state.inputs.put_away._MOST_FAILURES": "likewise, of all",
    "state.codec.FORMAT_VERSION": "of a format",
    "state.codec.INT64_MAX": "a limit of 64 bits",
    "state.codec.INT64_MIN": "a limit of 64 bits",
    "state.leftovers.RETAINED": "manifests that are kept",
    "state.meta._SHOWN": "of a message",
    "inspect.state_listing._TRIES": "tries",
    "ingest.ingest.WHOLE_FILE": "no position",
    "ingest.validation._YEAR_1": "an instant",
}


@contextmanager
def small(threshold: Threshold | None, value: float | None = None) -> Iterator[None]:
    """Everything inside sees the threshold at this value (by default the first of `small`), wherever it was imported
    to.
    """
    if threshold is None:
        yield
        return
    value = threshold.small[0] if value is None else value
    module = importlib.import_module(f"tidegate.runtime.{threshold.module}")
    owner, _, name = threshold.name.rpartition(".")
    with ExitStack() as stack:
        if owner:
            _patch_default(stack, getattr(module, owner), name, value)
            yield
            return
        kept = getattr(module, name)
        for other in list(sys.modules.values()):
            path = getattr(other, "__name__", "")
            if path.startswith("tidegate.runtime") and _has(other, name, kept) and _of(other, module, name):
                stack.enter_context(patch.object(other, name, value))
        for function in [one for one in vars(module).values() if getattr(one, "__kwdefaults__", None)]:
            for parameter, default in list(function.__kwdefaults__.items()):
                if parameter == name.lower() and default == kept:
                    _patch_default(stack, function, parameter, value)
        yield


def _has(module: Any, name: str, kept: object) -> bool:
    return name in vars(module) and vars(module)[name] == kept


def _of(other: Any, module: Any, name: str) -> bool:
    """Whether a module has the number from this one: it is that one, or imports it and has no such number of its
    own.
    """
    own = {f"tidegate.runtime.{one.module}" for one in THRESHOLDS if one.name == name}
    return other is module or other.__name__ not in own


def _patch_default(stack: ExitStack, of: Any, name: str, value: float) -> None:
    function: Any = vars(of)["__init__"] if isinstance(of, type) else of
    if name in (function.__kwdefaults__ or {}):
        changed = {**function.__kwdefaults__, name: value}
        stack.enter_context(patch.object(function, "__kwdefaults__", changed))
        return
    code, defaults = function.__code__, list(function.__defaults__)
    places = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    defaults[places.index(name)] = value
    stack.enter_context(patch.object(function, "__defaults__", tuple(defaults)))


def drawn(rng: random.Random, *where: Where) -> tuple[Threshold | None, float | None]:
    """One threshold of these places and a small value of it, or none in one of four draws."""
    some = [one for one in THRESHOLDS if one.small and one.where in (where or ("embedded",))]
    if rng.random() < 0.25:
        return None, None
    threshold = rng.choice(some)
    return threshold, rng.choice(threshold.small)
