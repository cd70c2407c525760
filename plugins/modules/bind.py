# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bind
short_description: Bind the hardware of the rings of a run to its roles
version_added: "0.1.0"
description:
  - Works out from the surveys of a ring's hosts which device has which role, and writes
    C(<plans_dir>/<ring>/bindings.json). Runs on the controller.
  - Nothing is written unless all rings of the run can be bound.
options:
  mode:
    description:
      - V(create) writes bindings where none stand, and fails where the hosts show other hardware than they say.
      - V(replace) writes the bindings.
      - V(check) writes nothing, and fails where no bindings stand or the hosts show other hardware.
    type: str
    choices: [create, replace, check]
    default: create
  plans_dir:
    description: Folder that holds the plans of all rings.
    type: path
    required: true
  surveys:
    description: Surveys of all hosts of the rings, schema C(sparkring.survey/1), by host name.
    type: dict
    required: true
  partial:
    description: Let hosts without a survey keep the bindings that stand, for a ring that lost hosts.
    type: bool
    default: false
  adopt:
    description:
      - V(true) keeps the addresses that the hosts have where they are valid, V(false) drops adopted ones so that the
        planner gives them. Without it, what was adopted stays.
    type: bool
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Compare the hosts with their bindings
  sparkring.cluster.bind:
    mode: check
    plans_dir: plans
    surveys: "{{ sparkring_surveys }}"
  run_once: true
"""

RETURN = r"""
rings:
  description: The bindings of each ring, schema C(sparkring.bindings/1), by ring name.
  returned: success
  type: dict
lost:
  description: What of each ring the surveys show as lost (C(cables), C(hosts), C(reasons)), by ring name.
  returned: success
  type: dict
"""
