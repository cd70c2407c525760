# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: receipt
short_description: Write the receipt of one verification
version_added: "0.1.0"
description:
  - Judges the results of M(sparkring.cluster.checks) and M(sparkring.cluster.lanes) against the plans, on the
    controller.
  - Writes C(<plans_dir>/<ring>/receipts/<UTC time>-verify.json) and returns lines for the terminal.
  - Fails when a check or a lane does not hold, when the plan asks for a check that nobody answered, and when nothing
    was checked at all.
  - A receipt is a record, so writing one never counts as a change.
options:
  plans:
    description: The host plans of the ring, by host name.
    type: dict
    required: true
  checks:
    description: Results of M(sparkring.cluster.checks), a list by host name.
    type: dict
    required: true
  lanes:
    description: Results of M(sparkring.cluster.lanes).
    type: list
    elements: dict
    required: true
  surveys:
    description: Surveys of the hosts by host name, for their versions; hardware evidence needs them.
    type: dict
    default: {}
  plans_dir:
    description: Folder that holds the plans of all rings.
    type: path
    required: true
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Write the receipt
  sparkring.cluster.receipt:
    plans: "{{ host_plans }}"
    checks: "{{ check_results }}"
    lanes: "{{ lanes.results }}"
    plans_dir: plans
  run_once: true
"""

RETURN = r"""
sparkring_lines:
  description: Heading, matrix of lanes, one line for each finding, and the summary.
  returned: when a receipt was written
  type: list
  elements: str
sparkring_findings:
  description: How many checks and lanes do not hold.
  returned: when a receipt was written
  type: int
path:
  description: Where the receipt was written.
  returned: when a receipt was written
  type: str
evidence:
  description: V(hardware), V(rehearsed) or V(none).
  returned: when a receipt was written
  type: str
"""
