# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cabling
short_description: Show which cables join the surveyed hosts, or compare them with the inventory
version_added: "0.1.0"
description:
  - Derives cables, layout and host order of every ring from surveys (LLDP from both ends, else answered IPv6
    link-local neighbours), and names what is plugged wrongly. Runs on the controller.
options:
  surveys:
    description: Surveys, schema C(sparkring.survey/1), by host name.
    type: dict
    required: true
  declared:
    description: Fail, and print only that, where the cables contradict the inventory's layout and host order.
    type: bool
    default: false
  write_inventory:
    description:
      - Folder in which C(hosts.yml) and C(group_vars) are written with the layout and host order that were found.
        A file that exists is never overwritten.
    type: path
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Compare the cables with the inventory
  sparkring.cluster.cabling:
    surveys: "{{ sparkring_surveys }}"
    declared: true
  run_once: true
"""

RETURN = r"""
sparkring_lines:
  description: What was printed.
  returned: always
  type: list
  elements: str
sparkring_findings:
  description: How many contradictions there are.
  returned: when O(declared=true)
  type: int
"""
