# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Show surveys or the state of a host on the terminal
version_added: "0.1.0"
description:
  - Prints what was found, on the controller.
  - Fails when a host is not as planned, after it has said how it differs.
options:
  surveys:
    description: Surveys to show, by host name.
    type: dict
  plan:
    description: The plan of the host whose state is shown.
    type: dict
  changes:
    description: What M(sparkring.cluster.fabric) would change on it.
    type: list
    elements: dict
  checks:
    description: Results of M(sparkring.cluster.checks) on it.
    type: list
    elements: dict
  rank:
    description: What M(sparkring.cluster.rank) observed on it, where it serves one.
    type: dict
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Say how the host stands
  sparkring.cluster.report:
    plan: "{{ host_plan }}"
    changes: "{{ differences.changes }}"
    checks: "{{ checks.results }}"
"""

RETURN = r"""
sparkring_lines:
  description: What was printed.
  returned: always
  type: list
  elements: str
sparkring_findings:
  description: How many objects differ and checks fail.
  returned: always
  type: int
"""
