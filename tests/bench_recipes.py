"""Render every recipe on its example ring and print the seconds of one core (``make bench-recipes``)."""

from __future__ import annotations

import time

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import systemd
from tests.unit.recipe.examples import ALL, RENDERED, ring, units


def main() -> None:
    """The rings are planned beforehand."""
    for name in RENDERED:
        ring(ALL[name].ring.layout)
    before = time.process_time()
    made = [unit for name in RENDERED for unit in units(ALL[name])]
    written = [systemd.unit_text(unit) + systemd.environment_text(unit) for unit in made]
    seconds = time.process_time() - before
    print(f"{len(written)} ranks of {len(RENDERED)} recipes rendered in {seconds:.2f} s")


if __name__ == "__main__":
    main()
