#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""The rank that one host serves."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rank
short_description: Lay, start, watch and stop the rank that a host serves
version_added: 0.1.0
description:
  - Keeps one deployment on a host, and the one before it whole, so that it can be gone back to.
  - A rank is a unit of systemd that runs a container or an installed vLLM; M(sparkring.cluster.deployment) makes it.
options:
  state:
    description:
      - V(checked) refuses, in a sentence each, whatever keeps O(unit) from starting; it changes nothing.
      - V(placed) lays O(unit) with its environment, and makes the key of the API on the head where there is none.
      - V(observed) says how the rank stands; it changes nothing.
      - V(stopped) stops the rank; with O(ranks) only where one of them does not run as it lies there.
      - V(started) starts the rank where it does not run, after a last look at ports, memory and containers.
      - V(ready) waits until the head has answered a real completion, or until a rank has ended.
      - V(swapped) stops the rank and lets the previous deployment take its place.
      - V(absent) stops the rank, and takes it, the previous one, the key and NCCL libraries away; caches stay.
    type: str
    choices: [checked, placed, observed, stopped, started, ready, swapped, absent]
    required: true
  unit:
    description: The rank, a document of schema C(sparkring.rank-unit/1).
    type: dict
  unit_text:
    description: The unit file.
    type: str
  environment:
    description: The environment file; it holds no secret.
    type: str
  ranks:
    description: What V(observed) said of all ranks.
    type: list
    elements: dict
  probe:
    description: Whether V(observed) asks the head for a completion.
    type: bool
    default: false
attributes:
  check_mode:
    description: Says what a run would change.
    support: full
  diff_mode:
    description: Shows the files before and after.
    support: full
author:
  - SparkRing (@sparkring)
"""

EXAMPLES = r"""
- name: Lay the rank
  sparkring.cluster.rank:
    state: placed
    unit: "{{ deployed.ranks[inventory_hostname].unit }}"
    unit_text: "{{ deployed.ranks[inventory_hostname].unit_text }}"
    environment: "{{ deployed.ranks[inventory_hostname].environment }}"

- name: Start it
  sparkring.cluster.rank:
    state: started
"""

RETURN = r"""
changes:
  description: Files, folders and units that were changed, or in check mode would be.
  returned: when O(state) changes something
  type: list
  elements: str
rank:
  description: How the rank stands, null where the host serves none.
  returned: when O(state) is V(observed), V(ready) or V(swapped)
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.sparkring.cluster.plugins.module_utils.node import rank_states
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        {
            "state": {"type": "str", "choices": [*rank_states.STATES, "ready"], "required": True},
            "unit": {"type": "dict"},
            "unit_text": {"type": "str"},
            "environment": {"type": "str"},
            "ranks": {"type": "list", "elements": "dict"},
            "probe": {"type": "bool", "default": False},
        },
        required_if=[("state", "checked", ["unit"]), ("state", "placed", ["unit", "unit_text", "environment"])],
        supports_check_mode=True,
    )
    try:
        answer = rank_states.reach(Host(), module.params, module.check_mode)
    except (HostError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
