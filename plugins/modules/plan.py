# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: plan
short_description: Plan the rings of a run
version_added: "0.1.0"
description:
  - Reads the rings below the inventory group C(sparkring) and their bindings, and works out what each of their hosts
    shall be. Runs on the controller and asks no host.
  - Writes C(<plans_dir>/<ring>/) with C(ring.json), C(hosts/<host>.json), C(README.md) and C(ring.svg). Equal input
    gives equal bytes.
  - A ring without bindings gets an open plan, which can be reviewed but not applied; its C(blockers) say so.
  - Nothing is written unless all rings of the run can be planned.
options:
  applicable:
    description: Fail when a plan may not be applied, with the sentences of its C(blockers).
    type: bool
    default: false
  mode:
    description:
      - V(create) writes a plan where none stands, and fails where another one stands.
      - V(replace) writes the plan.
      - V(check) writes nothing, and fails where no plan or another one stands.
    type: str
    choices: [create, replace, check]
    default: create
  plans_dir:
    description: Folder that holds the plans of all rings.
    type: path
    required: true
  bindings:
    description:
      - Bindings by ring, as M(sparkring.cluster.bind) returns them. Rings that it lacks are read from O(plans_dir).
      - Lets a check run plan with bindings that it did not write.
    type: dict
    default: {}
  degraded:
    description:
      - What the ring is planned without. V(auto) takes it from O(lost); else a mapping with C(cables), a list of cable
        numbers, and C(hosts), a list of host names. The plan is then that of the longest line that is left.
      - Without it the ring is planned whole, or, where O(mode=check), as it stands on disk.
    type: raw
  lost:
    description:
      - What of each ring the surveys show as lost, by ring, as M(sparkring.cluster.bind) returns it. A ring that stands
        on disk as degraded is not planned whole while something is lost.
    type: dict
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Plan the rings
  sparkring.cluster.plan:
    mode: create
    plans_dir: plans
  run_once: true
"""

RETURN = r"""
rings:
  description: The plan of each ring, schema C(sparkring.plan/1), by ring name.
  returned: success
  type: dict
plans:
  description: The plan of each host, schema C(sparkring.host-plan/1), by host name.
  returned: success
  type: dict
"""
