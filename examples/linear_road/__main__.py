"""A small road for half an hour: what the queries answer, and whether the checker says the same."""

import sys
from collections import Counter

from examples.linear_road.checker import check
from examples.linear_road.files import rows
from examples.linear_road.generator import Options, Road
from examples.linear_road.queries import DISTANCES, program


def main() -> int:
    """Prints how many answers of each kind there are; the exit status says whether all were right."""
    road = Road(0, Options(traffic=0.1, stretch=(40, 50), accidents=1 / 300))
    given = rows([road], 1800)
    results = program.run({"Road": given, "Distances": DISTANCES})
    right = check(given)
    expected: dict[str, list[tuple[int, ...]]] = {
        "Notifications": list(right.notifications),
        "Alerts": list(right.alerts),
        "Balances": [(time, qid, owed) for time, _, qid, owed in right.balances],
        "Daily": list(right.daily),
        "Charges": list(right.charges),
    }
    print(f"{len(given):,} rows, {len(road.truth)} accidents")
    equal = True
    for name, wanted in expected.items():
        found = Counter(tuple(row.values()) for row in results[name].rows())
        same = found == Counter(wanted)
        equal = equal and same
        print(f"{name:14}{found.total():8,}  {'as the checker says' if same else 'DIFFERENT'}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
