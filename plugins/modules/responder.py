#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Start or stop the responder that answers the lane checks on this host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: responder
short_description: Start or stop the responder that answers lane checks
version_added: "0.1.0"
description:
  - Runs a transient systemd unit that listens on the host's management address (TCP port 18619) and lets
    M(sparkring.cluster.lanes) read relay counters and make RDMA writes on the lanes of this host's plan.
  - Every request must be authenticated with O(key). The unit ends by itself after ten idle minutes.
  - Nothing lasting is changed, so the module never reports a change.
options:
  plan:
    description: This host's plan; it must be the one that the host holds.
    type: dict
    required: true
  key:
    description: Shared key of this verify run, at least 32 characters. Made for one run, known to its hosts only.
    type: str
    required: true
  state:
    description: Whether the responder runs.
    type: str
    choices: [started, stopped]
    default: started
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Start the responders
  sparkring.cluster.responder:
    plan: "{{ host_plan }}"
    key: "{{ verify_key }}"
    state: started
"""

RETURN = r""" # """

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.sparkring.cluster.plugins.module_utils.node import responder


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict", "required": True},
            "key": {"type": "str", "required": True, "no_log": True},
            "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
        }
    )
    try:
        if module.params["state"] == "started":
            responder.start(module.params["plan"], module.params["key"])
        else:
            responder.stop()
    except (responder.ResponderError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
