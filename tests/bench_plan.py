"""Plan 1,000 rings of eight on one core and print the seconds (``make bench-plan``)."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import conftest  # noqa: F401
from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import drawing, planner, summary

from rings import make_bindings, make_inventory

RINGS = 1000


def main() -> int:
    """Plan distinct rings, from inventory to the text of every file."""
    started = time.perf_counter()
    size = 0
    planning = 0.0
    for number in range(RINGS):
        names = [f"r{number}-{position}" for position in range(8)]
        given = make_inventory("cycle-8", f"r{number}", names, sparkring_supernet=f"10.{number % 250}.0.0/20")
        bound = make_bindings(given)
        before = time.process_time()
        plan = planner.plan(given, bound)
        planning += time.process_time() - before
        texts = [documents.to_text(plan), *(documents.to_text(host) for host in plan.hosts.values())]
        size += sum(map(len, [*texts, summary.markdown(plan), drawing.svg(plan)]))
    seconds = time.perf_counter() - started
    print(f"{RINGS} rings of 8: planned in {planning:.1f} s of one core; with all files {seconds:.1f} s by the clock ({size / 1e6:.0f} MB)")
    return 0 if planning < 60 else 1


if __name__ == "__main__":
    sys.exit(main())
