#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Checks of one host's plan."""

from __future__ import annotations

DOCUMENTATION = r"""
module: checks
short_description: Answer the checks of a host's plan
version_added: 0.1.0
description:
  - Compares links, RDMA ports, GIDs, routes, kernel settings, forward rules, neighbours, relay filters and markers
    with the plan, and pings every fabric address of the other hosts with a full-size unfragmented datagram.
  - A check that is not good is a result, not a failure of the module. Changes nothing.
options:
  plan:
    description: The host's plan, a document of schema C(sparkring.host-plan/1).
    type: dict
    required: true
  responder_key:
    description:
      - Shared key of a verify run, at least 32 characters, made for that run and known to its hosts only.
      - With it a transient systemd unit is started once the checks are answered; it listens on the host's management
        address (TCP port 18619) and lets M(sparkring.cluster.lanes) read relay counters and make RDMA writes on the
        lanes of this plan, which must be the one that the host holds. It ends with that module, or after ten idle
        minutes.
    type: str
attributes:
  check_mode:
    description: Runs the same in check mode, since it changes nothing.
    support: full
  diff_mode:
    description: Has nothing to show.
    support: none
author:
  - SparkRing (@sparkring)
"""

EXAMPLES = r"""
- name: Answer the checks of this host
  sparkring.cluster.checks:
    plan: "{{ host_plan }}"
  register: checks

- name: Answer them, and be ready for the lanes
  sparkring.cluster.checks:
    plan: "{{ host_plan }}"
    responder_key: "{{ verify_key }}"
"""

RETURN = r"""
results:
  description: One result for each check of the plan, in the plan's order.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Id of the check.
      type: str
      returned: always
      sample: link.mtu
    subject:
      description: The object or address that it is about.
      type: str
      returned: always
      sample: link/cw_primary
    ok:
      description: Whether what was found is what is expected.
      type: bool
      returned: always
    expected:
      description: What the plan expects.
      type: str
      returned: always
      sample: "9000"
    found:
      description: What was found.
      type: str
      returned: always
      sample: "1500"
    fix:
      description: What to do; empty where the check is good.
      type: str
      returned: always
      sample: run mesh-setup
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import checks, responder
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        {"plan": {"type": "dict", "required": True}, "responder_key": {"type": "str", "no_log": True}},
        supports_check_mode=True,
    )
    try:
        results = checks.answer(Host(), HostPlan.from_plain(module.params["plan"]))
        if module.params["responder_key"] is not None and not module.check_mode:
            responder.start(module.params["plan"], module.params["responder_key"])
    except (HostError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, results=results)


if __name__ == "__main__":
    main()
