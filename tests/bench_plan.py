"""Plan 1,000 rings of eight on one core and print the seconds (``make bench-plan``: python -m tests.bench_plan)."""

from __future__ import annotations

import time

from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import planner
from tests.rings import make_bindings, make_inventory

RINGS = 1000


def main() -> None:
    """Plan distinct rings, each proved and digested; the time is that of one core."""
    seconds = 0.0
    for number in range(RINGS):
        names = [f"r{number}-{position}" for position in range(8)]
        given = make_inventory("cycle-8", f"r{number}", names, sparkring_supernet=f"10.{number % 250}.0.0/20")
        bound = make_bindings(given)
        before = time.process_time()
        planner.plan(given, bound)
        seconds += time.process_time() - before
    print(f"{RINGS} rings of eight planned in {seconds:.1f} s")


if __name__ == "__main__":
    main()
