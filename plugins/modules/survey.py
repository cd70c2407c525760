#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Survey of one host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: survey
short_description: Observe a host that is or shall be part of a ring
version_added: 0.1.0
description:
  - Reads links, RDMA devices, LLDP and IPv6 neighbours, routes, neighbours, traffic control, kernel settings,
    firewall, Docker, NetworkManager, driver settings, memory, disk and GPU.
  - Reports what is there without judging it and changes nothing. The only packets it sends are IPv6 echo
    requests to all nodes on the links of RDMA devices.
options:
  management_interface:
    description:
      - Interface by which the host is administered.
      - Without it, the interface of the SSH connection that runs the module is taken.
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
- name: Survey the hosts
  sparkring.cluster.survey:
    management_interface: enP7s7
  register: survey
"""

RETURN = r"""
survey:
  description: The survey, a document of schema C(sparkring.survey/1).
  returned: success
  type: dict
  sample:
    schema: sparkring.survey/1
    hostname: spark0
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.sparkring.cluster.plugins.module_utils.node import survey
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host


def main() -> None:
    """Run the module."""
    module = AnsibleModule({"management_interface": {"type": "str"}}, supports_check_mode=True)
    try:
        found = survey.take(Host(), module.params["management_interface"])
    except HostError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, survey=found)


if __name__ == "__main__":
    main()
