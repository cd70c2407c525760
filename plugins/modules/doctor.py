# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: doctor
short_description: Judge the surveyed hosts of a run, ring by ring
version_added: "0.1.0"
description:
  - Runs on the controller over what M(sparkring.cluster.examine) brought, and over the bindings and the plan of a ring
    where it has them. Touches no host.
  - Prints each finding in one sentence with one fix, then the totals. Fails when a finding is a fault, and when no host
    could be examined.
  - Every check has a stable id; docs/doctor.md lists them.
options:
  examined:
    description: Results of M(sparkring.cluster.examine) by host name.
    type: dict
    required: true
  only:
    description: Ids of the checks to make, or the part before a dot for all checks of that kind. All without it.
    type: list
    elements: str
    default: []
  silence:
    description: Ids of checks whose findings are no faults here, each with the reason, which is printed.
    type: dict
    default: {}
  report:
    description: Files to write the report to; C(.json), C(.xml) (JUnit), C(.md) or C(.txt) says in which form.
    type: list
    elements: path
    default: []
  plans_dir:
    description: Directory with the rings' bindings and plans.
    type: path
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Say what is wrong
  sparkring.cluster.doctor:
    examined: "{{ examined }}"
    silence:
      fleet.kernel_skew: The new kernel is on trial on one host.
    report: [doctor.json, doctor.xml]
  run_once: true
"""

RETURN = r"""
sparkring_lines:
  description: What was printed.
  returned: success or finding
  type: list
  elements: str
sparkring_findings:
  description: How many findings are faults.
  returned: success or finding
  type: int
"""
