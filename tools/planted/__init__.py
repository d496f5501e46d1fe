"""The bugs that `planted_bugs.py` plants: each a plausible slip in a rule of the analysis or in how an engine obeys it."""

from __future__ import annotations

from tools.planted import (
    analysis,
    arriving,
    common,
    counting,
    given,
    grids,
    input,
    kept,
    operators,
    patterns,
    protocol,
    purging,
    recursive,
    required,
    runtime,
    schedules,
    sharding,
    situations,
    stretches,
    use,
)

GROUPS = (
    required.GROUP,
    analysis.GROUP,
    runtime.GROUP,
    operators.GROUP,
    common.GROUP,
    input.GROUP,
    recursive.GROUP,
    sharding.GROUP,
    situations.GROUP,
    given.GROUP,
    counting.GROUP,
    stretches.GROUP,
    kept.GROUP,
    purging.GROUP,
    grids.GROUP,
    use.GROUP,
    arriving.GROUP,
    schedules.GROUP,
    protocol.GROUP,
    patterns.GROUP,
)
