#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""One host's part of the fabric."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric
short_description: Make a host equal to its plan, or take everything of the plan away
version_added: 0.1.0
description:
  - Lays files, boot units, NetworkManager profiles, kernel settings, forward rules, routes, neighbours, relay
    filters and markers of one host's plan, compares whole objects, and changes only what differs.
  - Owns only what carries the marks of this collection. Something foreign in the way of a planned object is
    refused in one sentence before anything is changed.
  - After applying it looks again, and fails if anything still differs from the plan.
options:
  plan:
    description: The host's plan, a document of schema C(sparkring.host-plan/1).
    type: dict
    required: true
  program:
    description: The node program that the boot units run, in base64. The action plugin gives it.
    type: str
  marker_source:
    description: C source of the marker for cards that mark themselves. The action plugin gives it where it is needed.
    type: str
  state:
    description: Whether the plan's objects shall be there, or everything of this collection be gone.
    type: str
    choices: [present, absent]
    default: present
  take_over:
    description:
      - Ids of objects of the reference tool that are taken away before the plan is laid; ids that the host lacks are
        passed over. A refused run lists the ids that stand on the host.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Says exactly which objects a run would change.
    support: full
  diff_mode:
    description: Shows each object that differs in one line.
    support: full
author:
  - SparkRing (@sparkring)
"""

EXAMPLES = r"""
- name: Make the host equal to its plan
  sparkring.cluster.fabric:
    plan: "{{ host_plan }}"

- name: Take everything away
  sparkring.cluster.fabric:
    plan: "{{ host_plan }}"
    state: absent
"""

RETURN = r"""
changes:
  description: Objects that were changed, or in check mode would be, in the order of the work.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Id of the object.
      type: str
      returned: always
      sample: filter/enp1s0f0np0/0x88b5
    action:
      description: What was done to it, C(add), C(replace) or C(remove).
      type: str
      returned: always
      sample: replace
    reason:
      description: Why.
      type: str
      returned: always
      sample: set_mac is 52:54:00:01:00:01, planned 52:54:00:01:00:03
"""

import base64

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        {
            "plan": {"type": "dict", "required": True},
            "program": {"type": "str"},
            "marker_source": {"type": "str"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "take_over": {"type": "list", "elements": "str", "default": []},
        },
        required_if=[("state", "present", ["program"])],
        supports_check_mode=True,
    )
    given = module.params
    try:
        plan = HostPlan.from_plain(given["plan"])
        if given["state"] == "present":
            program = base64.b64decode(given["program"])
            marker, check = given["marker_source"], module.check_mode
            outcome = fabric.setup(Host(), plan, program, marker, check, given["take_over"])
        else:
            outcome = fabric.remove(Host(), plan, module.check_mode)
    except (HostError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    diff = {"before": outcome.before, "after": outcome.after}
    module.exit_json(changed=bool(outcome.changes), changes=outcome.changes, diff=diff)


if __name__ == "__main__":
    main()
