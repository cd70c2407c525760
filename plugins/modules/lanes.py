#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Prove every lane of a ring from its head."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lanes
short_description: Prove every lane of a ring with an RDMA write
version_added: "0.1.0"
description:
  - Runs on the head of a ring, once M(sparkring.cluster.checks) has started the responder of every host, and ends them.
  - Makes one reliable-connection RDMA write over every lane of every host plan, strictly one lane at a time.
  - A relayed lane holds only when the filter of each relay counted the data and the acknowledgements, and no relay
    forwarded by IP meanwhile.
  - Findings are results, not module failures; M(sparkring.cluster.receipt) judges them.
options:
  plans:
    description: The host plans of the ring, by host name.
    type: dict
    required: true
  key:
    description: The key that the ring's responders were started with.
    type: str
    required: true
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Prove the lanes
  sparkring.cluster.lanes:
    plans: "{{ host_plans }}"
    key: "{{ verify_key }}"
  register: lanes
"""

RETURN = r"""
results:
  description: One result for each lane, in order of source, target and index.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Always V(pair.rdma.write).
      type: str
      returned: success
    subject:
      description: The lane's id.
      type: str
      returned: success
    ok:
      description: Whether the lane holds.
      type: bool
      returned: success
    gbps:
      description: Speed of the write in Gb/s, null when it failed.
      type: float
      returned: success
    relay_packets:
      description: Packets of the data that each relay's filter counted.
      type: dict
      returned: success
    return_packets:
      description: Packets of the acknowledgements that each relay's filter counted.
      type: dict
      returned: success
    forwarded:
      description: IPv4 datagrams that each relay's kernel forwarded meanwhile.
      type: dict
      returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import lanes


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "plans": {"type": "dict", "required": True},
            "key": {"type": "str", "required": True, "no_log": True},
        }
    )
    try:
        plans = {host: HostPlan.from_plain(plan) for host, plan in module.params["plans"].items()}
    except ValueError as error:
        module.fail_json(msg=f"A host plan cannot be read: {error}")
    module.exit_json(changed=False, results=lanes.verify(plans, module.params["key"].encode()))


if __name__ == "__main__":
    main()
