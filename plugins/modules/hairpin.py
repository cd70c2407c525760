#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""The hairpin setting of one host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hairpin
short_description: Bring the hairpin setting of a relaying host's functions into effect
version_added: 0.1.0
description:
  - Sets the hairpin queues that relays need on each ConnectX function of the plan, restarts that function's driver and
    waits for netdev, address and GID to return, one function at a time; then lays again what the restart took.
  - Refuses in one sentence, before any change, while anything uses RDMA or the GPU, while a marker or model unit runs,
    where a filter or an address would not come back, and where the hardware is not that of the plan.
  - Writes each restart to a journal before it begins. One that did not end well keeps the boot unit from trying again
    until this module has run to its end.
  - Does nothing where the setting is in effect, and on hosts that do not relay in their card.
options:
  plan:
    description: The host's plan, a document of schema C(sparkring.host-plan/1).
    type: dict
    required: true
attributes:
  check_mode:
    description: Says what a run would do, or why it would refuse.
    support: full
  diff_mode:
    description: Has nothing to show.
    support: none
author:
  - SparkRing (@sparkring)
"""

EXAMPLES = r"""
- name: Bring the hairpin setting into effect
  sparkring.cluster.hairpin:
    plan: "{{ host_plan }}"
"""

RETURN = r"""
changes:
  description: Functions that were brought into effect, or in check mode would be, in the order of the work.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: The function, by its role.
      type: str
      returned: always
      sample: hairpin/cw_primary
    action:
      description: Always C(replace).
      type: str
      returned: always
      sample: replace
    reason:
      description: The state that it was in, and why.
      type: str
      returned: always
      sample: default (2 queues of 1024, needed are 4 of 8192)
sparkring_lines:
  description: One line for each function, to show.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import hairpin_run
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host


def main() -> None:
    """Run the module."""
    module = AnsibleModule({"plan": {"type": "dict", "required": True}}, supports_check_mode=True)
    try:
        plan = HostPlan.from_plain(module.params["plan"])
        outcome = hairpin_run.bring(Host(), plan, hairpin_run.LIVE, module.check_mode)
    except (HostError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(outcome.changes), changes=outcome.changes, sparkring_lines=outcome.lines)


if __name__ == "__main__":
    main()
