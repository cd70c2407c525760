# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: explain
short_description: Say what NCCL is told on the rings of a run, and why
version_added: "0.1.0"
description:
  - Derives the environment of NCCL from each ring's plan, and gives every variable its reason and where that is known
    from. Runs on the controller and changes nothing.
options:
  plans_dir:
    description: Folder that holds the plans of all rings.
    type: path
    required: true
  nccl:
    description:
      - The library, by its id in this collection or as a mapping with C(id), C(version), C(sha256), C(patches),
        C(source) and C(date). Without it, the NCCL that the engine brings along.
    type: raw
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Explain
  sparkring.cluster.explain:
    plans_dir: plans
    nccl: skip-tree-2.30.7
  run_once: true
"""

RETURN = r"""
sparkring_lines:
  description: What was printed.
  returned: success
  type: list
  elements: str
"""
