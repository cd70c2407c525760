"""The lab's wiring follows the planner's rule: cable e joins p0 of position e to p1 of the next, a pair's both p0."""

from __future__ import annotations

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import ROLES
from ansible_collections.sparkring.cluster.plugins.module_utils.lab import layout as names
from ansible_collections.sparkring.cluster.plugins.module_utils.lab.commands import LabError


@pytest.mark.parametrize("name", names.LAYOUTS)
def test_every_cable_joins_neighbours_and_no_port_has_two(name: str) -> None:
    layout = names.parse(name)
    ends = [end for cable in range(layout.cables) for end in layout.ends(cable)]
    assert len(ends) == len(set(ends))
    for cable in range(layout.cables):
        (first, first_port), (second, second_port) = layout.ends(cable)
        assert (second - first) % layout.size == 1
        assert (first_port, second_port) == (0, 0 if name == "pair" else 1)
        assert layout.cable_at(first, first_port) == layout.cable_at(second, second_port) == cable


@pytest.mark.parametrize(
    ("name", "open_ports"),
    [
        ("pair", {(0, 1), (1, 1)}),
        ("path-3", {(0, 1), (2, 0)}),
        ("path-8", {(0, 1), (7, 0)}),
        ("cycle-3", set()),
        ("cycle-8", set()),
    ],
)
def test_open_ports(name: str, open_ports: set[tuple[int, int]]) -> None:
    layout = names.parse(name)
    ports = {(host, port) for host in range(layout.size) for port in (0, 1)}
    assert {place for place in ports if layout.cable_at(*place) is None} == open_ports


def test_unknown_layouts_and_cables_are_named() -> None:
    with pytest.raises(LabError, match="no layout 'cycle-9'"):
        names.parse("cycle-9")
    with pytest.raises(LabError, match="Layout path-4 has no cable 3; its cables are 0 to 2"):
        names.parse("path-4").ends(3)


def test_nics_of_a_port_are_its_two_functions() -> None:
    for port in (0, 1):
        assert [ROLES[index - 1].port for index in names.port_nics(port)] == [port, port]
    assert all(len(names.tap(7, index)) <= 15 for index in range(5))
