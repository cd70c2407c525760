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
  - Before it changes anything it saves what of ours is there. The host goes back to that by itself, also at a boot,
    unless the change is confirmed in time with O(state=confirmed) by the same run.
  - While a change is not confirmed, any other run is refused by the operator's name. A run that was killed can be
    repeated at once by the same operator on the same controller.
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
    description:
      - Whether the plan's objects shall be there, or everything of this collection be gone.
      - V(confirmed) keeps a change that this run has made, once every planned neighbour answers a full packet, and
        the management address and the default routes are what they were. In check mode it only proves that.
    type: str
    choices: [present, absent, confirmed]
    default: present
  revert_after:
    description:
      - Seconds that a change waits to be confirmed, counted from its end. Not less than 30.
      - The action plugin gives 180 for each turn that the hosts of the play take, as throttle and forks let them.
    type: int
    default: 180
  operator:
    description: Who runs this, as user and controller. The action plugin gives it.
    type: str
  run:
    description: What tells this run from others of the operator. The action plugin gives it.
    type: str
  continues:
    description: A run that is gone, and whose change this one goes on with. The action plugin gives it.
    type: str
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

- name: Keep the change
  sparkring.cluster.fabric:
    plan: "{{ host_plan }}"
    state: confirmed

- name: Take everything away, until it is confirmed
  sparkring.cluster.fabric:
    plan: "{{ host_plan }}"
    state: absent
"""

RETURN = r"""
pending:
  description:
    - Whether a change waits to be confirmed.
    - Where a run is refused, whose change waits, as O(operator) and O(run).
  returned: when O(state) is not V(confirmed)
  type: raw
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
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import confirm, fabric
from ansible_collections.sparkring.cluster.plugins.module_utils.node.change import PendingRefused, Run
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host

SHORTEST = 30


def work(given: dict[str, Any], check: bool) -> dict[str, Any]:
    """Do what the state says; the module's answer."""
    plan = HostPlan.from_plain(given["plan"])
    if given["revert_after"] < SHORTEST:
        raise ValueError(f"revert_after is {given['revert_after']}: give at least {SHORTEST} seconds")
    program = base64.b64decode(given["program"] or "")
    run = Run(given["operator"], given["run"], given["revert_after"], program, given["continues"])
    if given["state"] == "confirmed":
        confirm.confirm(Host(), plan, run, check)
        return {"changed": not check}
    if given["state"] == "present":
        outcome = fabric.setup(Host(), plan, program, given["marker_source"], check, given["take_over"], run)
    else:
        outcome = fabric.remove(Host(), plan, check, run)
    diff = {"before": outcome.before, "after": outcome.after}
    return {"changed": bool(outcome.changes), "changes": outcome.changes, "diff": diff, "pending": outcome.pending}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        {
            "plan": {"type": "dict", "required": True},
            "program": {"type": "str"},
            "marker_source": {"type": "str"},
            "state": {"type": "str", "choices": ["present", "absent", "confirmed"], "default": "present"},
            "take_over": {"type": "list", "elements": "str", "default": []},
            "revert_after": {"type": "int", "default": 180},
            "operator": {"type": "str"},
            "run": {"type": "str"},
            "continues": {"type": "str"},
        },
        required_if=[
            ("state", "present", ["operator", "run", "program"]),
            ("state", "absent", ["operator", "run", "program"]),
            ("state", "confirmed", ["operator", "run"]),
        ],
        supports_check_mode=True,
    )
    try:
        answer = work(module.params, module.check_mode)
    except PendingRefused as error:
        module.fail_json(msg=str(error), pending={"operator": error.pending.operator, "run": error.pending.run})
    except (HostError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
